"""What a run must remember between two steps, beside weights and optimizer. Frozen, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gspo.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainState:
    """step: finished steps. version: of the published weights. cursor: prompts taken from the
    data order. clip: what `ClipControl` decided and the evidence it has so far. verdicts: (judged,
    failed) of the latest steps. queries: what `QuerySet` knows of the prompts, {} without a refresh."""

    seed: int
    step: int = 0
    version: int = 0
    cursor: int = 0
    tokens_seen: int = 0
    prompts_seen: int = 0
    verdicts: tuple[tuple[int, int], ...] = ()
    clip: Mapping[str, Any] = field(default_factory=dict)
    queries: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """One JSON object; NaN and infinity are refused."""
        return json.dumps(asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> TrainState:
        """The state that `to_json` wrote; `where` is named when it is none."""
        try:
            fields: dict[str, Any] = json.loads(text)
            pairs: Any = fields.pop("verdicts")
            return cls(**fields, verdicts=tuple((int(a), int(b)) for a, b in pairs))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{where} is not a training state: {error}") from error
