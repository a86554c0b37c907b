"""What a step took from the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gspo.stats import Statistic
from gspo.types import Group

#: Gives every rollout of the groups its verdict.
Judge = Callable[[Sequence[Group]], list[Group]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """groups: judged, to train on, in data order. sampled: those and the replaced ones, in the same
    order. queries: what the query set must remember, for `TrainState`. stats: of the taking."""

    groups: Sequence[Group]
    sampled: Sequence[Group]
    queries: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stats: Mapping[str, Statistic] = field(default_factory=dict[str, Statistic])
