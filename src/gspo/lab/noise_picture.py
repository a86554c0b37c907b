"""Accuracy over sigma, and how far each objective is from GRPO on the same seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from gspo.lab.noise import Interval, Row
from gspo.lab.pictures import line, page, panels


def draw(rows: Sequence[Row]) -> str:
    """HTML. Bars: 95 % over seeds. A column a length."""
    lengths = list(dict.fromkeys(row.length for row in rows))
    titles = [
        f"{what}, {length} tokens"
        for what in ("accuracy", "accuracy less GRPO's")
        for length in lengths
    ]
    figure = panels(titles, rows=2)
    for column, length in enumerate(lengths, start=1):
        own = [row for row in rows if row.length == length]
        for number, label in enumerate(dict.fromkeys(row.arm.label for row in own)):
            curve = [row for row in own if row.arm.label == label]
            figure.add_trace(_accuracy(curve, number, first=column == 1), 1, column)
            figure.add_trace(_difference(curve, number), 2, column)
    figure.update_xaxes(title_text="sigma of the noise, nats", row=2)
    return page(figure, f"The toy over {rows[0].seeds} seeds; bars are 95 % intervals")


def _accuracy(rows: Sequence[Row], number: int, *, first: bool) -> go.Scatter:
    values = [(row.accuracy, row.interval) for row in rows]
    return _line(rows, values, number, showlegend=first)


def _difference(rows: Sequence[Row], number: int) -> go.Scatter:
    known = [row for row in rows if row.minus_grpo is not None]
    return _line(known, [row.minus_grpo for row in known if row.minus_grpo], number)


def _line(
    rows: Sequence[Row],
    values: Sequence[tuple[float, Interval]],
    number: int,
    *,
    showlegend: bool = False,
) -> go.Scatter:
    reach: list[Any] = [(ends[1] - mean) if ends else 0.0 for mean, ends in values]
    return line(
        [row.sigma for row in rows],
        [mean for mean, _ in values],
        rows[0].arm.label if rows else "",
        number,
        showlegend=showlegend,
        error_y={"type": "data", "array": reach, "thickness": 1},
    )
