"""Streams of recorded numbers for the alarm tests: a healthy run, and what is changed in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Value = float | None | Callable[[int], float | None]

FIXED = {
    "step": 4,
    "kind": "clip_fixed",
    "low": 0.005,
    "high": 0.003,
    "low_held": "measured",
    "high_held": "measured",
    "low_quantile": -0.005,
    "high_quantile": 0.003,
}


def healthy(step: int) -> dict[str, float]:
    """A step of a run that learns: 256 responses, reward up to 0.9, 12 % cut."""
    reward = min(0.3 + 0.005 * step, 0.9)
    return {
        "reward/mean": reward,
        "reward/std": 0.45,
        "reward/min": 0.0,
        "reward/max": 1.0,
        "reward/pass_rate": reward,
        "reward/strict_mean": 0.9 * reward,
        "step/responses": 256.0,
        "grad/norm_max": 1.0,
        "groups/zero_variance": 0.2,
        "groups/all_solved": 0.1,
        "groups/all_failed": 0.1,
        "policy/entropy": max(0.15 - 0.001 * step, 0.03),
        "length/mean": 35.0,
        "length/max": 60.0,
        "length/truncated_share": 0.01,
        "clip/low": 0.005,
        "clip/high": 0.003,
        "clip/cut_share": 0.12,
        "clip/cut_share_positive": 0.12,
        "clip/outside_share": 0.15,
        "clip/cut_share/len_16-31": 0.14,
        "clip/cut_share/len_32-63": 0.1,
        "log_s/count/len_16-31": 60.0,
        "log_s/count/len_32-63": 100.0,
        "log_s/std": 0.004,
        "log_s/mean_mb2": 0.0001,
        "log_s/std_mb2": 0.002,
        "log_s/mean_mb3": 0.0002,
        "log_s/std_mb3": 0.003,
        "attribution/top1_share": 0.2,
        "gap/log_s_mean": 1e-8,
        "gap/log_s_std": 1e-7,
        "ratio/bounded": 0.0,
    }


def stream(num_steps: int = 60, changes: Mapping[str, Value] | None = None) -> list[dict[str, Any]]:
    """Rows as the run folder's reader gives them. changes: a value for every step, or a function
    of the step; None is null."""
    rows = []
    for step in range(1, num_steps + 1):
        values: dict[str, Any] = {"step": step, "time": "2026-01-01T00:00:00+00:00"}
        values |= healthy(step)
        for name, value in (changes or {}).items():
            values[name] = value(step) if callable(value) else value
        rows.append(values)
    return rows


def evaluation(step: int, greedy: float, num_prompts: int = 256) -> dict[str, Any]:
    """An "evaluated" event."""
    return {"step": step, "kind": "evaluated", "num_prompts": num_prompts, "eval/greedy": greedy}


def after(step: int, then: float, before: float) -> Callable[[int], float]:
    """`before`, and from `step` on `then`."""
    return lambda now: then if now >= step else before
