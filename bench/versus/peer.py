"""The worker of the peer's side: TRL's own trainer, its own loop, stopped between repetitions.

Runs in the peer's environment. Wrappers measure its phases and, where a workload updates on
recorded responses, put those in the place of generated ones together with their advantages. The
order of responses over minibatches is given instead of drawn, so that both sides train on the same
minibatches. Nothing else of the trainer is changed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import trl.trainer.grpo_trainer as grpo_module
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from bench.versus.channel import Channel
from bench.versus.conditions import CLIP_HIGH, CLIP_LOW, LEARNING_RATE, NUM_THREADS
from bench.versus.memory import peak_mb, reset_peak, resident_mb
from bench.versus.peer_settings import SETTINGS, PeerSetting
from bench.versus.results import installed
from bench.versus.training_state import GradientCapture, allocate, forget, restore
from bench.versus.workloads import WORKLOADS, Workload

Function = Callable[..., Any]
Around = Callable[[Function], Function]

FOREVER = 10**9  # optimizer steps: the driver ends the run


class Finished(Exception):  # noqa: N818 - it is no error
    """The driver has no more commands."""


def trainer_config(
    workload: Workload, setting: PeerSetting, given: dict[str, Any], output: Path
) -> GRPOConfig:
    """The trainer's configuration; what is not named here is as it comes."""
    minibatch = workload.batch // workload.minibatches
    rows = min(workload.microbatch or setting.microbatch or minibatch, minibatch)
    accumulation = minibatch // rows
    fixed = {} if given["ends_by_itself"] else {"min_new_tokens": workload.response}
    quiet = {} if setting.logging else {"logging_strategy": "no"}
    return GRPOConfig(
        output_dir=str(output),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=workload.minibatches * accumulation,
        num_generations=workload.samples,
        max_completion_length=workload.response,
        generation_kwargs=fixed,
        importance_sampling_level="sequence",
        loss_type="grpo",
        epsilon=CLIP_LOW,
        epsilon_high=CLIP_HIGH,
        beta=0.0,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        max_steps=FOREVER,
        gradient_checkpointing=setting.checkpointing,
        bf16=setting.autocast,
        use_cpu=True,
        shuffle_dataset=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=0,
        **quiet,
    )


class Peer(TrainerCallback):
    """Phases, recorded rollouts, and the dialogue with the driver."""

    def __init__(
        self, workload: Workload, setting: PeerSetting, given: dict[str, Any], channel: Channel
    ) -> None:
        self.workload = workload
        self.setting = setting
        self.given = given
        self.commands = channel.commands()
        self.channel = channel
        self.order = [row for rows in given["minibatches"] for row in rows]
        self.seconds: dict[str, float] = {}
        self.command: dict[str, Any] = {}
        self.started = 0.0
        self.static_mb = 0.0
        self.tokens = 0
        self.model_folder = Path()
        self.trainer: Any = None
        self.capture: GradientCapture | None = None

    def attach(self, trainer: GRPOTrainer, model_folder: Path) -> None:
        """Put the wrappers on."""
        self.trainer = trainer
        self.model_folder = model_folder
        grpo_module.shuffle_sequence_dict = lambda batch: batch
        self._wrap(trainer, "_generate", self._generation)
        self._wrap(trainer, "_get_per_token_logps_and_entropies", self._old_logp)
        self._wrap(trainer, "_generate_and_score_completions", self._advantages)
        self._wrap(trainer, "_clip_grad_norm", self._timer("optimizer"))
        self._wrap(trainer, "compute_loss", self._timer("loss"))
        self._wrap(trainer.accelerator, "backward", self._timer("backward"))
        if self.workload.kind in ("update", "memory"):
            responses = [self.given["responses"][row] for row in self.order]
            trainer._generate_single_turn = lambda *_, **__: (responses, None)
        trainer.add_callback(self)

    @staticmethod
    def _wrap(owner: Any, name: str, around: Around) -> None:
        setattr(owner, name, around(getattr(owner, name)))

    def _timer(self, name: str) -> Around:
        def around(function: Function) -> Function:
            def timed(*arguments: Any, **options: Any) -> Any:
                started = time.perf_counter()
                result = function(*arguments, **options)
                self._add(name, started)
                return result

            return timed

        return around

    def _add(self, name: str, started: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def _generation(self, generate: Function) -> Function:
        """Times generation. A generation workload stays here: nothing is trained."""

        def timed(prompts: list[str]) -> Any:
            while True:
                if self.setting.matmul == "medium-update":
                    torch.set_float32_matmul_precision("highest")
                started = time.perf_counter()
                result = generate(prompts)
                self._add("generation", started)
                self._check(result[0])
                self.tokens = sum(map(len, result[1]))
                if self.setting.matmul != "highest":
                    torch.set_float32_matmul_precision("medium")
                if self.workload.kind != "generate":
                    return result
                self._answer()
                self._wait()

        return timed

    def _check(self, prompts: list[list[int]]) -> None:
        samples = self.workload.samples
        wanted = [self.given["prompts"][row // samples] for row in self.order]
        if prompts != wanted:
            raise ValueError("the peer's prompts are not the given ones, or in another order")

    def _old_logp(self, score: Function) -> Function:
        """Times log-probs without gradient: the old ones."""

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            result = score(*arguments, **options)
            if not torch.is_grad_enabled():
                self._add("old", started)
            return result

        return timed

    def _advantages(self, score: Function) -> Function:
        """Puts the given advantages in the place of the computed ones."""

        def replaced(inputs: list[dict[str, Any]]) -> Any:
            result = score(inputs)
            advantages = [self.given["advantages"][row] for row in self.order]
            result["advantages"] = torch.tensor(advantages)
            return result

        return replaced

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """The optimizer exists: allocate its moments, and wait for the first command."""
        inner = self.trainer.optimizer.optimizer
        allocate(inner)
        self.capture = GradientCapture(self.trainer.model, inner)
        packages = installed(("trl", "transformers", "torch", "accelerate", "datasets", "numpy"))
        self.channel.send({"threads": torch.get_num_threads(), "versions": packages})
        self._wait()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Start of the optimizer's own part."""
        self.optimizer_started = time.perf_counter()

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        """End of it."""
        self._add("optimizer", self.optimizer_started)

    def on_step_end(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
        """After the last minibatch of a rollout: answer, and wait."""
        if state.global_step % self.workload.minibatches == 0:
            self.seconds["step"] = time.perf_counter() - self.started
            self._answer()
            self._wait()

    def _answer(self) -> None:
        memory = {}
        if self.command.get("memory"):
            memory = {"static_mb": self.static_mb, "peak_mb": peak_mb() - self.static_mb}
        phases = ("loss", "backward", "optimizer")
        self.seconds["optimize"] = sum(self.seconds.get(name, 0.0) for name in phases)
        self.channel.send({"seconds": self.seconds, "tokens": self.tokens} | memory)

    def _wait(self) -> None:
        """For the next command, then everything back to the beginning, untimed."""
        self.command = next(self.commands, {})
        if not self.command:
            raise Finished
        if self.command.get("memory"):
            self.static_mb = resident_mb()
            reset_peak()
        else:
            restore(self.trainer.model, self.model_folder)
            forget(self.trainer.optimizer.optimizer)
        if self.capture is not None:
            self.capture.start(self.command.get("gradients"))
        self.seconds = {}
        self.started = time.perf_counter()


def main() -> None:
    """python -m bench.versus.peer WORKLOAD SETTING INPUTS MODEL OUTPUT."""
    name, setting_name, inputs, model_folder, output = sys.argv[1:6]
    channel = Channel()
    workload, setting = WORKLOADS[name], SETTINGS[setting_name]
    given = json.loads(Path(inputs).read_text())
    torch.set_num_threads(NUM_THREADS)
    if setting.matmul == "medium":
        torch.set_float32_matmul_precision("medium")
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=setting.weights)
    model.generation_config.eos_token_id = given["end_ids"]
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    peer = Peer(workload, setting, given, channel)
    rewards = [given["rewards"][row] for row in peer.order]
    groups = [row // workload.samples for row in peer.order[:: workload.samples]]
    texts = [" ".join(f"t{number}" for number in given["prompts"][group]) for group in groups]

    def reward(completions: list[str], **_: Any) -> list[float]:
        return rewards[: len(completions)]

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=trainer_config(workload, setting, given, Path(output)),
        train_dataset=Dataset.from_dict({"prompt": texts}),
        processing_class=tokenizer,
    )
    peer.attach(trainer, Path(model_folder))
    try:
        trainer.train()
    except Finished:
        return


if __name__ == "__main__":
    main()
