"""What one candidate did to recorded responses, as sums that add over steps.

Shares are about responses with A != 0 of off-policy minibatches, response-weighted, as
`clip/cut_share`, `weight/kept_share` and `weight/ess_share` are; here all steps are pooled. The
loss is about every optimizer step, as `loss/policy` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.diagnostics.lengths import bucket_name
from gspo.diagnostics.weights import EffectiveShare, response_weights, surrogate_of
from gspo.replay.candidates import Candidate
from gspo.replay.record import NUM_BUCKETS, Responses
from gspo.settings import ClipRange, ObjectiveSettings
from gspo.stats import Mean

COLUMNS = 6  # responses, cut low, cut high, kept weight, its square, weight without the clip


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a candidate did with S responses. loss: undivided, under the candidate's
    denominator. cut_low, cut_high: units. kept, unclipped: gradient weight, float64."""

    loss: Float[Tensor, "S"]
    cut_low: Float[Tensor, "S"]
    cut_high: Float[Tensor, "S"]
    kept: Float[Tensor, "S"]
    unclipped: Float[Tensor, "S"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Of some responses; None where there are none. length: the bucket, or None for all."""

    length: str | None
    num_responses: int
    cut_share: float | None
    cut_low: float | None
    cut_high: float | None
    kept_weight: float | None
    ess: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """sums: one row a length bucket, see COLUMNS. loss: over optimizer steps. num_steps: steps
    that were evaluated."""

    sums: Float[Tensor, "B F"]
    loss: Mean
    num_steps: int

    @classmethod
    def none(cls) -> Totals:
        """Nothing yet."""
        return cls(
            sums=torch.zeros(NUM_BUCKETS, COLUMNS, dtype=torch.float64),
            loss=Mean(0.0, 0),
            num_steps=0,
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            sums=self.sums + other.sums,
            loss=self.loss + other.loss,
            num_steps=self.num_steps + other.num_steps,
        )

    def overall(self) -> Shares:
        """Of every length."""
        return _shares(None, self.sums.sum(0))

    def buckets(self) -> list[Shares]:
        """Of each length bucket that holds responses, shortest first."""
        return list(self._buckets())

    def _buckets(self) -> Iterator[Shares]:
        for number, sums in enumerate(self.sums):
            if float(sums[0]):
                yield _shares(bucket_name(number), sums)


def outcome(candidate: Candidate, objective: ObjectiveSettings, responses: Responses) -> Outcome:
    """Evaluate `objective`: the candidate's, with the range in force when these were trained on."""
    seen = responses.condensed if _sees_log_s_alone(objective) else responses
    segments, advantage = seen.segments, seen.advantage
    surrogate = surrogate_of(objective, seen.logp, seen.old_logp, advantage, segments)
    weights = response_weights(objective, surrogate, advantage)
    cut_low, cut_high = (
        cut.double() if objective.unit == "sequence" else segments.sum(cut.double())
        for cut in (surrogate.cut_low, surrogate.cut_high)
    )
    loss, kept, unclipped = surrogate.loss, weights.kept, weights.unclipped
    averages = objective.denominator == "responses"
    if averages != (candidate.denominator == "responses"):
        lengths = responses.segments.lengths.clamp(min=1).double()
        scale = lengths if averages else lengths.reciprocal()
        loss, kept, unclipped = loss * scale, kept * scale, unclipped * scale
    return Outcome(loss=loss, cut_low=cut_low, cut_high=cut_high, kept=kept, unclipped=unclipped)


def _sees_log_s_alone(objective: ObjectiveSettings) -> bool:
    """True of GSPO where its range is the same at every length: a tenth of the work."""
    return objective.unit == "sequence" and isinstance(getattr(objective, "clip", None), ClipRange)


def totals(
    candidate: Candidate, objective: ObjectiveSettings, responses: Responses, done: Outcome
) -> Totals:
    """The sums of what `outcome` found."""
    lengths = responses.segments.lengths
    units = 1 if objective.unit == "sequence" else lengths.clamp(min=1)
    columns = torch.stack(
        [
            torch.ones_like(done.kept),
            done.cut_low / units,
            done.cut_high / units,
            done.kept,
            done.kept.square(),
            done.unclipped,
        ],
        dim=1,
    )
    return Totals(
        sums=responses.by_length @ columns,
        loss=_loss(candidate, responses, done),
        num_steps=responses.num_steps,
    )


def _loss(candidate: Candidate, responses: Responses, done: Outcome) -> Mean:
    """Sum of losses over D of each optimizer step."""
    num_updates = len(responses.sizes)
    sums = done.kept.new_zeros(num_updates).index_add(0, responses.update, done.loss.double())
    divided = [
        total / candidate.divisor(size.num_responses, size.num_tokens)
        for total, size in zip(sums.tolist(), responses.sizes, strict=True)
    ]
    return Mean(sum(divided), num_updates)


def _shares(length: str | None, sums: Float[Tensor, "F"]) -> Shares:
    num, low, high, kept, squares, unclipped = sums.tolist()
    return Shares(
        length=length,
        num_responses=round(num),
        cut_share=Mean(low + high, num).value(),
        cut_low=Mean(low, num).value(),
        cut_high=Mean(high, num).value(),
        kept_weight=Mean(kept, unclipped).value(),
        ess=EffectiveShare(kept, squares, num).value(),
    )
