"""Rows in words, for tables and pictures. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WORK = {"generate": "generation", "update": "update", "step": "step", "memory": "update"}
METRICS = {
    "tokens_per_s": ("", "tokens/s"),
    "seconds": ("", "s"),
    "generation_s": ("generation of ", "s"),
    "update_s": ("update of ", "s"),
    "old_share": ("old log-probs in ", "share"),
    "peak_mb": ("peak memory, ", "MB"),
    "roofline_share": ("share of the roofline, ", "share"),
    "extra_factor": ("extra from early ends, ", "-"),
}
PRECISION = {"float32": "fp32", "bfloat16": "bf16"}
SHARES = ("old_share", "roofline_share")


def title(row: Mapping[str, Any]) -> str:
    """What the row measures, in one line."""
    settings = row["settings"]
    batch = settings["groups"] * settings["samples"]
    parts = [
        f"{METRICS[row['metric']][0]}{WORK[settings['kind']]}",
        settings["shape"]["name"],
        f"{batch} x {settings['prompt']}/{settings['response']}",
        PRECISION[settings["precision"]],
    ]
    if settings["kind"] != "generate":
        parts.append(f"z={settings['zero_share']:g}")
    if settings["length_share"] < 1:
        parts.append(f"mean/max {settings['length_share']:g}")
    if settings["microbatch"]:
        parts.append(f"micro-batch {settings['microbatch']}")
    if settings["kind"] != "generate" and settings["old"] == "trainer":
        parts.append("old scored")
    return ", ".join(parts)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table."""
    head = (
        "what",
        "unit",
        "gspo",
        "TRL",
        "its setting",
        "ratio (range)",
        "floor / target",
        "z",
        "cut share",
        "of roofline, gspo / TRL",
        "GFLOP/s, GB/s",
    )
    lines = [head, ("---",) + ("---:",) * (len(head) - 1), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    share = row["metric"] in SHARES
    spread = row["spread"] and row["spread"]["ratio"]
    ratio = number(row["ratio"]) if row["ratio"] is not None else "-"
    if spread:
        ratio += f" ({number(spread[0])} to {number(spread[1])})"
    ends = "" if row["quiet"] else " (disturbed)"
    wanted = "-"
    if row["floor"] is not None:
        wanted = " / ".join(
            percent(x) if share else f"{x:g}" for x in (row["floor"], row["target"])
        )
    roofline = row["roofline"]
    rates = row["calibration"]
    return (
        title(row) + ends,
        METRICS[row["metric"]][1],
        percent(row["ours"]) if share else number(row["ours"]),
        percent(row["peer"]) if share else number(row["peer"]),
        row["peer_setting"],
        ratio,
        wanted,
        "-" if row["settings"]["kind"] == "generate" else f"{row['z']:g}",
        "-" if row["cut_share"] is None else percent(row["cut_share"]),
        f"{percent(roofline['ours'])} / {percent(roofline['peer'])}" if roofline else "-",
        f"{rates[row['precision'] + '_gflops']:.0f}, {rates['copy_gb_per_s']:.0f}"
        if rates
        else "-",
    )


def number(value: float | None) -> str:
    """Three figures, thousands separated.

    >>> number(4689.3), number(12.3456), number(0.01234)
    ('4,689', '12.3', '0.0123')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(value: float | None) -> str:
    """
    >>> percent(0.4567)
    '46 %'
    """
    return "-" if value is None else f"{100 * value:.0f} %"
