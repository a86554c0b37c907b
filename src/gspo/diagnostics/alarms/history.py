"""What a run has recorded so far, as the rules see it: floats by metric name, and events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Responses of one group answer one prompt and are alike. With groups of 8 and a correlation of
#: 0.43 between them, n responses tell as much as n / (1 + 7 x 0.43) = n / 4 independent ones.
ALIKE = 4


@dataclass(slots=True)
class History:
    """steps: number and values of each recorded step, oldest first; a metric without data is
    absent. events: of all kinds, oldest first, with "step" and "kind"."""

    steps: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)
    events: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """A finished step. What is no finite number (null, histograms) is not measured."""
        self.steps.append((step, {n: float(v) for n, v in values.items() if is_finite(v)}))

    def events_now(self) -> list[Mapping[str, Any]]:
        """What happened in the newest step."""
        return [event for event in self.events if event["step"] == self.steps[-1][0]]

    def window(self, count: int, skip: int = 0) -> list[Mapping[str, float]]:
        """The values of `count` steps, oldest first, ending `skip` steps before the newest; empty
        while there are not that many."""
        end = len(self.steps) - skip
        return [values for _, values in self.steps[end - count : end]] if end >= count else []

    def mean(self, name: str, count: int, skip: int = 0) -> float | None:
        """Mean over the window, of the steps that have the metric; None where fewer than half of
        them do."""
        return mean_of(self.window(count, skip), name)

    def change(self, name: str, count: int, lag: int) -> Change | None:
        """Mean over the newest `count` steps less that of the `count` steps `lag` before them."""
        return change_of(self.window(count, skip=lag), self.window(count), name)


@dataclass(frozen=True, slots=True)
class Change:
    """A difference of two means, and its standard error."""

    difference: float
    error: float


#: Metric that is a mean over responses -> metric of their standard deviation.
SPREADS = {"reward/mean": "reward/std", "gap/log_s_mean": "gap/log_s_std"}


def mean_of(window: list[Mapping[str, float]], name: str) -> float | None:
    """Mean over the steps that have the metric; None where fewer than half of them do."""
    found = [values[name] for values in window if name in values]
    return sum(found) / len(found) if found and 2 * len(found) >= len(window) else None


def error_of(values: Mapping[str, float], name: str) -> float | None:
    """Standard error of a step's mean over responses; None where spread or number is missing. The
    spread of a pass rate p is sqrt(p (1 - p)). Independent are the prompts, so each group counts as
    one response; where their number was not recorded n responses count as n / ALIKE."""
    responses = values.get("step/responses")
    count = values.get("step/groups", responses / ALIKE if responses else None)
    if name == "reward/pass_rate":
        spread = math.sqrt(values[name] * (1 - values[name]))
    else:
        spread = values.get(SPREADS[name])
    return None if spread is None or not count else spread / math.sqrt(count)


def mean_error_of(window: list[Mapping[str, float]], name: str) -> float | None:
    """Standard error of `mean_of(window, name)`; None where a step's is."""
    errors = [error_of(values, name) for values in window if name in values]
    known = [error for error in errors if error is not None]
    return math.hypot(*known) / len(known) if known and len(known) == len(errors) else None


def change_of(
    before: list[Mapping[str, float]], now: list[Mapping[str, float]], name: str
) -> Change | None:
    """The difference of the means of two windows; None where one is not measured."""
    means = mean_of(before, name), mean_of(now, name)
    errors = mean_error_of(before, name), mean_error_of(now, name)
    if means[0] is None or means[1] is None or errors[0] is None or errors[1] is None:
        return None
    return Change(means[1] - means[0], math.hypot(errors[0], errors[1]))


def is_finite(value: Any) -> bool:
    """A number that can be compared; true and false are none.

    >>> [is_finite(v) for v in (1, 0.5, True, None, float("nan"))]
    [True, True, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
