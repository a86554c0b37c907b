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
    axes.set_xlabel("times better than the peer's best setting   (bar: floor, dots: target)")
    axes.set_ylim(-0.7, len(shown) - 0.3)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return True


def curves(rows: Sequence[Row], path: Path) -> bool:
    """Speed over length, memory and time over vocabulary, both sides, log-log. False if nothing of
    it is measured."""
    lengths = [row for row in rows if row["settings"]["curve"] == "length"]
    vocabularies = [row for row in rows if row["settings"]["curve"] == "vocabulary"]
    if not lengths and not vocabularies:
        return False
    figure, panels = plt.subplots(1, 4, figsize=(15, 3.7), layout="constrained")
    _curve(panels[0], lengths, "generation_s", "response tokens", "generation, s")
    _curve(panels[1], lengths, "update_s", "response tokens", "update, s")
    _curve(panels[2], vocabularies, "peak_mb", "vocabulary", "peak of an update, MB")
    _curve(panels[3], vocabularies, "seconds", "vocabulary", "update, s")
    panels[0 if lengths else 2].legend()
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return True


def _curve(axes: Axes, rows: Sequence[Row], metric: str, along: str, name: str) -> None:
    chosen = [row for row in rows if row["metric"] == metric]
    if not chosen:
        axes.set_visible(False)
        return
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
