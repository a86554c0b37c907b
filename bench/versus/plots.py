"""The pictures of docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from bench.versus.results import Row
from bench.versus.text import title

mpl.use("Agg")
from matplotlib import pyplot as plt

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # told apart by colour-blind eyes
DPI = 110
#: What a panel is over, the metric in it, and its title.
CURVES = (
    ("length", "generation_s", "generation, s"),
    ("length", "update_s", "update, s"),
    ("vocabulary", "peak_mb", "peak of an update, MB"),
    ("vocabulary", "seconds", "update, s"),
)
ALONG = {"length": "response tokens", "vocabulary": "vocabulary"}


def ratios(rows: Sequence[Row], path: Path) -> bool:
    """Every figure that is a ratio, with its spread, floor and target. False if there is none."""
    shown = [row for row in rows if row["floor"] is not None and row["ratio"] is not None][::-1]
    if not shown:
        return False
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(shown) + 1.4), layout="constrained")
    for place, row in enumerate(shown):
        axes.plot([row["floor"]] * 2, [place - 0.32, place + 0.32], color=GREY, lw=2)
        axes.plot([row["target"]] * 2, [place - 0.32, place + 0.32], color=GREY, lw=1, ls=":")
        reached = BLUE if row["ratio"] >= row["floor"] else ORANGE
        if row["spread"] and row["spread"]["ratio"]:
            axes.plot(row["spread"]["ratio"], [place, place], color=reached, lw=1.5)
        axes.plot(row["ratio"], place, "o", color=reached, ms=7)
    axes.axvline(1, color=GREY, lw=0.6)
    axes.set_xscale("log")
    ticks = [1, 1.5, 2, 3, 4, 6, 10, 20, 40]
    most = max(max(row["ratio"], row["target"]) for row in shown)
    axes.set_xticks([tick for tick in ticks if tick <= 1.5 * most], minor=False)
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(shown)), [title(row) for row in shown], fontsize=8)
    axes.set_xlabel("times better than TRL (bar: floor, dots: target)")
    axes.set_ylim(-0.7, len(shown) - 0.3)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return True


def curves(rows: Sequence[Row], path: Path) -> bool:
    """Speed over length, memory and time over vocabulary, both sides, log-log. False if nothing of
    it is measured."""
    measured = {
        (curve, metric, name): found
        for curve, metric, name in CURVES
        if (found := [row for row in rows if _is_of(row, curve, metric)])
    }
    if not measured:
        return False
    wide = 3.75 * len(measured)
    figure, panels = plt.subplots(
        1, len(measured), figsize=(wide, 3.7), layout="constrained", squeeze=False
    )
    for axes, ((curve, _, name), found) in zip(panels[0], measured.items(), strict=True):
        _curve(axes, found, ALONG[curve], name)
    panels[0][0].legend()
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return True


def _is_of(row: Row, curve: str, metric: str) -> bool:
    return row["settings"]["curve"] == curve and row["metric"] == metric


def _curve(axes: Axes, chosen: Sequence[Row], along: str, name: str) -> None:
    over = [_along(row, along) for row in chosen]
    for side, color, label in (("ours", BLUE, "gspo"), ("peer", ORANGE, "TRL")):
        axes.plot(over, [row[side] for row in chosen], "o-", color=color, label=label)
    least = [row["roofline"] and row["roofline"]["seconds"] for row in chosen]
    if all(least):
        axes.plot(over, least, ":", color=GREY, label="roofline")
    axes.set(xscale="log", yscale="log", xlabel=along, title=name)
    axes.set_xticks(over, [f"{value:,}" for value in over])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())


def _along(row: Row, name: str) -> int:
    settings = row["settings"]
    return settings["response"] if name == "response tokens" else settings["shape"]["vocab"]
