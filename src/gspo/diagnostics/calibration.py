"""A clip range from measured log s: what `clip: auto` and `gspo calibrate` fit.

For a wanted cut share c, the upper bound cuts the share c of responses with A > 0, the lower one
the share c of those with A < 0, and so c of all that have an advantage:

    high = exp(q) - 1    q: the (1 - c) quantile of log s where A > 0
    low  = 1 - exp(q)    q: the c quantile of log s where A < 0

Neither is narrower than the floor, below which the clip would cut noise, nor wider than the
ceiling, above which it would hold nothing. What is measured must come from off-policy
minibatches, under PROVISIONAL_CLIP: a band narrow enough to cut changes what it measures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from gspo.errors import NumericsError, RecipeError
from gspo.settings import ClipRange

#: Nats. Spread of log s between two float32 passes over the same tokens: 3e-8 to 7e-7 measured
#: on models of 5M and 135M parameters; 1e-6 is the next power of ten.
FLOAT32_NOISE = 1e-6
NOISE_MARGIN = 10  # noise standard deviations inside the floor: none of it is ever cut
GAP_MARGIN = 3  # engine gap means inside the floor: the gap shifts every response one way
CEILING = 0.1  # from ratio 1: ranges of 0.1 and above are token ranges, e.g. GRPO's 0.2
#: Of each sign. The standard error of a share of 0.15 is then sqrt(0.15 x 0.85 / 256) = 0.022.
MIN_RESPONSES = 256
#: In force while measuring: log s within 0.1 nats of 0. Against runaway only, so hardly ever cuts.
PROVISIONAL_CLIP = ClipRange(low=-math.expm1(-0.1), high=math.expm1(0.1))


def is_provisional(low: float, high: float) -> bool:
    """Whether this is the band of a run that is still measuring."""
    return math.isclose(low, PROVISIONAL_CLIP.low) and math.isclose(high, PROVISIONAL_CLIP.high)


#: What decided a bound.
Held = Literal["measured", "floor", "ceiling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A fitted range and its evidence; plain numbers, so that it can be stored.

    low, high: distances from ratio 1. low_held, high_held: what decided each. low_quantile,
    high_quantile: the measured quantiles of log s, in nats, before floor and ceiling.
    low_against_advantage, high_against_advantage: the quantile lies on the wrong side of 0, that
    is, most responses of that sign moved against their advantage.
    """

    low: float
    high: float
    low_held: Held
    high_held: Held
    low_quantile: float
    high_quantile: float
    low_against_advantage: bool
    high_against_advantage: bool
    num_positive: int
    num_negative: int
    cut_share: float

    @property
    def clip(self) -> ClipRange:
        """The range to train with."""
        return ClipRange(low=self.low, high=self.high)

    @property
    def at_ceiling(self) -> bool:
        """A side moved further than any range should allow: lower the learning rate instead."""
        return "ceiling" in (self.low_held, self.high_held)

    @property
    def against_advantage(self) -> bool:
        """A side moved against its advantage."""
        return self.low_against_advantage or self.high_against_advantage


def noise_floor(noise: float = FLOAT32_NOISE, engine_gap_mean: float = 0.0) -> float:
    """The smallest distance from ratio 1 that is not noise.

    noise: standard deviation of log s at unchanged weights, nats. engine_gap_mean: `gap/log_s_mean`
    where the engine's log-probs are used as the old ones, else 0.

    >>> noise_floor(engine_gap_mean=-2e-4) == 3 * 2e-4
    True
    """
    return max(NOISE_MARGIN * noise, GAP_MARGIN * abs(engine_gap_mean))


def fit_range(
    log_s: Float[Tensor, "S"],
    advantage: Float[Tensor, "S"],
    *,
    floor: float,
    cut_share: float = 0.15,
    ceiling: float = CEILING,
    min_responses: int = MIN_RESPONSES,
) -> Calibration | None:
    """The range that would have cut `cut_share` of these responses; None while there are fewer
    than `min_responses` of either sign.

    log_s, advantage: off-policy responses, of one or more steps; log s that is not finite and
    advantages of zero are left out. floor, ceiling: distances from ratio 1; see `noise_floor`.
    """
    _check(floor, cut_share, ceiling)
    measured = log_s.isfinite()
    positive = log_s[measured & (advantage > 0)].double()
    negative = log_s[measured & (advantage < 0)].double()
    if min(positive.numel(), negative.numel()) < max(min_responses, 1):
        return None
    high_quantile = positive.quantile(1 - cut_share)
    low_quantile = negative.quantile(cut_share)
    low, low_held = _hold(float(-low_quantile.expm1()), floor, ceiling)
    high, high_held = _hold(float(high_quantile.expm1()), floor, ceiling)
    return Calibration(
        low=low,
        high=high,
        low_held=low_held,
        high_held=high_held,
        low_quantile=float(low_quantile),
        high_quantile=float(high_quantile),
        low_against_advantage=float(low_quantile) > 0,
        high_against_advantage=float(high_quantile) < 0,
        num_positive=positive.numel(),
        num_negative=negative.numel(),
        cut_share=cut_share,
    )


def _hold(distance: float, floor: float, ceiling: float) -> tuple[float, Held]:
    """The distance between floor and ceiling, and which of them decided it, if any."""
    if distance < floor:
        return floor, "floor"
    if distance > ceiling:
        return ceiling, "ceiling"
    return distance, "measured"


def _check(floor: float, cut_share: float, ceiling: float) -> None:
    if not 0 < cut_share < 0.5:
        raise RecipeError(
            f"wanted cut share is {cut_share!r}; wanted a number above 0 and below 0.5 (the paper's runs cut 0.15)"
        )
    if not 0 < ceiling < 1:
        raise RecipeError(
            f"ceiling is {ceiling!r}; wanted a distance from ratio 1, above 0, below 1"
        )
    if not 0 < floor <= ceiling:
        raise NumericsError(
            f"the noise floor of the ratio is {floor:g}, the widest range allowed is {ceiling:g}; "
            "log-probs are too coarse to calibrate on: use float32, and the trainer's own old_logp"
        )
