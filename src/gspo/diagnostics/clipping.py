"""What the clip cut: shares by side, by sign of the advantage, by length and by minibatch.

cut: the clip made a unit's gradient zero. A unit is a response (sequence objectives) or a token
(token objectives). A response's cut share is cut units / its units, so 0 or 1 where the response
is the unit. Then, over any set of responses,

    response-weighted   sum of cut shares / number of responses
    token-weighted      sum of length x cut share / sum of lengths      (names end in `_tokens`)

which for token objectives is the mean over responses of their share of cut tokens, and cut tokens
over tokens. The first minibatch of a step has ratio 1 and cannot be cut, so the headline leaves
it out, and with it every response of zero advantage.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.diagnostics.lengths import present_buckets
from gspo.errors import GspoError
from gspo.settings import Unit
from gspo.stats import Mean, Stats

#: Lower and upper bound on log s, in nats, as `clip.band(lengths)` gives them.
Band = tuple[float | Float[Tensor, "S"], float | Float[Tensor, "S"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedResponses:
    """The S responses that were in a step's updates, in any order.

    log_s: mean over tokens of logp - old_logp, before any bound, nats; NaN where the update had
    no need to run the response. advantage: one number a response; for per-token advantages the
    one of largest magnitude, so that 0 means no gradient. lengths: trained tokens. minibatch:
    counted from 1. off_policy: the weights had moved since old_logp. cut_low, cut_high: units cut
    on that side.
    """

    log_s: Float[Tensor, "S"]
    advantage: Float[Tensor, "S"]
    lengths: Int[Tensor, "S"]
    minibatch: Int[Tensor, "S"]
    off_policy: Bool[Tensor, "S"]
    cut_low: Int[Tensor, "S"]
    cut_high: Int[Tensor, "S"]
    unit: Unit

    @property
    def signal(self) -> Bool[Tensor, "S"]:
        """Responses that can have a gradient: not empty, advantage not zero."""
        return (self.advantage != 0) & (self.lengths > 0)

    def minibatches(self) -> dict[int, Bool[Tensor, "S"]]:
        """Minibatch number -> its responses, for those that hold any."""
        return {k: self.minibatch == k for k in sorted(set(self.minibatch.tolist()))}


def clip_stats(responses: UpdatedResponses, band: Band | None = None) -> Stats:
    """Every `clip/*` statistic of one step.

    band: bounds on log s, for sequence objectives only; adds `clip/outside_*`, the shares out of
    the band whatever the sign of the advantage.
    """
    sets = _response_sets(responses)
    cuts = {
        "cut_share": responses.cut_low + responses.cut_high,
        "cut_low": responses.cut_low,
        "cut_high": responses.cut_high,
    }
    stats: Stats = {}
    for name, cut in cuts.items():
        share = _share_of_units(cut, responses)
        for suffix, rows in sets.items():
            stats[f"clip/{name}{suffix}"] = _mean(share, rows)
        for suffix in ("", "_all"):
            stats[f"clip/{name}{suffix}_tokens"] = _mean(share, sets[suffix], responses.lengths)
    either = _share_of_units(cuts["cut_share"], responses)
    stats["clip/cut_share_positive"] = _mean(either, sets[""] & (responses.advantage > 0))
    stats["clip/cut_share_negative"] = _mean(either, sets[""] & (responses.advantage < 0))
    return stats if band is None else stats | _outside(responses, band)


def _response_sets(responses: UpdatedResponses) -> dict[str, Bool[Tensor, "S"]]:
    """Suffix of the name -> which responses it is about."""
    headline = responses.signal & responses.off_policy
    everyone = responses.lengths > 0
    sets = {"": headline, "_all": everyone}
    for number, rows in responses.minibatches().items():
        sets[f"_mb{number}"] = responses.signal & rows
    for bucket, rows in present_buckets(responses.lengths).items():
        sets[f"/len_{bucket}"] = headline & rows
        sets[f"_all/len_{bucket}"] = everyone & rows
    return sets


def _share_of_units(cut: Int[Tensor, "S"], responses: UpdatedResponses) -> Float[Tensor, "S"]:
    """Cut units of each response over its units, float64."""
    if responses.unit == "sequence":
        return cut.double()
    return cut.double() / responses.lengths.clamp(min=1)


def _mean(
    share: Float[Tensor, "S"], rows: Bool[Tensor, "S"], weight: Int[Tensor, "S"] | None = None
) -> Mean:
    """Weighted mean of the shares of these rows; every row weighs 1 without a weight."""
    weight_S = rows.double() if weight is None else rows * weight.double()
    return Mean((share * weight_S).sum(), weight_S.sum())


def _outside(responses: UpdatedResponses, band: Band) -> Stats:
    """Shares of measured log s below and above the band, response-weighted."""
    if responses.unit != "sequence":
        raise GspoError(
            f"a band on log s was given for unit {responses.unit!r}, whose clip acts on single tokens; leave band out"
        )
    log_s = responses.log_s.double()
    rows = responses.signal & responses.off_policy & log_s.isfinite()
    below, above = log_s < band[0], log_s > band[1]
    return {
        "clip/outside_share": _mean((below | above).double(), rows),
        "clip/outside_low": _mean(below.double(), rows),
        "clip/outside_high": _mean(above.double(), rows),
    }
