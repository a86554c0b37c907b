"""What the later minibatches of a step are compared with: the policy before the first update.

Scored by the trainer, or taken from the engine where `diagnostics.gate` finds the two alike. The
gate looks at the first minibatch's own forward, so it costs nothing; the trainer scores, where it
must, between that minibatch's backward and its optimizer step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.diagnostics.gate import Gate, engine_gate
from gspo.policy.base import BeforeStep, Policy, ResponseUpdate
from gspo.policy.step import rows_with_signal
from gspo.settings import Objective
from gspo.trainer.clock import Clock
from gspo.trainer.parts import Plan
from gspo.types import RolloutBatch


class StepMinibatches:
    """The K minibatches of a step in turn. gate: how it decided, None while it has not, or where
    there is nothing to decide."""

    def __init__(
        self,
        minibatches: Sequence[RolloutBatch],
        policy: Policy,
        objective: Objective,
        plan: Plan,
        clock: Clock,
    ) -> None:
        self.gate: Gate | None = None
        self._first, *self._later = minibatches
        self._policy = policy
        self._objective = objective
        self._plan = plan
        self._clock = clock
        self._prepared = False

    def turns(self) -> Iterator[tuple[RolloutBatch, BeforeStep | None]]:
        """Each minibatch with what its update must call before the optimizer steps. The first has
        no old log-probs, which makes its ratio 1; the others have theirs by the time they come."""
        yield self._first, self._prepare
        if not self._prepared:
            self._prepare(None)
        for minibatch in self._later:
            yield minibatch, None

    def _prepare(self, first: ResponseUpdate | None) -> None:
        """first: what the first minibatch's forward gave, None where its update was skipped."""
        self._prepared = True
        if not self._later:
            return
        with self._clock.part("score"):
            self.gate = self._decide(first)
            self._later = [part.with_old_logp(self._old_logp(part)) for part in self._later]

    def _decide(self, first: ResponseUpdate | None) -> Gate:
        if not self._plan.engine_old_logp:
            return Gate(shut="the recipe wants the trainer's old log-probs")
        if first is None:
            return Gate(shut="the first update was skipped")
        if any(bool(part.engine_logp.isnan().any()) for part in self._later):
            return Gate(shut="the engine gave no log-prob of some tokens")
        return engine_gate(
            self._objective, self._first.engine_logp, first.logp, self._first.segments
        )

    def _old_logp(self, part: RolloutBatch) -> Float[Tensor, "N"]:
        if self.gate is not None and self.gate.shut is None:
            return part.engine_logp
        return score_needed(self._policy, part, self._plan)


def score_needed(policy: Policy, batch: RolloutBatch, plan: Plan) -> Float[Tensor, "N"]:
    """The policy's log-probs of the responses an update will run, NaN for the others: without a KL
    penalty in the loss, those of zero advantage have no gradient whatever their log-probs."""
    if plan.kl is not None and plan.kl.estimator != "k1":
        return policy.score(batch)
    rows = rows_with_signal(batch)
    logp = torch.full((batch.num_tokens,), math.nan)
    if rows.numel():
        logp[batch.tokens_of(rows)] = policy.score(batch.select(rows))
    return logp
