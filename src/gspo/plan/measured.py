"""What a run of the recipe took, from its metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from gspo.errors import DataError
from gspo.recipes.schema import Recipe
from gspo.recorders.reader import open_run

PARTS = ("rollout", "judge", "score", "update", "publish", "other")
GIB = 2**30
#: Settings that times depend on.
SECTIONS = ("model", "rollout", "trainer", "engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Medians over the steps but the first, which warms up. seconds: by part of a step. peak_bytes:
    most that was resident. different: sections of the run's recipe that are not those of the plan."""

    run: str
    num_steps: int
    step_s: float
    seconds: Mapping[str, float]
    tokens_per_s: float | None
    sampled_per_s: float | None
    peak_bytes: int | None
    different: tuple[str, ...]


def measured(folder: Path, recipe: Recipe) -> Measured:
    """Raises DataError where the folder is no run, or none of its steps was timed."""
    run = open_run(folder)
    every = run.metrics()
    rows = [row for row in every if row.get("time/step_s") is not None]
    rows = rows[1:] if len(rows) > 1 else rows
    if not rows:
        raise DataError(
            f"{folder} has no step with times; plan without --run, or let it take a step"
        )
    seconds = {
        part: value for part in PARTS if (value := _median(rows, f"time/{part}_s")) is not None
    }
    peaks = [row["memory/peak_rss_gib"] for row in every if row.get("memory/peak_rss_gib")]
    tokens, rollout = _median(rows, "step/tokens"), seconds.get("rollout")
    planned: dict[str, Any] = recipe.model_dump(mode="json")
    was = run.recipe
    return Measured(
        run=str(folder),
        num_steps=len(rows),
        step_s=_median(rows, "time/step_s") or 0.0,
        seconds=seconds,
        tokens_per_s=_median(rows, "speed/tokens_per_s"),
        sampled_per_s=tokens / rollout if tokens and rollout else None,
        peak_bytes=round(max(peaks) * GIB) if peaks else None,
        different=tuple(name for name in SECTIONS if was.get(name) != planned[name]),
    )


def _median(rows: list[dict[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows if isinstance(row.get(name), int | float)]
    return median(values) if values else None
