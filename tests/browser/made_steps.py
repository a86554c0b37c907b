"""Made-up steps of a run that learns: responses with plausible numbers, and the statistics that
the trainer would record of them. The same seed gives the same step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gspo.diagnostics.attribution import attribute, attribution_stats
from gspo.diagnostics.clipping import UpdatedResponses, clip_stats
from gspo.diagnostics.histogram import log_s_stats
from gspo.diagnostics.rollouts import engine_gap_stats, rollout_stats
from gspo.recorders.base import ResponseRow
from gspo.segments import Segments
from gspo.stats import Max, Mean, Stats, Sum
from gspo.trainer.reward_parts import part_stats

#: Token id -> its text.
PIECES = (
    "<pad>", "<eos>", *"0123456789+=;.>", " the", " sum", " of", " and", " is", " carry", " so",
    " then", " answer", " therefore", "\n", " wait", " check", " again", " because",
)  # fmt: skip
EOS = 1
SOURCES = ("sums", "words", "mixed")
SHORTEST, LONGEST = 6, 180  # tokens: six length buckets
PROVISIONAL = (-math.expm1(-0.1), math.expm1(0.1))
MEASURED = (1.1e-3, 1.3e-3)
NUM_MEASURED = 3  # steps before the range is fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a run's steps look like. hostile: texts that stand in for prompts, responses and
    reasons in turn."""

    responses: int = 64
    group: int = 8
    minibatches: int = 4
    seed: int = 0
    total_steps: int = 40
    token_objective: bool = False
    hostile: Sequence[str] = ()


def clip_range(step: int) -> tuple[float, float]:
    """Distances from ratio 1 in force in a step."""
    if step <= NUM_MEASURED:
        return PROVISIONAL
    return MEASURED if step <= 2 * NUM_MEASURED else (0.8 * MEASURED[0], 0.8 * MEASURED[1])


def made_step(shape: Shape, step: int) -> tuple[list[ResponseRow], Stats]:
    """One step, counted from 1."""
    random = np.random.default_rng([shape.seed, step])
    progress = min(step / max(shape.total_steps, 1), 1.0)
    num_groups = shape.responses // shape.group
    difficulty = random.beta(1.2, 1.2, num_groups)
    solved = random.random((num_groups, shape.group)) < np.clip(
        difficulty[:, None] + 0.6 * progress - 0.15, 0, 1
    )
    reward = np.where(solved, 1.0, np.where(random.random(solved.shape) < 0.3, 0.25, 0.0))
    reward[random.random(solved.shape) < 0.01] = np.nan
    advantage = _advantages(reward)
    rows = [
        _row(shape, step, group, sample, reward[group, sample], advantage[group, sample], random)
        for group in range(num_groups)
        for sample in range(shape.group)
    ]
    return rows, _stats(shape, step, rows, random)


def _advantages(reward: np.ndarray) -> np.ndarray:
    mean = np.nanmean(reward, axis=1, keepdims=True)
    std = np.nanstd(reward, axis=1, ddof=1, keepdims=True)
    scaled = np.where(std > 0, (reward - mean) / np.where(std > 0, std, 1.0), 0.0)
    return np.where(np.isnan(scaled), 0.0, scaled)


def _row(
    shape: Shape,
    step: int,
    group: int,
    sample: int,
    reward: float,
    advantage: float,
    random: np.random.Generator,
) -> ResponseRow:
    length = int(np.exp(random.uniform(np.log(SHORTEST), np.log(LONGEST))))
    tokens = [*random.integers(2, len(PIECES), length - 1).tolist(), EOS]
    minibatch = 1 + group * shape.minibatches // max(shape.responses // shape.group, 1)
    old = -random.exponential(0.3, length).astype(np.float32)
    spread = 4e-3 * math.sqrt(minibatch - 1)
    moved = random.normal(2e-4 * np.sign(advantage), 1.0, length) * spread
    moved *= np.where(random.random(length) < 0.1, 4.0, 0.6)  # few tokens hold most of it
    logp = old + moved.astype(np.float32)
    ran = not math.isnan(reward) and (advantage != 0 or minibatch == 1)
    log_s = float((logp - old).astype(np.float64).mean()) if ran else None
    cut_low, cut_high = _cut(shape, step, logp - old, log_s, advantage, minibatch)
    number = group * shape.group + sample
    text = "".join(PIECES[token] for token in tokens[:-1])
    hostile = shape.hostile[number % len(shape.hostile)] if shape.hostile else None
    failed = math.isnan(reward)
    return ResponseRow(
        prompt_id=f"{SOURCES[group % 3]}/{step}-{group}",
        source=SOURCES[group % 3],
        group=group,
        sample=sample,
        prompt=hostile or f"What is {group + 10} + {step + 20}?",
        text=hostile or text,
        tokens=tokens,
        reward=None if failed else float(reward),
        parts={} if failed else {"answer": float(reward == 1), "format": float(reward > 0)},
        failure=(hostile or "worker killed after 2 s") if failed else None,
        advantage=float(advantage),
        length=length,
        finish="length" if length > 0.95 * LONGEST else "stop",
        version=step - 1,
        minibatch=minibatch,
        engine_logp=(old + random.normal(0, 1e-6, length).astype(np.float32)).tolist(),
        old_logp=old.tolist() if ran else None,
        logp=logp.tolist() if ran else None,
        log_s=log_s,
        cut_low=cut_low,
        cut_high=cut_high,
        loss=-float(advantage) if ran else None,
        skipped=None if ran else "zero_advantage",
    )


def _cut(
    shape: Shape,
    step: int,
    log_ratio: np.ndarray,
    log_s: float | None,
    advantage: float,
    minibatch: int,
) -> tuple[int, int]:
    """Units cut below and above: tokens, or the whole response."""
    if log_s is None or minibatch == 1:
        return 0, 0
    low, high = (0.01, 0.01) if shape.token_objective else clip_range(step)
    units = log_ratio if shape.token_objective else np.array([log_s])
    below = int((units < math.log1p(-low)).sum()) if advantage < 0 else 0
    above = int((units > math.log1p(high)).sum()) if advantage > 0 else 0
    return below, above


def _stats(
    shape: Shape, step: int, rows: Sequence[ResponseRow], random: np.random.Generator
) -> Stats:
    reward = [math.nan if row.reward is None else row.reward for row in rows]
    stats = rollout_stats(
        torch.tensor(reward, dtype=torch.float64),
        torch.tensor([row.group for row in rows]),
        torch.tensor([row.length for row in rows]),
        torch.tensor([row.finish == "length" for row in rows]),
    )
    responses = _updated(shape, rows)
    low, high = clip_range(step)
    if shape.token_objective:
        stats |= clip_stats(responses)
    else:
        stats |= clip_stats(responses, (math.log1p(-low), math.log1p(high)))
        stats |= {"clip/low": Mean(low, 1), "clip/high": Mean(high, 1)}
    return (
        stats
        | part_stats(rows)
        | log_s_stats(responses)
        | _token_stats(responses, rows)
        | _costs(rows, random)
    )


def _updated(shape: Shape, rows: Sequence[ResponseRow]) -> UpdatedResponses:
    minibatch = torch.tensor([row.minibatch or 1 for row in rows])
    return UpdatedResponses(
        log_s=torch.tensor([math.nan if row.log_s is None else row.log_s for row in rows]),
        advantage=torch.tensor([row.advantage for row in rows]),
        lengths=torch.tensor([row.length for row in rows]),
        minibatch=minibatch,
        off_policy=minibatch > 1,
        cut_low=torch.tensor([row.cut_low for row in rows]),
        cut_high=torch.tensor([row.cut_high for row in rows]),
        unit="token" if shape.token_objective else "sequence",
    )


def _token_stats(responses: UpdatedResponses, rows: Sequence[ResponseRow]) -> Stats:
    old, new, engine = (
        torch.tensor([value for row in rows for value in of(row)], dtype=torch.float32)
        for of in (
            lambda row: row.old_logp or [math.nan] * row.length,
            lambda row: row.logp or [math.nan] * row.length,
            lambda row: row.engine_logp,
        )
    )
    segments = Segments.from_lengths([row.length for row in rows])
    ran = old.isfinite()
    lengths = [row.length for row in rows if row.logp is not None]
    moved = (new - old)[ran].double()
    return {
        **attribution_stats(responses, attribute(new, old, segments)),
        **engine_gap_stats(engine[ran], old[ran], Segments.from_lengths(lengths)),
        "policy/entropy": Mean(-engine.double().sum(), engine.numel()),
        "policy/kl_old": Mean((moved.exp() - 1 - moved).sum(), moved.numel()),
        "ratio/max": Max(float(moved.exp().max())),
    }


def _costs(rows: Sequence[ResponseRow], random: np.random.Generator) -> Stats:
    """Time, memory, optimizer: numbers about a machine that is not there."""
    num_tokens = sum(row.length for row in rows)
    shares = {"rollout": 5.0, "judge": 0.1, "score": 0.6, "update": 3.2, "publish": 0.05}
    took = {name: share * random.uniform(0.9, 1.1) for name, share in shares.items()}
    total = sum(took.values()) * 1.02
    skipped = sum(row.logp is None for row in rows)
    return {
        **{f"time/{name}_s": Sum(seconds) for name, seconds in took.items()},
        "time/other_s": Sum(total - sum(took.values())),
        "time/step_s": Sum(total),
        "speed/tokens_per_s": Mean(num_tokens, total),
        "memory/peak_rss_gib": Max(1.2 + 0.01 * random.random()),
        "step/groups": Sum(len({row.group for row in rows})),
        "step/responses": Sum(len(rows)),
        "step/tokens": Sum(num_tokens),
        "grad/norm": Mean(random.uniform(0.2, 0.6), 1),
        "grad/norm_max": Max(random.uniform(0.6, 1.2)),
        "grad/clipped": Mean(int(random.random() < 0.2), 4),
        "loss/policy": Mean(random.normal(0, 1e-3), 1),
        "optimizer/lr": Mean(3e-5, 1),
        "update/skipped_responses": Sum(skipped),
        "update/skipped_backward": Sum(0),
        "update/skipped_steps": Sum(0),
        "weight/kept_share": Mean(random.uniform(0.8, 0.95), 1),
        "weight/ess_share": Mean(random.uniform(0.6, 0.9), 1),
        "gate/open": Mean(1, 1),
        "gate/bias": Mean(random.normal(0, 1e-4), 1),
        "gate/noise": Mean(random.uniform(5e-4, 2e-3), 1),
        "reward/strict_mean": Mean(sum(r.reward == 1 for r in rows), len(rows)),
        "reward/strict_gap": Mean(sum(r.reward == 0.25 for r in rows) * 0.25, len(rows)),
    }
