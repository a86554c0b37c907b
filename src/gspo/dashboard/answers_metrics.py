"""Curves and histograms of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gspo.dashboard.answers_overview import start_of
from gspo.dashboard.columns import NAN
from gspo.dashboard.folder import NotFoundError, RunFolderView
from gspo.dashboard.plain import finite_list
from gspo.errors import nearest


def metrics(run: RunFolderView, names: Sequence[str], after: int = 0) -> dict[str, Any]:
    """Statistics as columns beside "step" and "time", seconds since the start. names: `*` stands
    for any characters; a name that no step has is left out. after: steps past this one only."""
    found = run.metrics()
    first = _first(found.steps, after)
    wanted = [
        name for name in sorted(found.numbers) if any(matches(pattern, name) for pattern in names)
    ]
    start = start_of(run)
    return {
        "step": found.steps[first:],
        "time": finite_list(time - start for time in found.times[first:]),
        "columns": {name: finite_list(found.numbers[name][first:]) for name in wanted},
    }


def histograms(run: RunFolderView, name: str, after: int = 0, limit: int = 400) -> dict[str, Any]:
    """Counts of each step that has them, and the range in force in it. limit: most steps, evenly
    chosen, the first and the last always among them. Raises NotFoundError."""
    found = run.metrics()
    histogram = found.histograms.get(name)
    if histogram is None:
        hint = nearest(name, found.histograms) if found.histograms else "this run recorded none"
        raise NotFoundError(f"there is no histogram {name!r:.80}; {hint}")
    first = _first(found.steps, after)
    filled = [k for k in range(first, len(found.steps)) if histogram.counts[k] is not None]
    rows = [filled[k] for k in thinned(len(filled), limit)]
    empty = [NAN] * len(found.steps)
    low, high = (found.numbers.get(side, empty) for side in ("clip/low", "clip/high"))
    return {
        "edges": histogram.edges,
        "step": [found.steps[k] for k in rows],
        "counts": [list(histogram.counts[k] or ()) for k in rows],
        "low": finite_list(low[k] for k in rows),
        "high": finite_list(high[k] for k in rows),
    }


def thinned(num: int, limit: int) -> list[int]:
    """At most `limit` of 0..num-1, evenly, with both ends.

    >>> thinned(9, 3), thinned(3, 9), thinned(5, 1)
    ([0, 4, 8], [0, 1, 2], [4])
    """
    if num <= limit:
        return list(range(num))
    if limit == 1:
        return [num - 1]
    return [math.floor(k * (num - 1) / (limit - 1) + 0.5) for k in range(limit)]


def matches(pattern: str, name: str) -> bool:
    """Whether the name is of the family. In one pass: no pattern takes long.

    >>> matches("clip/*/len_*", "clip/cut_low/len_8-15"), matches("a*", "ba"), matches("*a", "ab")
    (True, False, False)
    """
    if "*" not in pattern:
        return pattern == name
    head, *middle, tail = pattern.split("*")
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return False
    at, end = len(head), len(name) - len(tail)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _first(steps: Sequence[int], after: int) -> int:
    """Row of the first step past `after`. 0 is all: the evaluation before training counts too."""
    return 0 if after <= 0 else sum(step <= after for step in steps)
