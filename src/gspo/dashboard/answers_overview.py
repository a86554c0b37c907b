"""The head of a run: what it is, how it goes, what was said about it."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from gspo.dashboard.answers_runs import last_step, why
from gspo.dashboard.columns import MetricColumns, number_of, seconds_of
from gspo.dashboard.folder import RunFolderView
from gspo.dashboard.objective import CLIP_EVENTS, band_of, objective_of, setting
from gspo.dashboard.plain import finite, plain
from gspo.recorders.reader import PASS_AT_1, REWARD

NUM_RECENT_STEPS = 20  # whose median time is that of the steps to come
BUCKET = re.compile(r"/len_(\d+(?:-\d+)?)$")
PASS_AT_K = re.compile(r"eval/pass@(\d+)")
MACHINE_PATH = re.compile(r"(?:/|~|[A-Za-z]:[\\/])")


def overview(run: RunFolderView) -> dict[str, Any]:
    """Everything about the run that is not a curve and not a response."""
    metrics, events, recipe = run.metrics(), run.events(), run.recipe()
    status = run.status()
    started = start_of(run)
    updated = max(filter(math.isfinite, metrics.times), default=started)
    total = setting(recipe, "trainer", "steps", int)
    step = last_step(run)
    return {
        "id": run.id,
        "name": run.name,
        "status": status,
        "problem": why(run, status),
        "step": step,
        "total_steps": plain(total),
        "started": _iso(started),
        "updated": _iso(updated),
        "elapsed_s": finite(updated - started),
        "time_left_s": _time_left(metrics, total - step) if total and status == "running" else None,
        "objective": objective_of(recipe),
        "band": band_of(recipe, _recorded_band(metrics, events)),
        "minibatches": plain(setting(recipe, "trainer", "minibatches", int)) or 1,
        "group_size": plain(setting(recipe, "rollout", "group", int)) or 1,
        "cut_share_wanted": plain(setting(recipe, "objective", "cut_share", float)),
        "headline": _headline(metrics, events),
        "alarms": plain(run.alarms()),
        "events": plain(events),
        "damaged": run.damaged(),
        "names": metrics.names,
        "buckets": _buckets(metrics.names),
        "steps": run.steps(),
        "evals": run.steps("eval"),
        "info": _info(run.info()),
    }


def start_of(run: RunFolderView) -> float:
    """Seconds since 1970; NaN where nothing says when."""
    lines = [run.info().get("started"), *(event.get("time") for event in run.events()[:1])]
    times = [*map(seconds_of, lines), *run.metrics().times[:1]]
    return next(filter(math.isfinite, times), math.nan)


def _iso(seconds: float) -> str | None:
    if not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _time_left(metrics: MetricColumns, num_steps: int) -> float | None:
    """The median of the last steps, times those to come: a pause in between does not count."""
    times = [t for s, t in zip(metrics.steps, metrics.times, strict=True) if s > 0]
    recent = times[-NUM_RECENT_STEPS - 1 :]
    took = [b - a for a, b in pairwise(recent) if b >= a]
    return statistics.median(took) * max(num_steps, 0) if took else None


def _recorded_band(
    metrics: MetricColumns, events: list[dict[str, Any]]
) -> tuple[float, float] | None:
    """That of the last step, or of an event since: it holds from the step after it."""
    low, high = (metrics.last(name) for name in ("clip/low", "clip/high"))
    for event in reversed(events):
        if event.get("kind") in CLIP_EVENTS:
            if event["step"] >= (metrics.steps or [0])[-1]:
                low, high = (finite(number_of(event.get(side))) for side in ("low", "high"))
            break
    return None if low is None or high is None else (low, high)


def _headline(metrics: MetricColumns, events: list[dict[str, Any]]) -> dict[str, Any]:
    evaluated = [event for event in events if event.get("kind") == "evaluated"]
    before = min(evaluated, key=lambda event: event["step"], default=None)
    after = max(evaluated, key=lambda event: event["step"], default=None)
    by_k = {m[1]: after[name] for name in after or {} if after and (m := PASS_AT_K.fullmatch(name))}
    return {
        "reward": metrics.last(REWARD),
        "reward_before": metrics.first(REWARD),
        "pass_at_1": _score(after),
        "pass_at_1_before": None if before is after else _score(before),
        "pass_at_k": {k: finite(number_of(by_k[k])) for k in sorted(by_k, key=int) if k != "1"},
        "greedy": finite(number_of((after or {}).get("eval/greedy"))),
        "strict_reward": metrics.last("reward/strict_mean"),
        "strict_gap": metrics.last("reward/strict_gap"),
    }


def _score(event: Mapping[str, Any] | None) -> dict[str, Any] | None:
    value = finite(number_of((event or {}).get(PASS_AT_1)))
    if event is None or value is None:
        return None
    interval = event.get("interval")
    ends = interval if isinstance(interval, list) and len(interval) == 2 else [None, None]
    low, high = (finite(number_of(end)) for end in ends)
    prompts = finite(number_of(event.get("num_prompts")))
    return {
        "value": value,
        "low": low,
        "high": high,
        "step": event["step"],
        "num_prompts": None if prompts is None else int(prompts),
    }


def _buckets(names: list[str]) -> list[str]:
    found = {match[1] for name in names if (match := BUCKET.search(name))}
    return sorted(found, key=lambda bucket: int(bucket.partition("-")[0][:18]))


def _info(info: Mapping[str, Any]) -> Any:
    """run.json; of a path on the machine only the last part is kept."""
    return _without_paths(plain(info))


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_paths(inner) for inner in value]
    if isinstance(value, str) and MACHINE_PATH.match(value):
        return "…/" + re.split(r"[\\/]", value.rstrip("\\/"))[-1]
    return value
