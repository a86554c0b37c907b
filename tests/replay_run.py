"""Run folders with simulated log-probs, recorded as a run under a given objective would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from gspo.diagnostics.weights import surrogate_of
from gspo.recorders.base import ResponseRow
from gspo.recorders.reader import Run, open_run
from gspo.recorders.run_folder import RunFolder
from gspo.segments import Segments
from gspo.settings import ObjectiveSettings
from gspo.stats import Mean
from tests.recorder_rows import row

SIGMA = 0.05  # spread of a token's log-ratio, nats


def simulated(
    objective: ObjectiveSettings,
    *,
    seed: int = 0,
    num_responses: int = 16,
    longest: int = 40,
    minibatches: int = 2,
) -> list[ResponseRow]:
    """One step: the first minibatch on-policy, the others moved by independent noise."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (num_responses,), generator=generator)
    segments = Segments.from_lengths(lengths)
    minibatch = torch.arange(num_responses) % minibatches + 1
    old_logp = -torch.rand(segments.num_tokens, generator=generator)
    noise = SIGMA * torch.randn(segments.num_tokens, generator=generator)
    logp = old_logp + noise * segments.spread(minibatch > 1)
    advantage = torch.randint(-1, 2, (num_responses,), generator=generator).float()
    done = surrogate_of(objective, logp, old_logp, advantage, segments)
    cuts = [
        cut if objective.unit == "sequence" else segments.sum(cut.float()).long()
        for cut in (done.cut_low, done.cut_high)
    ]
    log_s = segments.mean(logp - old_logp)
    parts = zip(logp.split(lengths.tolist()), old_logp.split(lengths.tolist()), strict=True)
    return [
        row(
            sample=number,
            tokens=list(range(len(now))),
            engine_logp=old.tolist(),
            old_logp=old.tolist(),
            logp=now.tolist(),
            length=len(now),
            advantage=float(advantage[number]),
            minibatch=int(minibatch[number]),
            log_s=float(log_s[number]),
            cut_low=int(cuts[0][number]),
            cut_high=int(cuts[1][number]),
            loss=float(done.loss[number]),
        )
        for number, (now, old) in enumerate(parts)
    ]


def write_run(
    path: Path,
    objective: str,
    steps: Sequence[Sequence[ResponseRow]],
    ranges: Sequence[tuple[float, float] | None] = (),
) -> Run:
    """A finished run. objective: the section as YAML. ranges: clip/low and clip/high by step."""
    recipe = f"objective: {objective}\nrollout: {{max_tokens: 64}}\n"
    folder = RunFolder.create(path, info={}, recipe=recipe)
    for step, rows in enumerate(steps, start=1):
        given = ranges[step - 1] if ranges else None
        clip = {} if given is None else dict(zip(("clip/low", "clip/high"), given, strict=True))
        stats = {"reward/mean": 0.5, **clip}
        folder.step(step, {name: Mean(value, 1) for name, value in stats.items()}, rows)
    folder.finished(len(steps))
    folder.close()
    return open_run(path)
