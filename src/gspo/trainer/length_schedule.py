"""A limit of the response length that grows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthSchedule:
    """`start` tokens at step 1, `end` from step `steps` on, evenly between, rounded down.

    >>> [LengthSchedule(start=10, end=20, steps=5).at(step) for step in (1, 2, 3, 5, 9)]
    [10, 12, 15, 20, 20]
    """

    start: int
    end: int
    steps: int

    def at(self, step: int) -> int:
        """Longest response of a step, counted from 1."""
        done = min(step - 1, self.steps - 1)
        return self.start + (self.end - self.start) * done // (self.steps - 1)
