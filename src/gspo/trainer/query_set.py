"""The query set: which prompts a run draws from, refreshed by the pass rates of its own rollouts.

Every `every` steps, each prompt that was sampled since the last refresh is looked at: one whose
pass rate lies outside the range rests until the next refresh, then comes back and is measured anew,
by a policy that has moved on. Prompts that were not sampled stay. All of it is a function of what
`TrainState` carries, so a resumed run draws the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gspo.data.stream_order import prompt_places
from gspo.diagnostics.rollouts import PASS_REWARD
from gspo.errors import DataError
from gspo.stats import Mean, Stats
from gspo.types import Group

#: Periods have orders of their own; seeds are below this.
SEEDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """every: steps. A pass rate is in the range when above < rate < below."""

    every: int
    above: float = 0.0
    below: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """period: refreshes so far. start: cursor of the last one. solved, failed: prompts that rest,
    by their number in the data. rates: number of a prompt -> (passed, scored) since the refresh."""

    num_prompts: int
    period: int = 0
    start: int = 0
    solved: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    rates: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    @classmethod
    def of(cls, memory: Mapping[str, Any], num_prompts: int) -> QuerySet:
        """The set that `memory` wrote; a new one of all prompts where it is empty."""
        if not memory:
            return cls(num_prompts=num_prompts)
        if memory["num_prompts"] != num_prompts:
            raise DataError(
                f"the run's query set is of {memory['num_prompts']} prompts, the data has {num_prompts}: resume with the data it was started with, or train anew under another name"
            )
        rates = {int(k): (int(a), int(b)) for k, (a, b) in memory["rates"].items()}
        return cls(
            num_prompts=num_prompts,
            period=memory["period"],
            start=memory["start"],
            solved=tuple(memory["solved"]),
            failed=tuple(memory["failed"]),
            rates=rates,
        )

    def memory(self) -> dict[str, Any]:
        """For `TrainState`: JSON."""
        return {
            "num_prompts": self.num_prompts,
            "period": self.period,
            "start": self.start,
            "solved": list(self.solved),
            "failed": list(self.failed),
            "rates": {str(k): list(rate) for k, rate in sorted(self.rates.items())},
        }

    def places(self, seed: int, cursor: int, count: int) -> list[tuple[int, int]]:
        """(number, copy) of the next prompts of the set; copies of one prompt count from 1."""
        resting = {*self.solved, *self.failed}
        active = [k for k in range(self.num_prompts) if k not in resting]
        found = prompt_places(len(active), seed + self.period * SEEDS, cursor - self.start, count)
        return [(active[place], copy) for place, copy in found]

    def measured(self, numbers: Sequence[int], groups: Sequence[Group]) -> QuerySet:
        """With the scored responses to these prompts."""
        rates = dict(self.rates)
        for number, group in zip(numbers, groups, strict=True):
            passed, scored = rates.get(number, (0, 0))
            passes = sum(reward > PASS_REWARD for reward in group.rewards)
            rates[number] = (passed + passes, scored + len(group.rewards))
        return replace(self, rates=rates)

    def refreshed(self, settings: Refresh, cursor: int, at_least: int) -> QuerySet:
        """A new period. Prompts out of the range rest, but never so many that fewer than `at_least`
        are left: then none does."""
        shares = {k: passed / scored for k, (passed, scored) in self.rates.items() if scored}
        failed = tuple(sorted(k for k, share in shares.items() if share <= settings.above))
        solved = tuple(
            sorted(k for k, s in shares.items() if s >= settings.below and s > settings.above)
        )
        if self.num_prompts - len(failed) - len(solved) < at_least:
            failed = solved = ()
        return QuerySet(
            num_prompts=self.num_prompts,
            period=self.period + 1,
            start=cursor,
            solved=solved,
            failed=failed,
        )

    def stats(self) -> Stats:
        """By the names of docs/metrics.md."""
        resting = len(self.solved) + len(self.failed)
        return {
            "queries/active": Mean(self.num_prompts - resting, 1),
            "queries/resting_solved": Mean(len(self.solved), 1),
            "queries/resting_failed": Mean(len(self.failed), 1),
        }
