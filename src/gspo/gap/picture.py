"""The gap by length, position and probability, with the band that it is judged by: one HTML page
that needs nothing else, the chart script included."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gspo.diagnostics.gap import MAX_BIAS, GapReport, Part

PANELS = {
    "by_length": "mean of a response, by length",
    "by_position": "token, by position",
    "by_probability": "token, by probability under the trainer",
}
PIXELS_A_PANEL = 280


def draw(report: GapReport, band: float, name: str) -> str:
    """HTML. band: the narrower side of the clip range, nats; name: of the run or recipe."""
    figure = make_subplots(rows=len(PANELS), cols=1, subplot_titles=list(PANELS.values()))
    for panel, field in enumerate(PANELS, start=1):
        figure.add_trace(_bars(getattr(report, field)), panel, 1)
    # The stubs leave the types of a shape's fields open.
    add_band: Any = figure.add_hrect
    limit = MAX_BIAS * band
    add_band(y0=-limit, y1=limit, row=1, col=1, fillcolor="green", opacity=0.2, line_width=0)
    figure.update_yaxes(title_text="nats")
    figure.update_layout(
        title=f"{escape(name)}: trainer minus engine log-prob, mean and spread; green is a safe bias",
        showlegend=False,
        height=PIXELS_A_PANEL * len(PANELS),
        template="plotly_white",
    )
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def _bars(parts: Sequence[Part]) -> go.Scatter:
    return go.Scatter(
        x=[part.name for part in parts],
        y=[part.mean for part in parts],
        error_y={"type": "data", "array": [part.std or 0.0 for part in parts]},
        text=[f"{part.count} values" for part in parts],
        mode="markers",
        marker={"size": 9, "color": "#0072b2"},
    )
