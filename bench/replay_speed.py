"""Time and memory of `gspo replay` on a run of 1,000 steps of 256 responses.

    python bench/replay_speed.py [--steps 1000] [--responses 256] [--tokens 35]

Writes the run into a temporary folder, replays it with the default candidates in a process of its
own, and prints seconds (wall clock and processor, from the start of the process) and peak resident
memory. The target is 10 s and 1 GiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from gspo.recorders.base import ResponseRow
from gspo.recorders.run_folder import RunFolder
from gspo.segments import Segments
from gspo.stats import Mean

DISTINCT_STEPS = 20  # written; the others are copies, which read the same
MINIBATCHES = 4
RECIPE = "objective: {name: gspo, clip: {low: 0.005, high: 0.005}}\nrollout: {max_tokens: 64}\n"


def rows(seed: int, num_responses: int, mean_tokens: int) -> list[ResponseRow]:
    """One step; lengths spread evenly from half to one and a half times the mean."""
    generator = torch.Generator().manual_seed(seed)
    shortest, longest = mean_tokens // 2, mean_tokens + mean_tokens // 2
    lengths = torch.randint(shortest, longest + 1, (num_responses,), generator=generator)
    segments = Segments.from_lengths(lengths)
    old = -torch.rand(segments.num_tokens, generator=generator)
    minibatch = torch.arange(num_responses) % MINIBATCHES + 1
    noise = 0.03 * torch.randn(segments.num_tokens, generator=generator)
    now = old + noise * segments.spread(minibatch > 1)
    advantage = torch.randn(num_responses, generator=generator)
    parts = zip(now.split(lengths.tolist()), old.split(lengths.tolist()), strict=True)
    return [
        ResponseRow(
            prompt_id=f"p{number // 8}",
            source="bench",
            group=number // 8,
            sample=number % 8,
            prompt="1234+5678=",
            text="x" * len(now_n),
            tokens=list(range(len(now_n))),
            reward=1.0,
            parts={"exact": 1.0},
            failure=None,
            advantage=float(advantage[number]),
            length=len(now_n),
            finish="stop",
            version=0,
            minibatch=int(minibatch[number]),
            engine_logp=old_n.tolist(),
            old_logp=old_n.tolist(),
            logp=now_n.tolist(),
            log_s=float((now_n - old_n).mean()),
            cut_low=0,
            cut_high=0,
            loss=0.0,
            skipped=None,
        )
        for number, (now_n, old_n) in enumerate(parts)
    ]


def write_run(path: Path, num_steps: int, num_responses: int, mean_tokens: int) -> None:
    folder = RunFolder.create(path, info={}, recipe=RECIPE)
    distinct = min(DISTINCT_STEPS, num_steps)
    for step in range(1, distinct + 1):
        folder.step(step, {"reward/mean": Mean(1, 2)}, rows(step, num_responses, mean_tokens))
    folder.close()
    for step in range(distinct + 1, num_steps + 1):
        source = path / "steps" / f"{(step - 1) % distinct + 1:06d}.parquet"
        shutil.copyfile(source, path / "steps" / f"{step:06d}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--responses", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=35)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, given.steps, given.responses, given.tokens)
        started = time.perf_counter()
        command = [sys.executable, "-m", "gspo.cli.main", "replay", str(run), "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
    report = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak_gib = used.ru_maxrss / 2**20  # Linux counts in KiB
    print(
        f"{report['num_responses']:,} responses of {report['num_steps']:,} steps, "
        f"{len(report['rows'])} candidates: {seconds:.1f} s "
        f"({used.ru_utime + used.ru_stime:.1f} s of one core), {peak_gib:.2f} GiB at most"
    )


if __name__ == "__main__":
    main()
