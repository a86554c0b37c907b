"""A histogram of pass rates: lines for a terminal, and one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import plotly.graph_objects as go

INSIDE, OUTSIDE = "#21918c", "#d1495b"
NUM_BETWEEN = 10  # bins between none and all; more than `samples` + 1 would leave holes
WIDEST_BAR = 50  # characters


@dataclass(frozen=True, slots=True)
class Bin:
    """Pass rates from `low` to `high`: both included where they are equal, else the lower one.
    kept: those of the middle range."""

    low: float
    high: float
    count: int
    kept: int

    @property
    def label(self) -> str:
        """How it is called."""
        return f"{self.low:g}" if self.low == self.high else f"{self.low:.2g} to {self.high:.2g}"


def bins(rates: Sequence[float], samples: int, above: float, below: float) -> list[Bin]:
    """Exactly 0, even parts between, exactly 1: the two ends are what teaches nothing."""
    parts = max(min(NUM_BETWEEN, samples - 1), 1)
    edges = [k / parts for k in range(parts + 1)]
    between = [r for r in rates if 0 < r < 1]

    def of(low: float, high: float, found: Sequence[float]) -> Bin:
        return Bin(low, high, len(found), sum(above < rate < below for rate in found))

    middle = [
        of(low, high, [r for r in between if low <= r < high]) for low, high in pairwise(edges)
    ]
    ends = [of(end, end, [r for r in rates if r == end]) for end in (0.0, 1.0)]
    return [ends[0], *middle, ends[1]]


def bar_lines(found: Sequence[Bin]) -> list[str]:
    """One line a bin: '#' for a kept share of a bar, '.' for the rest."""
    most = max((b.count for b in found), default=0) or 1
    lines: list[str] = []
    for entry in found:
        length = round(entry.count / most * WIDEST_BAR) or bool(entry.count)
        inside = round(length * entry.kept / entry.count) if entry.count else 0
        bar = "#" * inside + "." * (length - inside)
        lines.append(f"{entry.label:>12} {entry.count:>7,} {bar}".rstrip())
    return lines


def draw(found: Sequence[Bin], name: str, kept: int) -> str:
    """HTML. name: of the data."""
    labels = [entry.label for entry in found]
    figure = go.Figure()
    for title, color, counts in (
        ("kept", INSIDE, [entry.kept for entry in found]),
        ("left out", OUTSIDE, [entry.count - entry.kept for entry in found]),
    ):
        figure.add_bar(x=labels, y=counts, name=title, marker_color=color)
    total = sum(entry.count for entry in found)
    figure.update_layout(
        title=f"{escape(name)}: pass rate of {total:,} prompts, {kept:,} in the range",
        barmode="stack",
        template="plotly_white",
        xaxis={"title": "pass rate", "type": "category"},
        yaxis={"title": "prompts"},
    )
    return str(figure.to_html(include_plotlyjs=True, full_html=True))
