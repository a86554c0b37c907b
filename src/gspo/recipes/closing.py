"""The closing picture of a run, from its folder alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gspo.recorders.reader import Run
from gspo.recorders.summary import Closing, SampleAnswer, Score

HISTOGRAM = "log_s/histogram"
NUM_SAMPLES = 3


def closing_of(run: Run) -> Closing:
    """Before is the evaluation after step 0, after the last one. The answers are those to the
    first held-out prompts, not chosen by how they came out."""
    scores = {
        event["step"]: _score(event) for event in run.events() if event["kind"] == "evaluated"
    }
    first, last = (min(scores), max(scores)) if scores else (None, None)
    metrics = run.metrics()
    return Closing(
        before=None if first is None else scores[first],
        after=None if last is None or last == first else scores[last],
        samples=[]
        if first is None or last is None or first == last
        else _samples(run, first, last),
        log_s=_histogram(metrics),
        band=_band(metrics),
        cut_share=_cut_share(metrics),
        run_path=str(run.path),
        next_command=_next_command(run),
    )


def _score(event: Mapping[str, Any]) -> Score:
    by_k = {
        int(name.removeprefix("eval/pass@")): value
        for name, value in event.items()
        if name.startswith("eval/pass@") and name != "eval/pass@1"
    }
    low, high = event["interval"]
    return Score(
        num_prompts=event["num_prompts"],
        pass_at_1=event["eval/pass@1"],
        interval=(low, high),
        pass_at_k=by_k,
        greedy=event["eval/greedy"],
    )


def _samples(run: Run, first: int, last: int) -> list[SampleAnswer]:
    columns = ["prompt", "answer", "sample", "greedy", "text", "reward"]
    before, after = (
        [
            row
            for row in run.evaluation(step, columns).to_pylist()
            if row["sample"] == 0 and not row["greedy"]
        ][:NUM_SAMPLES]
        for step in (first, last)
    )
    return [
        SampleAnswer(
            prompt=old["prompt"],
            expected=old["answer"],
            before=old["text"],
            after=new["text"],
            reward_before=old["reward"],
            reward_after=new["reward"],
        )
        for old, new in zip(before, after, strict=True)
    ]


def _histogram(metrics: list[dict[str, Any]]) -> dict[str, Any] | None:
    """log s of off-policy responses, summed over all steps."""
    found = [row[HISTOGRAM] for row in metrics if row.get(HISTOGRAM)]
    if not found:
        return None
    counts = [sum(column) for column in zip(*(h["counts"] for h in found), strict=True)]
    return {"edges": found[0]["edges"], "counts": counts}


def _band(metrics: list[dict[str, Any]]) -> tuple[float, float] | None:
    """The range in force at the end, in nats."""
    for row in reversed(metrics):
        low, high = row.get("clip/low"), row.get("clip/high")
        if low is not None and high is not None:
            return math.log1p(-low) if low < 1 else -math.inf, math.log1p(high)
    return None


def _cut_share(metrics: list[dict[str, Any]]) -> list[float | None]:
    """Mean over steps, by minibatch."""
    shares: list[float | None] = []
    number = 1
    while any(f"clip/cut_share_mb{number}" in row for row in metrics):
        values = [v for row in metrics if (v := row.get(f"clip/cut_share_mb{number}")) is not None]
        shares.append(sum(values) / len(values) if values else None)
        number += 1
    return shares


def _next_command(run: Run) -> str:
    """Training on one's own file with one's own reward function, from this run's model."""
    checkpoints = run.checkpoints()
    model = checkpoints[max(checkpoints)] / "model" if checkpoints else Path("MODEL")
    tokens = run.recipe.get("rollout", {}).get("max_tokens", 64)
    return (
        f"gspo train own-data model.path={model} data.path=examples/own_data.jsonl "
        f"data.eval_path=examples/own_data_held_out.jsonl "
        f"verifier.function=examples/own_reward.py:reward rollout.max_tokens={tokens} "
        f"optimizer.lr=3e-5 trainer.steps=20"
    )
