"""Objectives with one ratio and one clip decision per token: GRPO, DAPO, Dr. GRPO, PPO.

They share the clipped token surrogate and differ in its denominator D:

    loss_i = -mean_t or -sum_t of min(r_t A_i, clip(r_t, 1 - low, 1 + high) A_i)

and every kept token has the weight r_t A_i, divided by L_i where the mean is taken. Arguments and
errors are the same throughout: logp, old_logp in nats, advantage [S]; GspoError for shapes that
do not fit, NumericsError for log-probs coarser than float32.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.objectives.inputs import response_advantage, token_surrogate
from gspo.ratios import Cut, cut_gain, token_log_ratio
from gspo.segments import Segments
from gspo.settings import ClipRange, Denominator
from gspo.types import Surrogate


def grpo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: ClipRange,
) -> Surrogate:
    """Group Relative Policy Optimization: the mean over tokens, D = responses.

    Source: arXiv 2402.03300, equation 3, without its KL term (see `kl`).
    """
    return _clipped(logp, old_logp, advantage, segments, clip, "responses")


def dapo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: ClipRange,
) -> Surrogate:
    """DAPO's token-level loss: the sum over tokens, D = tokens of the step.

    Source: arXiv 2503.14476, equation 8.
    """
    return _clipped(logp, old_logp, advantage, segments, clip, "tokens")


def dr_grpo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: ClipRange,
) -> Surrogate:
    """Dr. GRPO: the sum over tokens, D = responses x the response length limit.

    Source: arXiv 2503.20783, section 3.2. The limit is a setting of `DrGRPO`, not of the loss.
    """
    return _clipped(logp, old_logp, advantage, segments, clip, "constant")


def ppo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: ClipRange,
    dual_clip: float | None = None,
) -> Surrogate:
    """PPO's clipped surrogate: the sum over tokens, D = tokens of the step.

        A < 0 and dual_clip = c:  max(min(r A, clip(r) A), c A)

    Source: arXiv 1707.06347, equation 7; dual clip arXiv 1912.09729, equation 5. A token that the
    dual clip stops counts as cut_high: its ratio lies above c.
    """
    return _clipped(logp, old_logp, advantage, segments, clip, "tokens", dual_clip)


def _clipped(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    clip: ClipRange,
    denominator: Denominator,
    dual_clip: float | None = None,
) -> Surrogate:
    advantage_N = segments.spread(response_advantage(advantage, logp, segments))
    log_r = token_log_ratio(logp, old_logp)
    cut = cut_gain(log_r.held, advantage_N, *clip.band(segments.lengths))
    if dual_clip is not None:
        cut = _cap_loss(cut, advantage_N, math.log(dual_clip))

    gain = cut.log_ratio.exp() * advantage_N
    slope = torch.where(cut.low | cut.high | log_r.bounded, 0.0, gain)
    return token_surrogate(gain, slope, log_r, cut.low, cut.high, segments, denominator)


def _cap_loss(cut: Cut, advantage: Float[Tensor, "N"], cap: float) -> Cut:
    """Hold the log-ratio of a negative-advantage token at cap nats, from where its loss would
    grow without bound."""
    capped = (advantage < 0) & (cut.log_ratio > cap)
    return Cut(torch.where(capped, cap, cut.log_ratio), cut.low, cut.high | capped)
