"""A rule, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gspo.diagnostics.alarms.history import History

#: Standard errors by which a difference must exceed chance: one in a thousand, one-sided.
SURE = 3.0

#: Measured steps without a finding that end an alarm: a value that flickers around its threshold
#: is one alarm, not ten.
CLEAR_STEPS = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule measured. raised: it is beyond the threshold, on the side that the rule says,
    and by more than chance. detail: the evidence in words."""

    value: float
    threshold: float
    raised: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """find: the finding at the newest step of a history; None where the rule is not measured.

    formula, evidence, cause, advice: as in docs/alarms.md. evidence says what the alarm's value
    and threshold are. metrics: those that `find` reads, with braces as in docs/metrics.md.
    after: what it is asked about, steps or evaluations. clear_steps: times it is measured
    without a finding until the alarm has cleared; 1 for a rule that is seldom measured.
    """

    name: str
    find: Callable[[History], Finding | None]
    metrics: tuple[str, ...]
    formula: str
    evidence: str
    cause: str
    advice: str
    after: Literal["step", "evaluation"] = "step"
    clear_steps: int = CLEAR_STEPS

    def reads(self, metric: str) -> bool:
        """Whether `find` looks at this metric."""
        return any(
            metric.startswith(known.partition("{")[0]) if "{" in known else metric == known
            for known in self.metrics
        )
