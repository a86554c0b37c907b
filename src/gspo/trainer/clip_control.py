"""Which clip range is in force: the recipe's, or one that is measured and then fixed.

`clip: auto` starts with a provisional band that hardly cuts, collects log s of off-policy
responses until both signs of the advantage are seen often enough, fits the range that would have
cut the wanted share, and keeps it. What it has seen is part of the training state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from gspo.diagnostics.calibration import (
    MIN_RESPONSES,
    PROVISIONAL_CLIP,
    Calibration,
    fit_range,
    noise_floor,
)
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.settings import GSPO, ClipRange, GSPOToken, ObjectiveSettings

#: Steps of measuring after which the range is fixed from fewer responses, down to this share.
MAX_MEASURED_STEPS = 20
FEWEST_RESPONSES = 32


@dataclass(frozen=True, slots=True)
class ClipEvent:
    """A change of the clip range, with its evidence; goes to events.jsonl."""

    kind: str
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipMemory:
    """measuring: evidence is being collected. positive, negative: log s by sign of the advantage,
    nats. measured_steps: steps they come from. low, high: distances in force."""

    measuring: bool
    low: float
    high: float
    positive: tuple[float, ...] = ()
    negative: tuple[float, ...] = ()
    measured_steps: int = 0

    @classmethod
    def start(cls) -> ClipMemory:
        """Measuring, under the provisional band."""
        return cls(measuring=True, low=PROVISIONAL_CLIP.low, high=PROVISIONAL_CLIP.high)

    @property
    def clip(self) -> ClipRange:
        """The range in force."""
        return ClipRange(low=self.low, high=self.high)

    def add(self, responses: UpdatedResponses) -> ClipMemory:
        """With the step's off-policy log s as further evidence."""
        seen = responses.off_policy & responses.log_s.isfinite()
        log_s, advantage = responses.log_s[seen], responses.advantage[seen]
        return replace(
            self,
            positive=(*self.positive, *log_s[advantage > 0].tolist()),
            negative=(*self.negative, *log_s[advantage < 0].tolist()),
            measured_steps=self.measured_steps + 1,
        )

    def fit(self, cut_share: float) -> Calibration | None:
        """The range for this share; None while evidence is short."""
        late = self.measured_steps >= MAX_MEASURED_STEPS
        signs = torch.tensor([1.0] * len(self.positive) + [-1.0] * len(self.negative))
        return fit_range(
            torch.tensor([*self.positive, *self.negative]),
            signs,
            floor=noise_floor(),
            cut_share=cut_share,
            min_responses=FEWEST_RESPONSES if late else MIN_RESPONSES,
        )


class ClipControl:
    """The objective in force. Without `cut_share` it never changes."""

    def __init__(
        self,
        objective: ObjectiveSettings,
        *,
        cut_share: float | None = None,
        warmup_steps: int = 0,
        memory: Mapping[str, Any] | None = None,
    ) -> None:
        """cut_share: measure for this share; None keeps the objective's own clip. warmup_steps:
        steps at the start that are not measured. memory: what `memory()` gave before a resume."""
        self._objective = objective
        self._cut_share = cut_share
        self._warmup_steps = warmup_steps
        self._memory = _restore(memory) if memory else ClipMemory.start()

    @property
    def objective(self) -> ObjectiveSettings:
        """The objective with the range in force."""
        if self._cut_share is None or not isinstance(self._objective, GSPO | GSPOToken):
            return self._objective
        return replace(self._objective, clip=self._memory.clip)

    def memory(self) -> dict[str, Any]:
        """JSON for the training state; empty when the range is the recipe's own."""
        return {} if self._cut_share is None else asdict(self._memory)

    def observe(self, step: int, responses: UpdatedResponses) -> ClipEvent | None:
        """Learn from a finished step; an event when that fixes the range."""
        if self._cut_share is None or not self._memory.measuring or step <= self._warmup_steps:
            return None
        self._memory = self._memory.add(responses)
        fitted = self._memory.fit(self._cut_share)
        if fitted is None:
            return None
        steps = self._memory.measured_steps
        self._memory = ClipMemory(measuring=False, low=fitted.low, high=fitted.high)
        return ClipEvent("clip_fixed", {**asdict(fitted), "measured_steps": steps})


def _restore(memory: Mapping[str, Any]) -> ClipMemory:
    lists = {name: tuple(memory[name]) for name in ("positive", "negative")}
    fields: dict[str, Any] = {**memory, **lists}
    return ClipMemory(**fields)
