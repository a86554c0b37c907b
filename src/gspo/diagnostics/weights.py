"""How much of the gradient the clip keeps, and how many responses carry it.

The weight of response i is w_i = sum over its tokens of |weight_t|, where weight_t multiplies the
token's grad log pi (`Surrogate.weight`, so 0 where the clip cut). v_i is what w_i would be without
the clip: ratio x |A| a token, over the length where the objective averages a response. Over any
set of n responses with A != 0, of off-policy minibatches,

    kept share             sum w / sum v
    effective sample size  (sum w)^2 / sum w^2, as a share of n

n responses of equal weight have the share 1; one that outweighs all others has 1 / n.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.lengths import present_buckets
from gspo.ratios import MAX_LOG_RATIO
from gspo.segments import Segments
from gspo.settings import Objective
from gspo.stats import Mean, Number, Stats
from gspo.types import Surrogate


@dataclass(frozen=True, slots=True)
class EffectiveShare:
    """Effective sample size as a share of the responses, kept as sums that add. 0 where no
    response has weight, None where there is no response.

    >>> (EffectiveShare(3.0, 5.0, 2) + EffectiveShare(0.0, 0.0, 2)).value()     # weights 1, 2, 0, 0
    0.45
    """

    total: Number
    squares: Number
    count: Number

    def __add__(self, other: EffectiveShare) -> EffectiveShare:
        return EffectiveShare(
            self.total + other.total, self.squares + other.squares, self.count + other.count
        )

    def value(self) -> float | None:
        if not float(self.count):
            return None
        squares = float(self.squares)
        return float(self.total) ** 2 / (squares * float(self.count)) if squares else 0.0


@dataclass(frozen=True, slots=True)
class ResponseWeights:
    """Gradient weight of each response, undivided by D, float64; NaN where logp is NaN.

    kept: as trained. unclipped: without the clip.
    """

    kept: Float[Tensor, "S"]
    unclipped: Float[Tensor, "S"]


def surrogate_of(
    objective: Objective,
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
) -> Surrogate:
    """The objective at recorded log-probs, one advantage a response whatever it takes."""
    per_token = objective.advantage_per == "token"
    given = segments.spread(advantage) if per_token else advantage
    return objective(logp, old_logp, given, segments)


def response_weights(
    objective: Objective, surrogate: Surrogate, advantage: Float[Tensor, "S"]
) -> ResponseWeights:
    """Weights of the responses of a surrogate that this objective made from these advantages."""
    segments = surrogate.segments
    ratio = surrogate.log_ratio.double().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    # Summed over tokens, then times |A|: the response's tokens share its advantage.
    ratio_sum = ratio * segments.lengths if objective.unit == "sequence" else segments.sum(ratio)
    unclipped = ratio_sum * advantage.double().abs()
    if objective.denominator == "responses":
        unclipped = unclipped / segments.lengths.clamp(min=1)
    return ResponseWeights(segments.sum(surrogate.weight.double().abs()), unclipped)


def weight_stats(responses: UpdatedResponses, weights: ResponseWeights) -> Stats:
    """Every `weight/*` statistic of one step, overall and by length."""
    rows = responses.signal & responses.off_policy
    rows &= weights.kept.isfinite() & weights.unclipped.isfinite()
    sets = {"": rows}
    for bucket, members in present_buckets(responses.lengths).items():
        sets[f"/len_{bucket}"] = rows & members
    stats: Stats = {}
    for suffix, members in sets.items():
        stats[f"weight/kept_share{suffix}"] = _kept_share(weights, members)
        stats[f"weight/ess_share{suffix}"] = _effective_share(weights, members)
    return stats


def _kept_share(weights: ResponseWeights, rows: Bool[Tensor, "S"]) -> Mean:
    return Mean(weights.kept[rows].sum(), weights.unclipped[rows].sum())


def _effective_share(weights: ResponseWeights, rows: Bool[Tensor, "S"]) -> EffectiveShare:
    kept = weights.kept[rows]
    return EffectiveShare(kept.sum(), kept.square().sum(), kept.numel())
