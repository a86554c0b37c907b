"""Everything the loop uses, put together elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gspo.engines.base import Engine
from gspo.policy.base import Policy
from gspo.recorders.base import ResponseRow
from gspo.settings import KLPenalty
from gspo.stats import Statistic
from gspo.trainer.clip_control import ClipControl, ClipEvent
from gspo.trainer.state import TrainState
from gspo.trainer.stream import RolloutStream
from gspo.verifiers.base import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of the loop. evaluate_every: steps, 0 for never in between. temperature: of
    rollouts, and so of every log-prob. kl: penalty against the reference policy. engine_old_logp:
    the engine's log-probs may be the old ones, where the gate opens."""

    steps: int
    minibatches: int
    minibatch_by: Literal["group", "response"]
    baseline: Literal["mean", "loo"]
    scale: Literal["std", "none"]
    temperature: float
    max_failed_share: float
    evaluate_every: int
    kl: KLPenalty | None = None
    engine_old_logp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The seams of the loop, and what it does between two steps.

    record: (step, statistics, rows, clip event or None). evaluate: of the current weights, after
    a step. save: a checkpoint of this state unless there is one. save_due: is it time, after this
    step?
    """

    plan: Plan
    stream: RolloutStream
    verifier: Verifier
    policy: Policy
    reference: Policy | None
    engine: Engine
    clip: ClipControl
    record: Callable[[int, Mapping[str, Statistic], Sequence[ResponseRow], ClipEvent | None], None]
    evaluate: Callable[[int], None]
    save: Callable[[TrainState], None]
    save_due: Callable[[int], bool]
