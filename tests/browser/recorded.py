"""Run folders with made-up numbers, written by the real recorder.

    path = make_run(folder, "a", steps=12, responses=64)         # finished
    with Recording(folder, "live", responses=64) as run:         # trains, until the block ends
        run.add_step()

The clock is made up too, so that a folder is the same each time. `make_large_run` writes thousands
of steps in seconds: a few of them are recorded, the others are those again.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gspo.recorders import run_folder
from gspo.recorders.run_folder import RunFolder
from gspo.recorders.tables import step_file
from gspo.stats import Mean
from gspo.types import Alarm, Group, Prompt, Rollout, Verdict
from tests.browser.made_steps import NUM_MEASURED, PIECES, Shape, clip_range, made_step

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP_S = 9.0
RECIPE = """\
name: {name}
seed: {seed}
model: {{path: null, hidden: 128, layers: 4}}
data: {{task: addition, num_prompts: 4096}}
rollout: {{prompts: {prompts}, group: {group}, max_tokens: 192, temperature: 1.0}}
advantage: {{baseline: mean, scale: std}}
objective: {objective}
optimizer: {{lr: {lr}, schedule: constant}}
trainer: {{steps: {steps}, minibatches: {minibatches}}}
evaluate: {{prompts: 8, samples: 4}}
"""
GSPO = "{name: gspo, kl: null, clip: auto, cut_share: 0.15}"
GRPO = "{name: grpo, kl: null, clip: {low: 0.01, high: 0.01}}"
NUM_EVAL_PROMPTS, NUM_EVAL_SAMPLES = 8, 4


class Recording:
    """A run that is being written: it holds the folder's lock until `close`."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        responses: int = 64,
        group: int = 8,
        minibatches: int = 4,
        seed: int = 0,
        total_steps: int = 40,
        token_objective: bool = False,
        lr: float = 3e-5,
        hostile: tuple[str, ...] = (),
        tokenizer: bool = True,
    ) -> None:
        """hostile: texts in place of prompts, responses and reasons. tokenizer: keep one beside
        the checkpoint."""
        self.shape = Shape(
            responses=responses,
            group=group,
            minibatches=minibatches,
            seed=seed,
            total_steps=total_steps,
            token_objective=token_objective,
            hostile=hostile,
        )
        self.step = 0
        self._now = START + timedelta(hours=seed)
        recipe = RECIPE.format(
            name=name,
            seed=seed,
            prompts=responses // group,
            group=group,
            objective=GRPO if token_objective else GSPO,
            lr=lr,
            steps=total_steps,
            minibatches=minibatches,
        )
        info = {"versions": {"gspo": "0.1.0", "torch": "2.13.0"}, "seed": seed, "dtype": "float32"}
        with self._clock():
            self.run = RunFolder.create(folder / name, info=info, recipe=recipe)
        self.path = self.run.path
        if tokenizer:
            save_tokenizer(self.path / "checkpoints" / "step-000000" / "model")

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add_step(self) -> None:
        """The next step, and what happens after it."""
        self.step += 1
        rows, stats = made_step(self.shape, self.step)
        with self._clock(STEP_S):
            if not self.shape.token_objective:
                self._clip_event()
            self.run.step(self.step, stats, rows)

    def evaluate(self) -> None:
        """A held-out evaluation after the last step."""
        solved = 0.35 + 0.5 * min(self.step / self.shape.total_steps, 1.0)
        sampled = _answers(self.shape.seed + self.step, solved, NUM_EVAL_SAMPLES)
        greedy = _answers(self.shape.seed + self.step, solved, 1)
        numbers = {"eval/pass@1": solved, "eval/greedy": solved + 0.02}
        numbers |= {f"eval/pass@{k}": 1 - (1 - solved) ** k for k in (2, 4)}
        with self._clock(1.0):
            self.run.evaluation(self.step, sampled, greedy)
            self.run.event(
                "evaluated",
                step=self.step,
                num_prompts=NUM_EVAL_PROMPTS,
                interval=[solved - 0.04, solved + 0.04],
                unscored=0,
                **numbers,
            )
            self.run.step(self.step, {name: Mean(value, 1) for name, value in numbers.items()}, [])

    def alarm(self, cause: str = "The band is wider than the policy moves.") -> None:
        """An alarm after the last step."""
        with self._clock():
            self.run.alarm(
                Alarm(self.step, "clip/never", 0.004, 0.01, cause, "Try gspo calibrate.")
            )

    def finish(self) -> None:
        """The run reached its end."""
        with self._clock():
            self.run.finished(self.step)

    def close(self) -> None:
        """Let go of the folder."""
        self.run.close()

    def _clip_event(self) -> None:
        kinds = {NUM_MEASURED: "clip_fixed", 2 * NUM_MEASURED: "refit"}
        if kind := kinds.get(self.step):
            low, high = clip_range(self.step + 1)
            self.run.event(
                kind,
                step=self.step,
                low=low,
                high=high,
                previous_low=clip_range(self.step)[0],
                previous_high=clip_range(self.step)[1],
                cut_share=0.15,
                measured_share=0.02,
                num_positive=300,
                num_negative=280,
            )

    @contextmanager
    def _clock(self, seconds: float = 0.1) -> Iterator[None]:
        self._now += timedelta(seconds=seconds)
        with patch.object(run_folder, "_now", lambda: self._now.isoformat(timespec="milliseconds")):
            yield


def make_run(
    folder: Path, name: str, *, steps: int = 12, finished: bool = True, **settings: Any
) -> Path:
    """A run with an evaluation before and after, and one alarm; settings as for Recording."""
    with Recording(folder, name, **{"total_steps": steps, **settings}) as recording:
        recording.evaluate()
        for _ in range(steps):
            recording.add_step()
        recording.alarm()
        if finished:
            recording.evaluate()
            recording.finish()
    return recording.path


def make_large_run(
    folder: Path, name: str, *, steps: int, recorded: int = 8, **settings: Any
) -> Path:
    """Many steps. The first `recorded` are written by the recorder; the others share their tables
    as hard links, and their statistics are those of a recorded step, each a little changed."""
    path = make_run(
        folder, name, steps=recorded, finished=False, **{"total_steps": steps, **settings}
    )
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    models = [line for line in lines if "clip/cut_share" in line]
    numbers = random.Random(0)
    with (path / "metrics.jsonl").open("a", encoding="ascii") as file:
        for step in range(recorded + 1, steps + 1):
            row = {name: _changed(v, numbers) for name, v in models[step % len(models)].items()}
            time = START + timedelta(seconds=STEP_S * step)
            row |= {"step": step, "time": time.isoformat(timespec="milliseconds")}
            file.write(json.dumps(row) + "\n")  # what was read of a recorded line is plain
            os.link(step_file(path / "steps", 1 + step % recorded), step_file(path / "steps", step))
    event = {"step": steps, "time": START.isoformat(), "kind": "finished"}
    with (path / "events.jsonl").open("a", encoding="ascii") as file:
        file.write(json.dumps(event) + "\n")
    return path


def _changed(value: Any, numbers: random.Random) -> Any:
    return value * numbers.uniform(0.95, 1.05) if isinstance(value, float) else value


def save_tokenizer(folder: Path, pieces: Sequence[str] = PIECES) -> None:
    """One whose tokens are these."""
    from tokenizers import Tokenizer, decoders, models

    tokenizer = Tokenizer(
        models.WordLevel({piece: k for k, piece in enumerate(pieces)}, unk_token=pieces[0])
    )
    tokenizer.decoder = decoders.Fuse()
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def _answers(seed: int, solved: float, num_samples: int) -> list[Group]:
    numbers = random.Random(seed)

    def rollout() -> Rollout:
        reward = float(numbers.random() < solved)
        return Rollout(
            prompt_ids=[2, 3],
            response_ids=[4, 1],
            trained=[True, True],
            engine_logp=[-0.5, -0.1],
            text="2",
            finish="stop",
            version=0,
            verdict=Verdict(reward=reward),
        )

    return [
        Group(
            prompt=Prompt(
                id=f"held/{k}", text=f"{k} + 1 =", ids=[2, 3], answer=k + 1, source="sums"
            ),
            rollouts=[rollout() for _ in range(num_samples)],
        )
        for k in range(NUM_EVAL_PROMPTS)
    ]
