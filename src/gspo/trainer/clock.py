"""Where the time of a step goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gspo.stats import Mean, Stats


class Clock:
    """Seconds by part of one step, from its creation on.

    >>> clock = Clock()
    >>> with clock.part("rollout"):
    ...     pass
    >>> sorted(clock.stats(num_tokens=10))
    ['speed/tokens_per_s', 'time/other_s', 'time/rollout_s', 'time/step_s']
    """

    def __init__(self) -> None:
        self._start_s = time.perf_counter()
        self._parts_s: dict[str, float] = {}
        self._inner_s = 0.0  # claimed by parts inside the one that runs

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the time of the block to this part, less what parts inside it claim."""
        start_s, outer_inner_s = time.perf_counter(), self._inner_s
        self._inner_s = 0.0
        try:
            yield
        finally:
            whole_s = time.perf_counter() - start_s
            self._parts_s[name] = self._parts_s.get(name, 0.0) + whole_s - self._inner_s
            self._inner_s = outer_inner_s + whole_s

    def elapsed_s(self) -> float:
        """Seconds since the step began."""
        return time.perf_counter() - self._start_s

    def stats(self, num_tokens: int) -> Stats:
        """time/NAME_s of each part, the whole step, and what no part claims; trained response
        tokens a second of the whole step."""
        step_s = self.elapsed_s()
        other_s = step_s - sum(self._parts_s.values())
        seconds = {**self._parts_s, "step": step_s, "other": other_s}
        times: Stats = {f"time/{name}_s": Mean(value, 1) for name, value in seconds.items()}
        return times | {"speed/tokens_per_s": Mean(num_tokens, step_s)}
