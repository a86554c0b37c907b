"""Rows of the lab as one JSON object each, and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gspo.lab.clip_range import Row as ClipRangeRow
from gspo.lab.gradient import Row as GradientRow
from gspo.lab.noise import Interval
from gspo.lab.noise import Row as NoiseRow

Table = tuple[Sequence[str], list[tuple[Any, ...]]]

#: Column -> figure of a row.
CLIP_RANGE_COLUMNS = {
    "token spread": "token_spread",
    "log s mean": "log_s_mean",
    "log s spread": "log_s_spread",
    "tokens outside": "token_outside",
    "outside, fixed": "response_outside",
    "outside, length fair": "response_outside_length_fair",
}


def clip_range_json(row: ClipRangeRow) -> dict[str, Any]:
    """`exact` holds the closed forms of the figures beside it."""
    simulated = asdict(row.simulated)
    return {"length": row.length, **asdict(row.noise), **simulated, "exact": asdict(row.exact)}


def clip_range_table(rows: Sequence[ClipRangeRow]) -> Table:
    """Simulated, and in brackets the closed form."""
    return ("length", *CLIP_RANGE_COLUMNS), [
        (
            row.length,
            *(
                f"{_places(getattr(row.simulated, name))} ({_places(getattr(row.exact, name))})"
                for name in CLIP_RANGE_COLUMNS.values()
            ),
        )
        for row in rows
    ]


def gradient_json(row: GradientRow) -> dict[str, Any]:
    """`clip` is null for an objective without one."""
    return {
        "objective": row.arm.name,
        "clip": row.arm.clip,
        "length": row.length,
        "sigma": row.sigma,
        "advantage": row.advantage,
        "cosine": row.cosine,
        "cosine_lowest": row.lowest,
        "cosine_limit": row.limit,
        "scale": row.scale,
        "scale_spread": row.scale_spread,
        "cut_share": row.cut_share,
    }


def gradient_table(rows: Sequence[GradientRow]) -> Table:
    """One line a row."""
    header = ("objective", "clip", "A", "sigma", "cosine", "lowest", "limit")
    return (*header, "length", "its spread", "cut"), [
        (
            row.arm.name,
            _range(row.arm.clip),
            f"{row.advantage:+d}",
            row.sigma,
            *(row.cosine, row.lowest, row.limit),
            *(row.scale, row.scale_spread, row.cut_share),
        )
        for row in rows
    ]


def noise_json(row: NoiseRow) -> dict[str, Any]:
    """`minus_grpo` is null for GRPO itself, and where GRPO did not run."""
    less = row.minus_grpo
    return {
        "objective": row.arm.name,
        "length": row.length,
        "sigma": row.sigma,
        "clip": row.arm.clip,
        "accuracy": row.accuracy,
        "interval": row.interval,
        "minus_grpo": None if less is None else {"mean": less[0], "interval": less[1]},
        "cut_share": row.cut_share,
        "cut_share_all": row.cut_share_all,
        "seeds": row.seeds,
    }


def noise_table(rows: Sequence[NoiseRow]) -> Table:
    """One line a row, to four places."""
    header = ("objective", "clip", "length", "sigma", "accuracy", "95 % from", "to")
    return (*header, "less grpo", "from", "to", "cut", "of all"), [
        (
            row.arm.name,
            _range(row.arm.clip),
            row.length,
            row.sigma,
            *_rounded(row.accuracy, row.interval),
            *(_rounded(*row.minus_grpo) if row.minus_grpo else (None, None, None)),
            round(row.cut_share, 4),
            round(row.cut_share_all, 4),
        )
        for row in rows
    ]


def _places(value: float) -> str:
    """Four places, and no minus before a zero."""
    return f"{round(value, 4) + 0.0:.4f}"


def _range(clip: tuple[float, float] | None) -> str | None:
    return None if clip is None else f"{clip[0]:g}, {clip[1]:g}"


def _rounded(mean: float, interval: Interval) -> tuple[float | None, ...]:
    ends = interval or (None, None)
    return round(mean, 4), *(None if end is None else round(end, 4) for end in ends)
