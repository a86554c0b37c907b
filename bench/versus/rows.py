"""The rows of one workload, from what its repetitions answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.versus.inputs import group_rewards, recorded_lengths
from bench.versus.results import Row
from bench.versus.roofline import BYTES, Rates, generation_s, update_s
from bench.versus.summary import compare
from bench.versus.workloads import Workload

Answers = Sequence[Mapping[str, Any]]
Value = Callable[[Mapping[str, Any]], float]


def _seconds(name: str) -> Value:
    return lambda answer: answer["seconds"][name]


def _update(answer: Mapping[str, Any]) -> float:
    """Old log-probs and optimizer steps; nothing of the loop around them, on either side."""
    return answer["seconds"]["old"] + answer["seconds"]["optimize"]


def _speed(answer: Mapping[str, Any]) -> float:
    return answer["tokens"] / answer["seconds"]["generation"]


def _old_share(answer: Mapping[str, Any]) -> float:
    return answer["seconds"]["old"] / answer["seconds"]["step"]


#: kind -> (metric, its value, more is better), the main one first.
METRICS: dict[str, list[tuple[str, Value, bool]]] = {
    "generate": [("tokens_per_s", _speed, True)],
    "update": [("seconds", _update, False)],
    "step": [
        ("seconds", _seconds("step"), False),
        ("generation_s", _seconds("generation"), False),
        ("update_s", _update, False),
        ("old_share", _old_share, False),
    ],
    "memory": [
        ("peak_mb", lambda answer: answer["peak_mb"], False),
        ("seconds", _update, False),
    ],
}


def main_value(workload: Workload, answer: Mapping[str, Any]) -> float:
    """What settings of the peer are compared by: less is better."""
    _, value, more_is_better = METRICS[workload.kind][0]
    return -value(answer) if more_is_better else value(answer)


def rows_of(
    workload: Workload,
    ours: Answers,
    peer: Answers,
    calibration: Mapping[str, float],
    facts: Row,
) -> list[Row]:
    """One row a metric. facts: what all rows of the workload share."""
    shares = [a["cut_share"] for a in ours if a.get("cut_share") is not None]
    common = facts | {
        "workload": workload.name,
        "precision": workload.precision,
        "z": workload.zero_share,
        "old": workload.old if workload.kind != "generate" else None,
        "gate": ours[-1].get("gate"),
        "cut_share": sum(shares) / len(shares) if shares else None,
        "calibration": dict(calibration),
        "settings": asdict(workload),
    }
    floors = least_seconds(workload, calibration)
    rows = []
    for metric, value, more_is_better in METRICS[workload.kind]:
        a, b = [value(answer) for answer in ours], [value(answer) for answer in peer]
        rows.append(common | _row(workload, metric, a, b, more_is_better=more_is_better))
        if metric == "peak_mb":  # other processes do not change it
            rows[-1]["quiet"] = True
        if metric in floors:
            rows[-1]["roofline"] = _roofline(floors[metric], metric, rows[-1], ours)
    return [*rows, *_derived(workload, rows)]


def _row(
    workload: Workload, metric: str, ours: list[float], peer: list[float], *, more_is_better: bool
) -> Row:
    done = compare(ours, peer, more_is_better=more_is_better)
    return {
        "metric": metric,
        "ours": done.ours,
        "peer": done.peer,
        "ratio": None if metric == "old_share" else done.ratio,
        "spread": {
            "ours": done.ours_range,
            "peer": done.peer_range,
            "ratio": None if metric == "old_share" else done.ratio_range,
        },
        "roofline": None,
    } | _wanted(workload, metric)


def _wanted(workload: Workload, metric: str) -> Row:
    figure = next((f for f in workload.figures if f.metric == metric), None)
    return {"floor": figure and figure.floor, "target": figure and figure.target}


def _roofline(floor_s: float, metric: str, row: Row, ours: Answers) -> dict[str, float]:
    """Least seconds, and the share of it that each side reaches."""
    if metric == "tokens_per_s":
        tokens = ours[0]["tokens"]
        return {
            "seconds": floor_s,
            "ours": row["ours"] * floor_s / tokens,
            "peer": row["peer"] * floor_s / tokens,
        }
    return {"seconds": floor_s, "ours": floor_s / row["ours"], "peer": floor_s / row["peer"]}


def _derived(workload: Workload, rows: list[Row]) -> list[Row]:
    """Rows whose numbers are those of another: its share of the roofline; the extra factor."""
    done = []
    for figure in workload.figures:
        if figure.metric == "roofline_share" and rows[0]["roofline"]:
            shares = rows[0]["roofline"]
            numbers = {"ours": shares["ours"], "peer": shares["peer"], "ratio": None}
        elif figure.metric == "extra_factor":
            numbers = {"ours": None, "peer": None, "ratio": None}  # known beside the other row
        else:
            continue
        name = {"metric": figure.metric, "spread": None}
        done.append(rows[0] | name | numbers | _wanted(workload, figure.metric))
    return done


def least_seconds(workload: Workload, calibration: Mapping[str, float]) -> dict[str, float]:
    """The roofline of each metric that has one. A step whose responses end by themselves, and
    memory, have none."""
    rates = Rates(
        flops=calibration[f"{workload.precision}_gflops"] * 1e9,
        bytes=calibration["copy_gb_per_s"] * 1e9,
    )
    generation = generation_s(
        workload.shape,
        rates,
        groups=workload.groups,
        samples=workload.samples,
        prompt=workload.prompt,
        response=workload.response,
        width=BYTES[workload.precision],
    )
    if workload.kind == "generate":
        return {"tokens_per_s": generation} if workload.length_share == 1 else {}
    update = update_s(workload.shape, rates, groups=_trained_groups(workload))
    return {
        "update": {"seconds": update},
        "step": {
            "seconds": generation + update,
            "generation_s": generation,
            "update_s": update,
        },
        "memory": {"seconds": update},
    }[workload.kind]


def _trained_groups(workload: Workload) -> list[tuple[int, list[int]]]:
    """Prompt and response lengths of the groups whose rewards differ."""
    rewards, lengths = group_rewards(workload), recorded_lengths(workload)
    done = []
    for first in range(0, workload.batch, workload.samples):
        rows = slice(first, first + workload.samples)
        if len(set(rewards[rows])) > 1:
            done.append((workload.prompt, lengths[rows]))
    return done
