"""The statistics of a run as columns: 8 bytes a number, whatever the step."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gspo.recorders.jsonl import NONFINITE

NOT_STATISTICS = {"step", "time", NONFINITE}
MAX_CELLS = 25_000_000  # 200 MB: 250 names in 100,000 steps
NAN = math.nan


@dataclass(slots=True)
class Histograms:
    """Counts on fixed edges, one list a row; None where a row has none."""

    edges: list[float]
    counts: list[array[int] | None] = field(default_factory=list)


class MetricColumns:
    """Rows in order of their steps. NaN stands for null. times: seconds since 1970.

    An evaluation after a step comes as a second line of the same step and joins its row.
    """

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.times: array[float] = array("d")
        self.numbers: dict[str, array[float]] = {}
        self.histograms: dict[str, Histograms] = {}
        self.problems: dict[str, None] = {}

    @property
    def names(self) -> list[str]:
        """Every name recorded."""
        return sorted({*self.numbers, *self.histograms})

    def add(self, row: Mapping[str, Any]) -> None:
        """One line of metrics.jsonl."""
        at = self._row_of(row["step"])
        if at is None:
            return
        self.times[at] = seconds_of(row.get("time"))
        known = self.numbers
        for name, value in row.items():
            if type(value) is float and name in known:  # nearly all: a large run has a million
                known[name][at] = value if math.isfinite(value) else NAN
            elif name not in NOT_STATISTICS:
                self._add(name, at, value)

    def last(self, name: str) -> float | None:
        """The last value that is not null."""
        return next(self._values(name, reverse=True), None)

    def first(self, name: str) -> float | None:
        """The first value that is not null."""
        return next(self._values(name, reverse=False), None)

    def _values(self, name: str, *, reverse: bool) -> Iterator[float]:
        column = self.numbers.get(name, ())
        return (x for x in (reversed(column) if reverse else column) if not math.isnan(x))

    def _row_of(self, step: int) -> int | None:
        """Where the row of this step is, after it was made; None where there is no room."""
        at = bisect_left(self.steps, step)
        if at < len(self.steps) and self.steps[at] == step:
            return at
        if not self._room(len(self.steps) + 1, len(self.numbers)):
            return None
        self.steps.insert(at, step)
        self.times.insert(at, NAN)
        for column in self.numbers.values():
            column.insert(at, NAN)
        for found in self.histograms.values():
            found.counts.insert(at, None)
        return at

    def _add(self, name: str, at: int, value: object) -> None:
        if isinstance(value, Mapping):
            self._add_counts(name, at, value)
        elif (column := self._column(name)) is not None:
            column[at] = number_of(value)

    def _column(self, name: str) -> array[float] | None:
        column = self.numbers.get(name)
        if column is None and name not in self.histograms:
            if not self._room(len(self.steps), len(self.numbers) + 1):
                return None
            column = self.numbers[name] = array("d", [NAN]) * len(self.steps)
        return column

    def _room(self, num_rows: int, num_names: int) -> bool:
        fits = num_rows * num_names <= MAX_CELLS
        if not fits:
            self.problems[f"more than {MAX_CELLS:,} numbers: the rest is left out"] = None
        return fits

    def _add_counts(self, name: str, at: int, value: Mapping[str, Any]) -> None:
        found, counts = self.histograms.get(name), _counts(value.get("counts"))
        known = found is not None and value.get("edges") == found.edges
        edges = found.edges if found is not None and known else _edges(value.get("edges"))
        if edges is None or counts is None or len(edges) != len(counts) + 1:
            self.problems[f"{name}: a histogram without edges and one count fewer"] = None
            return
        if found is None:
            if not self._room(len(self.steps), len(self.numbers) + len(edges)):
                return
            self.numbers.pop(name, None)  # null in the steps before it had data
            found = Histograms(edges, [None] * len(self.steps))
            self.histograms[name] = found
        elif not known:
            self.problems[f"{name}: its edges change, only the first ones are shown"] = None
            return
        found.counts[at] = counts


def number_of(value: object) -> float:
    """A finite number; NaN for everything else."""
    if type(value) is float:
        return value if math.isfinite(value) else NAN
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return NAN
    return NAN


def seconds_of(time: object) -> float:
    """Seconds since 1970 of an ISO time; NaN for everything else."""
    try:
        return datetime.fromisoformat(time).timestamp() if isinstance(time, str) else NAN
    except (ValueError, OverflowError):
        return NAN


def _edges(values: object) -> list[float] | None:
    if not isinstance(values, list):
        return None
    numbers = [number_of(value) for value in values]
    return None if any(map(math.isnan, numbers)) else numbers


def _counts(values: object) -> array[int] | None:
    try:
        return array("q", values) if isinstance(values, list) else None
    except (TypeError, OverflowError):
        return None
