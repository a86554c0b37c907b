"""A Hugging Face causal language model as a policy."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from transformers import PreTrainedModel

from gspo.errors import RecipeError, memory_errors
from gspo.policy.allocator import map_large_blocks
from gspo.policy.base import BeforeStep, UpdateResult
from gspo.policy.forward import TokenLogp
from gspo.policy.model import refuse_nonfinite, without_dropout
from gspo.policy.optimizer import (
    OptimizerSettings,
    build_optimizer,
    set_learning_rate,
    steps_taken,
)
from gspo.policy.packing import in_batch_order
from gspo.policy.step import accumulate, response_update, statistics
from gspo.settings import KLPenalty, Objective
from gspo.stats import Max, Mean, Sum
from gspo.types import RolloutBatch, Weights


class HFPolicy:
    """Scores and trains `model` in place. Batches live on the CPU; the model may live elsewhere.

    max_tokens_per_microbatch: padded tokens, prompts included, that one forward may hold. It sets
    memory and speed and changes no number beyond float32 rounding. kl: k2 or k3 against
    `batch.ref_logp` (k1 belongs to the reward). products: dtype of matrix products and attention,
    in score and update alike; None is the weights' own. path: how log-probs are computed.

    Raises:
        RecipeError: no parameter is trainable, or kl is k1.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        settings: OptimizerSettings,
        *,
        max_tokens_per_microbatch: int,
        kl: KLPenalty | None = None,
        products: torch.dtype | None = None,
    ) -> None:
        if kl is not None and kl.estimator == "k1":
            raise RecipeError(
                "kl.estimator is 'k1', which belongs to the reward; a policy's loss takes 'k2' or 'k3'"
            )
        self.optimizer = build_optimizer(model, settings)
        self.model = model
        self.settings = settings
        self.max_tokens = max_tokens_per_microbatch
        self.kl = kl
        without_dropout(model)
        self.token_logp = TokenLogp(model, products)
        self.path = self.token_logp.path
        if self.token_logp.cuts_vocabulary(max_tokens_per_microbatch) and map_large_blocks():
            self.path += "; freed blocks given back"

    @torch.no_grad()
    def score(self, batch: RolloutBatch) -> Float[Tensor, "N"]:
        """Log-prob of every trained token by the same forward that `update` differentiates."""
        without_dropout(self.model)
        with self._memory_errors("scoring"):
            parts = [
                (rows, self.token_logp(batch.select(rows)))
                for rows in self.token_logp.microbatches(batch, self.max_tokens)
            ]
        return in_batch_order(batch, parts)

    def update(
        self, batch: RolloutBatch, objective: Objective, before_step: BeforeStep | None = None
    ) -> UpdateResult:
        """One optimizer step on one minibatch.

        Without batch.old_logp the ratio is exactly 1: the first minibatch of a step needs no
        scoring pass. A value that is not finite (old_logp, logp, advantage, loss of a response,
        gradient) skips the step: weights, moments, step count and so the learning rate stay
        bitwise as they were, and `skipped` names it. Responses that did not run have NaN then, and
        so have, always, those of zero advantage where there is no KL penalty.
        """
        without_dropout(self.model)
        with self._memory_errors("updating"):
            done = accumulate(
                self.token_logp, batch, objective, max_tokens=self.max_tokens, kl=self.kl
            )
        responses = response_update(batch, objective, done.parts)
        norm = get_total_norm([p.grad for p in self._trainable() if p.grad is not None])
        fault = done.fault or self._fault_in_gradients(norm)
        if fault:
            self.optimizer.zero_grad()
            return UpdateResult({"update/skipped_steps": Sum(1)}, responses, skipped=fault)
        if before_step:
            before_step(responses)
        lr = self._step(norm)
        stats = statistics(objective, done) | {
            "grad/norm": Mean(norm, 1),
            "grad/norm_max": Max(norm),
            "grad/clipped": Mean((norm > self.settings.max_grad_norm).long(), 1),
            "optimizer/lr": Mean(lr, 1),
            "update/skipped_steps": Sum(0),
        }
        return UpdateResult(stats, responses)

    def weights(self, version: int) -> Weights:
        """The current parameters under all their names (tied ones have two). They share the
        model's memory, so they are this version until the next update: an engine that does not
        share it copies them when it loads.

        Raises:
            NumericsError: a parameter is not finite.
        """
        refuse_nonfinite(self.model)
        return Weights(version, self.model.state_dict())

    def _memory_errors(self, doing: str) -> AbstractContextManager[None]:
        return memory_errors(doing, "trainer.max_tokens_per_microbatch", self.max_tokens)

    def _trainable(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _step(self, norm: Tensor) -> float:
        clip_grads_with_norm_(self._trainable(), self.settings.max_grad_norm, norm)
        lr = self.settings.lr(steps_taken(self.optimizer))
        set_learning_rate(self.optimizer, lr)
        self.optimizer.step()
        self.optimizer.zero_grad()  # to None: gradients take no memory while responses are sampled
        return lr

    def _fault_in_gradients(self, norm: Tensor) -> str | None:
        if norm.isfinite():
            return None
        for name, parameter in self.model.named_parameters():
            bad = parameter.grad is not None and int((~parameter.grad.isfinite()).sum())
            if bad:
                return f"gradient norm is {float(norm)}: {bad} values of {name} are not finite"
        return f"gradient norm is {float(norm)} although every value is finite"
