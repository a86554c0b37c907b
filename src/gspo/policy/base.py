"""The policy seam: score tokens, take one optimizer step, hand out weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from gspo.settings import Objective
from gspo.stats import Stats
from gspo.types import RolloutBatch, Weights


@dataclass(frozen=True, slots=True)
class ResponseUpdate:
    """What one minibatch did with each of its S responses and N tokens, in the batch's order.

    logp [N]: at the update that used it; old_logp [N]: what it was compared with. log_s [S]: mean
    over tokens of logp - old_logp, before any bound. cut_low, cut_high [S]: units of the response
    the clip cut on that side (0 or 1 for sequence objectives, a number of tokens for token
    objectives). loss [S]: undivided. Responses that did not run (zero advantage, or the update was
    skipped) have NaN in logp, log_s and loss.
    """

    logp: Float[Tensor, "N"]
    old_logp: Float[Tensor, "N"]
    log_s: Float[Tensor, "S"]
    cut_low: Int[Tensor, "S"]
    cut_high: Int[Tensor, "S"]
    loss: Float[Tensor, "S"]


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """One optimizer step. skipped: why the step left weights and optimizer untouched, or None."""

    stats: Stats
    responses: ResponseUpdate
    skipped: str | None = None


#: Called between the backward of a minibatch and its optimizer step, while the weights are still
#: those that gave the log-probs.
BeforeStep = Callable[[ResponseUpdate], None]


@runtime_checkable
class Policy(Protocol):
    """Scores and trains; every number it gives is at the batch's temperature, float32 nats."""

    def score(self, batch: RolloutBatch) -> Float[Tensor, "N"]:
        """Log-prob of every trained token, no gradient."""
        ...

    def update(
        self, batch: RolloutBatch, objective: Objective, before_step: BeforeStep | None = None
    ) -> UpdateResult:
        """One optimizer step on one minibatch. Responses of zero advantage need no old_logp unless
        there is a KL penalty. before_step is not called where the step is skipped."""
        ...

    def weights(self, version: int) -> Weights:
        """The current parameters, for an engine."""
        ...
