"""Cut share and kept weight against the clip range, by length: one HTML page that needs nothing
else, the chart script included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from gspo.replay.compare import FEWEST_IN_BUCKET, Replay, Row
from gspo.replay.totals import Shares

PANELS = {
    "cut_share": "cut share",
    "kept_weight": "kept gradient weight",
    "ess": "effective sample size",
}
#: From short to long; the line over every length is black and wide.
COLORS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#b5de2b", "#fde725")
PIXELS_A_PANEL = 280


def draw(replay: Replay, swept: Sequence[Row], name: str) -> str:
    """HTML. swept: rows of `candidates.sweep`, of one objective; name: of the run."""
    objective = swept[0].candidate.objective
    figure = make_subplots(
        rows=len(PANELS), cols=1, shared_xaxes=True, subplot_titles=list(PANELS.values())
    )
    lengths = _lengths(swept)
    for panel, measure in enumerate(PANELS, start=1):
        for number, length in enumerate(lengths):
            figure.add_trace(_line(swept, measure, length, _color(number, len(lengths))), panel, 1)
        figure.add_trace(_line(swept, measure, None, "black"), panel, 1)
        for distance, label in _own_range(replay, objective.name):
            # The stubs leave the types of a shape's fields open.
            add_line: Any = figure.add_vline
            add_line(x=distance, row=panel, col=1, line_dash="dot", line_width=1)
            # A line's own label would stand at 10^x of a logarithmic axis.
            figure.add_annotation(
                x=math.log10(distance), y=1, text=label, showarrow=False, yshift=8, row=panel, col=1
            )
        figure.update_yaxes(range=[0, 1.02], row=panel, col=1)
    unit = "nats" if objective.name == "gmpo" else "distance from ratio 1"
    figure.update_xaxes(type="log")
    figure.update_xaxes(title_text=f"range, the same below and above ({unit})", row=len(PANELS))
    first, last = replay.steps
    figure.update_layout(
        title=f"{escape(name)}, steps {first} to {last}: the same rollouts under other ranges of "
        f"{objective.name}",
        legend_title="length in tokens",
        height=PIXELS_A_PANEL * len(PANELS),
        template="plotly_white",
    )
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def _lengths(swept: Sequence[Row]) -> list[str]:
    """Buckets with enough responses; they are the same under every range."""
    return [
        bucket.length
        for bucket in swept[0].buckets
        if bucket.length is not None and bucket.num_responses >= FEWEST_IN_BUCKET
    ]


def _color(number: int, count: int) -> str:
    return COLORS[number * (len(COLORS) - 1) // max(count - 1, 1)]


def _line(swept: Sequence[Row], measure: str, length: str | None, color: str) -> go.Scatter:
    points = [(row.candidate.clip, getattr(_of(row, length), measure)) for row in swept]
    return go.Scatter(
        x=[clip.high for clip, _ in points if clip is not None],
        y=[value for _, value in points],
        name=length or "every length",
        legendgroup=length or "",
        showlegend=measure == "cut_share",
        mode="lines+markers",
        line={"color": color, "width": 3 if length is None else 1.5},
    )


def _of(row: Row, length: str | None) -> Shares:
    if length is None:
        return row.overall
    return next(bucket for bucket in row.buckets if bucket.length == length)


def _own_range(replay: Replay, objective: str) -> list[tuple[float, str]]:
    """The run's own range, last one in force, where it is on the same axis."""
    own = replay.own.candidate
    if own.objective.name != objective or own.clip is None or own.clip_form == "length_fair":
        return []
    distances = [(own.clip.low, "own low"), (own.clip.high, "own high")]
    return [(distance, label) for distance, label in distances if distance > 0]
