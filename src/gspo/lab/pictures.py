"""What the pictures of the lab share: colours, layout, and a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

#: Told apart by colour-blind eyes (Okabe and Ito).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "x", "cross", "star")
DASHES = ("solid", "dash", "dot", "dashdot")
PANEL_PIXELS = 430
TITLE_PIXELS = 15


def panels(titles: Sequence[str], *, rows: int = 1) -> go.Figure:
    """Panels side by side, in as many rows."""
    figure = make_subplots(
        rows=rows,
        cols=len(titles) // rows,
        subplot_titles=titles,
        horizontal_spacing=0.09,
        vertical_spacing=0.16,
    )
    figure.update_layout(height=PANEL_PIXELS * rows)
    return figure


def line(
    xs: Sequence[float], ys: Sequence[float | None], name: str, number: int, **more: Any
) -> go.Scatter:
    """Points joined by a line, in the colour and with the marks of this number; after the last
    colour they start again, dashed and open."""
    color, again = COLORS[number % len(COLORS)], number // len(COLORS)
    symbol = SYMBOLS[number % len(SYMBOLS)] + ("-open" if again else "")
    return go.Scatter(
        x=list(xs),
        y=list(ys),
        name=name,
        legendgroup=name,
        marker={"symbol": symbol, "size": 8, "color": color},
        **{"mode": "lines+markers", "line": {"color": color, "dash": DASHES[again]}, **more},
    )


def page(figure: go.Figure, title: str) -> str:
    """HTML, the chart script included."""
    figure.update_layout(
        title=title,
        template="plotly_white",
        legend={"orientation": "h", "yref": "container", "y": 0.02, "yanchor": "bottom"},
        margin={"t": 90, "b": 110, "l": 70, "r": 30},
    )
    figure.update_annotations(font_size=TITLE_PIXELS)
    return str(figure.to_html(include_plotlyjs=True, full_html=True))
