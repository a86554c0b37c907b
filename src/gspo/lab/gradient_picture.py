"""Rescales, never rotates: cosine and length of the noisy gradient over sigma."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from gspo.lab.gradient import Row
from gspo.lab.pictures import line, page, panels

SIGNS = {1: "A = +1", -1: "A = -1"}


def draw(rows: Sequence[Row]) -> str:
    """HTML. Bars in the last panel: the spread of the length over responses."""
    turned = [f"cosine with the clean gradient, {sign}" for sign in SIGNS.values()]
    figure = panels([*turned, "length, clean = 1, A = -1"])
    for number, label in enumerate(dict.fromkeys(row.arm.label for row in rows)):
        own = [row for row in rows if row.arm.label == label]
        for panel, sign in enumerate(SIGNS, start=1):
            curve = [row for row in own if row.advantage == sign]
            figure.add_trace(_cosine(curve, number, first=panel == 1), 1, panel)
        figure.add_trace(_scale([row for row in own if row.advantage == -1], number), 1, 3)
    figure.update_xaxes(title_text="sigma of the noise, nats")
    return page(
        figure,
        f"The gradient of one response of {rows[0].length} tokens under noise on its old log-probs",
    )


def _cosine(rows: Sequence[Row], number: int, *, first: bool) -> go.Scatter:
    sigmas, cosines = [row.sigma for row in rows], [row.cosine for row in rows]
    return line(sigmas, cosines, rows[0].arm.label, number, showlegend=first)


def _scale(rows: Sequence[Row], number: int) -> go.Scatter:
    return line(
        [row.sigma for row in rows],
        [row.scale for row in rows],
        rows[0].arm.label,
        number,
        showlegend=False,
        error_y={"type": "data", "array": [row.scale_spread for row in rows], "thickness": 1},
    )
