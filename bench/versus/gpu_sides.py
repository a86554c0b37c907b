"""The two sides of bench/gpu.py. Neither stops early: no id ends a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from bench.versus.batches import prompts_of, recorded_batch
from gspo.advantages import group_advantage
from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.policy.hf import HFPolicy
from gspo.policy.optimizer import OptimizerSettings
from gspo.settings import GSPO, ClipRange
from gspo.trainer.minibatches import minibatch_rows

Gradients = dict[str, Tensor]


def with_advantages(inputs: Mapping[str, Any], samples: int) -> dict[str, Any]:
    """The inputs, and what the rewards say of each response."""
    groups = [row // samples for row in range(len(inputs["rewards"]))]
    return dict(inputs) | {"advantages": group_advantage(inputs["rewards"], groups).tolist()}


class FirstStep:
    """Keeps the gradients of an optimizer's next step, after clipping."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.gradients: Gradients | None = {}
        self._model = model
        optimizer.register_step_pre_hook(lambda *_: self._keep())

    def _keep(self) -> None:
        if self.gradients is None:
            self.gradients = {
                name: parameter.grad.detach().float().cpu()
                for name, parameter in self._model.named_parameters()
                if parameter.grad is not None
            }


class Ours:
    """The package's engine and policy, as a run builds them."""

    def __init__(self, model: Any, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        samples = settings["samples"]
        given = with_advantages(inputs, samples)
        tokens = settings["microbatch"] * (len(given["prompts"][0]) + settings["response"])
        self._prompts = prompts_of(given)
        self._sampling = Sampling(num_samples=samples, max_tokens=settings["response"])
        self._engine = LocalEngine(model, lambda ids: "", [], max_batch=512)
        optimizer = OptimizerSettings(
            learning_rate=settings["learning_rate"], max_grad_norm=settings["max_grad_norm"]
        )
        self._policy = HFPolicy(model, optimizer, max_tokens_per_microbatch=tokens)
        self._objective = GSPO(clip=ClipRange(*settings["clip"]))
        self._batch = recorded_batch(given, samples)
        self._rows = minibatch_rows(self._batch, settings["minibatches"], "group", seed=0, step=1)
        self._first = FirstStep(model, self._policy.optimizer)

    def generate(self) -> None:
        """Every response of every prompt."""
        for _ in self._engine.generate(self._prompts, self._sampling):
            pass

    def update(self) -> None:
        """Old log-probs of minibatches 2.., then a step on each."""
        first, *later = [self._batch.select(rows) for rows in self._rows]
        later = [part.with_old_logp(self._policy.score(part)) for part in later]
        for part in (first, *later):
            skipped = self._policy.update(part, self._objective).skipped
            if skipped:
                raise RuntimeError(f"an update was skipped: {skipped}")

    def first_gradients(self) -> Gradients:
        """Of the first optimizer step of an update."""
        self._first.gradients = None
        self.update()
        return self._first.gradients or {}


class Plain:
    """`generate` and a padded update, with full logits; what a trainer does without kernels."""

    def __init__(self, model: Any, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        samples = settings["samples"]
        given = with_advantages(inputs, samples)
        prompts = torch.tensor(given["prompts"]).repeat_interleave(samples, dim=0)
        self._model = model
        self._settings = settings
        self._prompts = prompts.to(model.device)
        self._ids = torch.cat([prompts, torch.tensor(given["responses"])], dim=1).to(model.device)
        self._advantages = torch.tensor(given["advantages"], device=model.device)
        batch = recorded_batch(given, samples)
        rows = minibatch_rows(batch, settings["minibatches"], "group", seed=0, step=1)
        self._rows = [part.to(model.device) for part in rows]
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings["learning_rate"], weight_decay=0.0
        )
        self._first = FirstStep(model, self._optimizer)

    @torch.no_grad()
    def generate(self) -> None:
        """All responses in one padded batch."""
        response = self._settings["response"]
        self._model.generate(
            input_ids=self._prompts,
            attention_mask=torch.ones_like(self._prompts),
            do_sample=True,
            top_k=0,
            min_new_tokens=response,
            max_new_tokens=response,
            pad_token_id=0,
        )

    def update(self) -> None:
        """Old log-probs of everything, then a step on each minibatch."""
        low, high = self._settings["clip"]
        with torch.no_grad():
            chunks = torch.arange(len(self._ids), device=self._ids.device)
            old = torch.cat(
                [self._logp(rows) for rows in chunks.split(self._settings["microbatch"])]
            )
        for minibatch in self._rows:
            for rows in minibatch.split(self._settings["microbatch"]):
                ratio = (self._logp(rows) - old[rows]).mean(dim=1).exp()
                advantage = self._advantages[rows]
                clipped = ratio.clamp(1 - low, 1 + high)
                loss = -torch.minimum(ratio * advantage, clipped * advantage)
                (loss.sum() / len(minibatch)).backward()
            nn.utils.clip_grad_norm_(self._model.parameters(), self._settings["max_grad_norm"])
            self._optimizer.step()
            self._optimizer.zero_grad()

    def first_gradients(self) -> Gradients:
        """Of the first optimizer step of an update."""
        self._first.gradients = None
        self.update()
        return self._first.gradients or {}

    def _logp(self, rows: Tensor) -> Tensor:
        """Log-probs of the response tokens of these rows."""
        response = self._settings["response"]
        ids = self._ids[rows]
        output = self._model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            use_cache=False,
            logits_to_keep=response + 1,
        )
        logp = output.logits[:, :-1].float().log_softmax(dim=-1)
        return logp.gather(-1, ids[:, -response:, None]).squeeze(-1)
