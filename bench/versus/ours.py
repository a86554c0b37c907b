"""The worker of our side: one workload, the same seams as a training run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoTokenizer

from bench.versus.batches import TEMPERATURE, prompts_of, recorded_batch, sampled_batch
from bench.versus.channel import Channel
from bench.versus.conditions import CLIP_HIGH, CLIP_LOW, LEARNING_RATE, NUM_THREADS
from bench.versus.memory import peak_mb, reset_peak, resident_mb
from bench.versus.training_state import GradientCapture, allocate, forget, restore
from bench.versus.workloads import WORKLOADS, Workload
from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.engines.packed import measure_rates
from gspo.policy.base import UpdateResult
from gspo.policy.hf import HFPolicy
from gspo.policy.model import load_model
from gspo.policy.optimizer import OptimizerSettings
from gspo.settings import GSPO, ClipRange
from gspo.stats import Mean
from gspo.trainer.clock import Clock
from gspo.trainer.minibatches import minibatch_rows
from gspo.trainer.old_logp import StepMinibatches
from gspo.trainer.parts import Plan
from gspo.types import Group, RolloutBatch

MAX_BATCH = 512  # engine.max_batch, as recipes have it
MAX_TOKENS = 8192  # trainer.max_tokens_per_microbatch, as recipes have it


class Ours:
    """Engine, policy and objective of one workload."""

    def __init__(self, workload: Workload, given: dict[str, Any], model_folder: Path) -> None:
        self.workload = workload
        self.given = given
        self.model_folder = model_folder
        self.model = load_model(model_folder, torch.float32)
        self.prompts = prompts_of(given)
        self.objective = GSPO(clip=ClipRange(low=CLIP_LOW, high=CLIP_HIGH))
        self.engine_dtype: Literal["model", "bfloat16"] = "model"
        self.engine = self._engine() if workload.kind in ("generate", "step") else None
        self.policy = self._policy() if workload.kind != "generate" else None
        self.batch: RolloutBatch | None = None
        self.capture: GradientCapture | None = None
        if self.policy is not None:
            allocate(self.policy.optimizer)
            self.capture = GradientCapture(self.model, self.policy.optimizer)

    def _engine(self) -> LocalEngine:
        tokenizer = AutoTokenizer.from_pretrained(self.model_folder)
        end_ids = self.given["end_ids"] if self.given["ends_by_itself"] else []
        self.engine_dtype = self._dtype()
        return LocalEngine(
            self.model, tokenizer.decode, end_ids, MAX_BATCH, dtype=self.engine_dtype
        )

    def _dtype(self) -> Literal["model", "bfloat16"]:
        """What a recipe that asks for this precision comes to on this machine."""
        if self.workload.precision == "float32":
            return "model"
        shape = self.workload.shape
        rates = measure_rates(shape.hidden, shape.intermediate, self.workload.batch)
        return "bfloat16" if rates.bfloat16_pays else "model"

    def _policy(self) -> HFPolicy:
        workload = self.workload
        longest = workload.prompt + workload.response
        tokens = workload.microbatch * longest if workload.microbatch else MAX_TOKENS
        settings = OptimizerSettings(learning_rate=LEARNING_RATE)
        return HFPolicy(self.model, settings, max_tokens_per_microbatch=tokens)

    def set_back(self) -> None:
        """Weights and moments as at the beginning; nothing of this is timed."""
        if self.policy is None:
            return
        restore(self.model, self.model_folder)
        forget(self.policy.optimizer)
        if self.engine is not None:
            self.engine.load(self.policy.weights(0))
        if self.workload.kind == "update":
            self.record()

    def record(self) -> RolloutBatch:
        """The recorded batch; with the log-probs an engine would have given, where they count."""
        if self.batch is None:
            self.batch = recorded_batch(self.given, self.workload.samples)
            if self.workload.old == "gate":
                with self._update_precision():
                    scored = self._policy_of().score(self.batch)
                self.batch = replace(self.batch, engine_logp=scored)
        return self.batch

    def run(self, repetition: int) -> dict[str, Any]:
        """One repetition: the seconds of its parts, tokens, and what clip and gate did."""
        clock = Clock()
        if self.workload.kind == "generate":
            groups = self._generate(repetition, clock)
            tokens = sum(len(r.response_ids) for group in groups for r in group.rollouts)
            return {"tokens": tokens, "seconds": seconds_of(clock)}
        if self.workload.kind == "step":
            groups = self._generate(repetition, clock)
            batch = sampled_batch(groups, self.given, self.workload.samples)
        else:
            batch = self.record()
        done = self._update(batch, clock)
        if self.engine is not None:
            with clock.part("publish"):
                self.engine.load(self._policy_of().weights(1))
        return done | {"tokens": batch.num_tokens, "seconds": seconds_of(clock)}

    def _generate(self, repetition: int, clock: Clock) -> list[Group]:
        if self.engine is None:
            raise RuntimeError(f"{self.workload.name} has no engine")
        sampling = Sampling(
            num_samples=self.workload.samples,
            max_tokens=self.workload.response,
            seed=0,
            step=repetition,
        )
        with clock.part("rollout"):
            return list(self.engine.generate(self.prompts, sampling))

    def _update(self, batch: RolloutBatch, clock: Clock) -> dict[str, Any]:
        """The minibatches of a step, as the loop takes them."""
        policy, plan = self._policy_of(), self._plan()
        rows = minibatch_rows(batch, plan.minibatches, plan.minibatch_by, seed=0, step=1)
        parts = [batch.select(part) for part in rows]
        minibatches = StepMinibatches(parts, policy, self.objective, plan, clock)
        results = []
        with self._update_precision(), clock.part("update"):
            for part, before_step in minibatches.turns():
                result = policy.update(part, self.objective, before_step)
                if result.skipped:
                    raise RuntimeError(f"an update was skipped: {result.skipped}")
                results.append((part, result))
        gate = minibatches.gate
        return {
            "cut_share": cut_share(results),
            "gate": None if gate is None else gate.shut or "open",
        }

    def _plan(self) -> Plan:
        return Plan(
            steps=1,
            minibatches=self.workload.minibatches,
            minibatch_by="group",
            baseline="mean",
            scale="std",
            temperature=TEMPERATURE,
            max_failed_share=0.0,
            evaluate_every=0,
            engine_old_logp=self.workload.old == "gate" and self.engine_dtype == "model",
        )

    def _policy_of(self) -> HFPolicy:
        if self.policy is None:
            raise RuntimeError(f"{self.workload.name} has no policy")
        return self.policy

    @contextmanager
    def _update_precision(self) -> Iterator[None]:
        """bfloat16 workloads multiply float32 matrices in bfloat16, as the peer may."""
        if self.workload.precision == "bfloat16":
            torch.set_float32_matmul_precision("medium")
        yield
        torch.set_float32_matmul_precision("highest")


def seconds_of(clock: Clock) -> dict[str, float]:
    """The clock's parts under the names both sides use; a part that did not run took 0."""
    stats = clock.stats(num_tokens=0)
    names = {"generation": "rollout", "old": "score", "optimize": "update", "step": "step"}
    return {
        name: float(part.total) if isinstance(part := stats.get(f"time/{own}_s"), Mean) else 0.0
        for name, own in names.items()
    }


def cut_share(results: Sequence[tuple[RolloutBatch, UpdateResult]]) -> float | None:
    """Responses the clip cut, of those with an advantage in minibatches 2.. (`clip/cut_share`)."""
    cut = total = 0
    for batch, result in results[1:]:
        cut += int((result.responses.cut_low + result.responses.cut_high).sum())
        total += int((batch.advantage != 0).sum())
    return cut / total if total else None


def main() -> None:
    """python -m bench.versus.ours WORKLOAD INPUTS MODEL."""
    name, inputs, model_folder = sys.argv[1:4]
    channel = Channel()
    given = json.loads(Path(inputs).read_text())
    torch.set_num_threads(NUM_THREADS)
    ours = Ours(WORKLOADS[name], given, Path(model_folder))
    channel.send(
        {"threads": torch.get_num_threads(), "engine": ours.engine_dtype if ours.engine else None}
    )
    for command in channel.commands():
        channel.send(answer(ours, command))


def answer(ours: Ours, command: dict[str, Any]) -> dict[str, Any]:
    """One repetition. With "memory", in a fresh process, its peak above what was there before."""
    if command.get("memory"):
        static = resident_mb()
        reset_peak()
        done = ours.run(0) | {"static_mb": static, "peak_mb": peak_mb() - static}
    else:
        ours.set_back()
        if ours.capture is not None:
            ours.capture.start(command.get("gradients"))
        done = ours.run(int(command["repetition"]))
    return done


if __name__ == "__main__":
    main()
