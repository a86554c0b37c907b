"""Numbers that know how to add themselves: over micro-batches, over ranks, over steps.

A mean of means is wrong as soon as the parts differ in size:

>>> (Mean(3, 12) + Mean(3, 4)).value()      # not (0.25 + 0.75) / 2
0.375

Values may be 0-d tensors; they become Python numbers only in `value()`, at the recorder's border.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from gspo.errors import GspoError

Number = float | int | Tensor


@runtime_checkable
class Statistic(Protocol):
    """Anything that can be added to another of its kind and reported."""

    def __add__(self, other: Any, /) -> Any: ...

    def value(self) -> Any:
        """What is recorded: a number, None when there was no data, or a histogram."""
        ...


Stats = dict[str, Statistic]


def merge(parts: Iterable[Mapping[str, Statistic]]) -> Stats:
    """Add statistics of the same name; a name missing from some parts is allowed."""
    total: Stats = {}
    for part in parts:
        for name, stat in part.items():
            total[name] = total[name] + stat if name in total else stat
    return total


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean kept as total and count; no data is None, never 0 or NaN."""

    total: Number
    count: Number

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.total + other.total, self.count + other.count)

    def value(self) -> float | None:
        return float(self.total) / float(self.count) if float(self.count) else None


@dataclass(frozen=True, slots=True)
class Sum:
    """A count or an amount."""

    total: Number

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.total + other.total)

    def value(self) -> float:
        return float(self.total)


@dataclass(frozen=True, slots=True)
class Max:
    """The largest value seen; NaN stays NaN."""

    largest: Number | None

    def __add__(self, other: Max) -> Max:
        if self.largest is None or other.largest is None:
            return self if other.largest is None else other
        a, b = float(self.largest), float(other.largest)
        return Max(math.nan if math.isnan(a) or math.isnan(b) else max(a, b))

    def value(self) -> float | None:
        return None if self.largest is None else float(self.largest)


@dataclass(frozen=True, slots=True)
class Min:
    """The smallest value seen; NaN stays NaN."""

    smallest: Number | None

    def __add__(self, other: Min) -> Min:
        if self.smallest is None or other.smallest is None:
            return self if other.smallest is None else other
        a, b = float(self.smallest), float(other.smallest)
        return Min(math.nan if math.isnan(a) or math.isnan(b) else min(a, b))

    def value(self) -> float | None:
        return None if self.smallest is None else float(self.smallest)


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation with n - 1, from values kept in float64; None below two values.

    The values themselves are kept: a step has some hundred responses, and the two-pass form is
    the only one that stays exact when the spread is 1e-6 of the mean.
    """

    values: Tensor

    def __add__(self, other: Spread) -> Spread:
        return Spread(torch.cat([self.values, other.values]))

    def value(self) -> float | None:
        return float(self.values.double().std()) if self.values.numel() > 1 else None


@dataclass(frozen=True, slots=True)
class Quantile:
    """The q-quantile (linear interpolation) of all values seen; None without any."""

    values: Tensor
    q: float

    def __add__(self, other: Quantile) -> Quantile:
        if self.q != other.q:
            raise GspoError(f"quantiles {self.q} and {other.q} cannot be added; give one q a name")
        return Quantile(torch.cat([self.values, other.values]), self.q)

    def value(self) -> float | None:
        return float(self.values.double().quantile(self.q)) if self.values.numel() else None


def symmetric_log_edges(smallest: float, largest: float, per_decade: int) -> tuple[float, ...]:
    """Bin edges of equal width in log10 on both sides of 0, mirrored, with one bin around 0."""
    first, last = round(math.log10(smallest) * per_decade), round(math.log10(largest) * per_decade)
    positive = [10 ** (k / per_decade) for k in range(first, last + 1)]
    return (*(-edge for edge in reversed(positive)), *positive)


#: Bins of log s: 1e-6 is float32's resolution of a log-prob, 10 is where the ratio is held.
LOG_RATIO_EDGES = symmetric_log_edges(1e-6, 10.0, per_decade=4)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts on fixed edges. Bin k holds edges[k] <= x < edges[k+1]; values beyond the outer
    edges are counted in the outer bins, values that are not finite in `num_nonfinite`."""

    counts: Tensor
    edges: tuple[float, ...] = field(default=LOG_RATIO_EDGES)
    num_nonfinite: Number = 0

    @classmethod
    def of(cls, values: Tensor, edges: tuple[float, ...] = LOG_RATIO_EDGES) -> Histogram:
        finite = values.double()[values.isfinite()]
        inner = torch.tensor(edges[1:-1], dtype=torch.float64, device=values.device)
        bins = torch.bucketize(finite, inner, right=True)
        return cls(
            torch.bincount(bins, minlength=len(edges) - 1), edges, values.numel() - finite.numel()
        )

    def __add__(self, other: Histogram) -> Histogram:
        if self.edges != other.edges:
            raise GspoError(
                f"histograms of {len(self.edges)} and {len(other.edges)} edges, from "
                f"{self.edges[0]:g} and {other.edges[0]:g}, cannot be added; give one name one set"
            )
        return Histogram(
            self.counts + other.counts, self.edges, self.num_nonfinite + other.num_nonfinite
        )

    def value(self) -> dict[str, list[float] | list[int]]:
        return {"edges": list(self.edges), "counts": self.counts.tolist()}
