"""What the updates of a step did, in batch order, and the rows of its responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.diagnostics.gate import Gate
from gspo.policy.base import UpdateResult
from gspo.recorders.base import ResponseRow
from gspo.types import Group, RolloutBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUpdates:
    """The updates of all minibatches, put back into the order of the step's batch.

    minibatch [S]: counted from 1. skipped: of each minibatch in order, why its update was not
    made, or None; NaN stands for what was then not run. gate: whether the later minibatches' old
    log-probs are the engine's, None where there are no later ones. The others as in
    `ResponseUpdate`.
    """

    minibatch: Int[Tensor, "S"]
    skipped: Sequence[str | None]
    gate: Gate | None
    logp: Float[Tensor, "N"]
    old_logp: Float[Tensor, "N"]
    log_s: Float[Tensor, "S"]
    cut_low: Int[Tensor, "S"]
    cut_high: Int[Tensor, "S"]
    loss: Float[Tensor, "S"]

    @property
    def trainer_scored(self) -> Bool[Tensor, "S"]:
        """Responses that ran and whose old log-probs are the trainer's own."""
        engines = self.gate is not None and self.gate.shut is None
        own = self.minibatch == 1 if engines else torch.ones_like(self.log_s, dtype=torch.bool)
        return own & self.log_s.isfinite()

    @classmethod
    def join(
        cls,
        batch: RolloutBatch,
        minibatches: Sequence[Int[Tensor, "_"]],
        results: Sequence[UpdateResult],
        gate: Gate | None = None,
    ) -> StepUpdates:
        """Scatter each minibatch's results to its rows of the batch."""
        updates = [result.responses for result in results]
        rows = torch.cat(list(minibatches))
        tokens = batch.tokens_of(rows)
        numbers = [torch.full_like(part, k) for k, part in enumerate(minibatches, start=1)]

        def back(parts: Sequence[Tensor], to: Tensor) -> Tensor:
            joined = torch.cat(list(parts))
            return torch.empty_like(joined).index_copy(0, to, joined)

        return cls(
            minibatch=back(numbers, rows),
            skipped=[result.skipped for result in results],
            gate=gate,
            logp=back([u.logp for u in updates], tokens),
            old_logp=back([u.old_logp for u in updates], tokens),
            log_s=back([u.log_s for u in updates], rows),
            cut_low=back([u.cut_low for u in updates], rows),
            cut_high=back([u.cut_high for u in updates], rows),
            loss=back([u.loss for u in updates], rows),
        )


#: (position of the group in its step, sample number) of a response.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trained:
    """The training half of a row."""

    advantage: float = 0.0
    minibatch: int | None = None
    old_logp: list[float] | None = None
    logp: list[float] | None = None
    log_s: float | None = None
    cut_low: int = 0
    cut_high: int = 0
    loss: float | None = None
    skipped: str | None = "left out before packing"


def response_rows(
    groups: Sequence[Group], kept: Sequence[Place], batch: RolloutBatch, updates: StepUpdates
) -> list[ResponseRow]:
    """One row for every response of the step, groups in order, samples in order.

    kept: where each row of the batch comes from; a response that is not there was unscorable or
    empty and was not trained on.
    """
    trained = dict(zip(kept, _trained(batch, updates), strict=True))
    return [
        _row(group, (number, sample), trained.get((number, sample), _Trained()))
        for number, group in enumerate(groups)
        for sample in range(len(group.rollouts))
    ]


def _trained(batch: RolloutBatch, updates: StepUpdates) -> list[_Trained]:
    lengths = batch.segments.lengths.tolist()
    per_token = [
        [part.tolist() for part in values.split(lengths)]
        for values in (updates.old_logp, updates.logp)
    ]
    per_response = [
        batch.advantage.tolist(),
        updates.minibatch.tolist(),
        updates.log_s.tolist(),
        updates.cut_low.tolist(),
        updates.cut_high.tolist(),
        updates.loss.tolist(),
    ]
    trained: list[_Trained] = []
    for old_logp, logp, advantage, minibatch, log_s, cut_low, cut_high, loss in zip(
        *per_token, *per_response, strict=True
    ):
        skipped = updates.skipped[minibatch - 1]
        ran = math.isfinite(log_s)
        trained.append(
            _Trained(
                advantage=advantage,
                minibatch=minibatch,
                old_logp=old_logp if ran else None,
                logp=logp if ran else None,
                log_s=log_s if ran else None,
                cut_low=cut_low,
                cut_high=cut_high,
                loss=loss if math.isfinite(loss) else None,
                skipped=_why_skipped(skipped, advantage, ran),
            )
        )
    return trained


def _why_skipped(update: str | None, advantage: float, ran: bool) -> str | None:
    if update is not None:
        return f"update skipped: {update}"
    return "zero_advantage" if not ran and advantage == 0 else None


def _row(group: Group, place: Place, trained: _Trained) -> ResponseRow:
    number, sample = place
    rollout = group.rollouts[sample]
    verdict = rollout.verdict
    keep = [k for k, is_trained in enumerate(rollout.trained) if is_trained]
    return ResponseRow(
        prompt_id=group.prompt.id,
        source=group.prompt.source,
        group=number,
        sample=sample,
        prompt=group.prompt.text,
        text=rollout.text,
        tokens=[rollout.response_ids[k] for k in keep],
        reward=rollout.reward,
        parts=dict(verdict.parts) if verdict else {},
        failure=verdict.failure if verdict else "not judged",
        advantage=trained.advantage,
        length=len(keep),
        finish=rollout.finish,
        version=rollout.version,
        minibatch=trained.minibatch,
        engine_logp=[rollout.engine_logp[k] for k in keep],
        old_logp=trained.old_logp,
        logp=trained.logp,
        log_s=trained.log_s,
        cut_low=trained.cut_low,
        cut_high=trained.cut_high,
        loss=trained.loss,
        skipped=trained.skipped,
    )
