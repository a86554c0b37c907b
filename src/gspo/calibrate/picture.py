"""The fit as one HTML page that needs nothing else, the chart script included."""

from __future__ import annotations

from html import escape
from typing import Any

import plotly.graph_objects as go
import torch
from jaxtyping import Bool
from plotly.subplots import make_subplots
from torch import Tensor

from gspo.calibrate.fit import ClipFit

POSITIVE, NEGATIVE, FIXED, FAIR = "#21918c", "#d1495b", "#333333", "#e09f3e"
TITLES = (
    "log s, and the range with its 95 % interval",
    "spread and mean of log s, by length",
    "share cut, by length",
    "range over the run, and what its clip cut",
)
NUM_BINS = 81
TAIL = 0.005  # of the responses beyond each end of the histogram, so that one cannot flatten it
PANEL_PIXELS = 380
TITLE_PIXELS = 14  # of a panel: the longest fits beside its neighbour on a page of 900


def draw(fit: ClipFit, name: str) -> str:
    """HTML. name: of the run."""
    figure = make_subplots(
        rows=2,
        cols=2,
        subplot_titles=TITLES,
        specs=[[{}, {}], [{}, {"secondary_y": True}]],
        horizontal_spacing=0.14,
        vertical_spacing=0.2,
    )
    _draw_histogram(figure, fit)
    _draw_spread(figure, fit)
    _draw_buckets(figure, fit)
    _draw_spans(figure, fit)
    figure.update_layout(
        title=f"{escape(name)}: range for a cut share of {fit.cut_share:g} from "
        f"{fit.num_responses:,} responses; recommended: {fit.recommend.replace('_', ' ')}",
        height=2 * PANEL_PIXELS,
        template="plotly_white",
        bargap=0,
        legend={"orientation": "h", "y": -0.12},
    )
    figure.update_annotations(font_size=TITLE_PIXELS)
    return str(figure.to_html(include_plotlyjs=True, full_html=True))


def _draw_histogram(figure: go.Figure, fit: ClipFit) -> None:
    log_s, advantage = fit.samples.log_s, fit.samples.advantage
    low, high = fit.fixed.clip.band(fit.samples.length)
    ends = log_s.quantile(torch.tensor([TAIL, 1 - TAIL], dtype=torch.float64)).tolist()
    first, last = min(ends[0], 1.2 * low), max(ends[1], 1.2 * high)
    width = (last - first) / NUM_BINS
    centers = [first + (k + 0.5) * width for k in range(NUM_BINS)]

    def add(rows: Bool[Tensor, "S"], label: str, color: str) -> None:
        counts = torch.histc(log_s[rows], bins=NUM_BINS, min=first, max=last)
        figure.add_bar(
            x=centers, y=counts.tolist(), name=label, marker_color=color, opacity=0.6, row=1, col=1
        )

    add(advantage > 0, "A > 0", POSITIVE)
    add(advantage < 0, "A < 0", NEGATIVE)
    figure.update_layout(barmode="overlay")
    add_line: Any = figure.add_vline  # the stubs know `row` as text only
    for bound in (low, high):
        add_line(x=bound, line_color=FIXED, row=1, col=1)
    low_ends, high_ends = fit.interval["low"], fit.interval["high"]
    for end in (-low_ends[0], -low_ends[1], *high_ends):
        add_line(x=end, line_color=FIXED, line_dash="dot", row=1, col=1)
    figure.update_xaxes(title_text="log s, nats", row=1, col=1)
    figure.update_yaxes(title_text="responses", row=1, col=1)


def _draw_spread(figure: go.Figure, fit: ClipFit) -> None:
    known = [bucket for bucket in fit.buckets if bucket.spread]
    names, spreads = [b.length for b in known], [b.spread for b in known]
    figure.add_scatter(
        x=names, y=spreads, name="spread", mode="lines+markers", line_color=FIXED, row=1, col=2
    )
    figure.add_scatter(
        x=names,
        y=[abs(b.mean) for b in known],
        name="|mean|",
        mode="lines+markers",
        line_color=FAIR,
        row=1,
        col=2,
    )
    exponent = fit.law.noise
    said = f"{exponent.value:.2f} ({exponent.low:.2f} to {exponent.high:.2f})"
    figure.update_xaxes(
        title_text=f"length in tokens (exponent {said if exponent.is_known else 'unknown'})",
        type="category",
        row=1,
        col=2,
    )
    figure.update_yaxes(title_text="nats", type="log", row=1, col=2)


def _draw_buckets(figure: go.Figure, fit: ClipFit) -> None:
    names = [bucket.length for bucket in fit.buckets]
    lines = (
        ("fixed", FIXED, [bucket.cut_share for bucket in fit.buckets]),
        ("length fair", FAIR, [bucket.cut_share_length_fair for bucket in fit.buckets]),
    )
    for label, color, shares in lines:
        figure.add_scatter(
            x=names, y=shares, name=label, mode="lines+markers", line_color=color, row=2, col=1
        )
    add_line: Any = figure.add_hline
    add_line(y=fit.cut_share, line_dash="dot", row=2, col=1)
    figure.update_xaxes(title_text="length in tokens", type="category", row=2, col=1)
    figure.update_yaxes(title_text="share cut", rangemode="tozero", row=2, col=1)


def _draw_spans(figure: go.Figure, fit: ClipFit) -> None:
    steps = [f"{span.first_step} to {span.last_step}" for span in fit.spans]
    for label, color, distances in (
        ("low", NEGATIVE, [span.low for span in fit.spans]),
        ("high", POSITIVE, [span.high for span in fit.spans]),
    ):
        figure.add_scatter(
            x=steps, y=distances, name=label, mode="lines+markers", line_color=color, row=2, col=2
        )
    figure.add_scatter(
        x=steps,
        y=[span.cut_in_run for span in fit.spans],
        name="cut in the run",
        mode="markers",
        marker_color=FIXED,
        row=2,
        col=2,
        secondary_y=True,
    )
    figure.update_xaxes(title_text="steps", type="category", row=2, col=2)
    figure.update_yaxes(
        title_text="distance from ratio 1", type="log", row=2, col=2, secondary_y=False
    )
    figure.update_yaxes(
        title_text="share cut",
        range=[0, 1],
        tickmode="array",
        tickvals=[0, 0.25, 0.5, 0.75, 1],
        showgrid=False,
        row=2,
        col=2,
        secondary_y=True,
    )
