"""Objectives that stop no token's gradient: CISPO weighs it, SAPO gates it.

So cut_low and cut_high are False everywhere. Arguments and errors are those of `token`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.objectives.inputs import response_advantage, token_surrogate
from gspo.ratios import token_log_ratio
from gspo.segments import Segments
from gspo.settings import ClipRange
from gspo.types import Surrogate


def cispo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: ClipRange,
) -> Surrogate:
    """Clipped Importance Sampling Policy Optimization.

        loss_i = -sum_t sg[clip(r_t, 1 - low, 1 + high)] A_i logp_t,  D = tokens

    Source: arXiv 2506.13585, equations 4 and 5. Token t has the weight clip(r_t) A_i whatever
    r_t is: the clip limits weights and cuts nothing. No gradient flows through the ratio, so a
    bounded token keeps its own.
    """
    advantage_N = segments.spread(response_advantage(advantage, logp, segments))
    log_r = token_log_ratio(logp, old_logp)
    slope = log_r.held.detach().clamp(*clip.band(segments.lengths)).exp() * advantage_N
    none = torch.zeros_like(log_r.bounded)
    return token_surrogate(slope * logp, slope, log_r, none, none, segments, "tokens")


def sapo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    tau_pos: float,
    tau_neg: float,
) -> Surrogate:
    """Soft Adaptive Policy Optimization.

        f(r) = sigmoid(tau (r - 1)) 4 / tau,  tau = tau_pos for A_i > 0, else tau_neg
        loss_i = -mean_t f(r_t) A_i,  D = responses

    Source: arXiv 2511.20347, equations 5 and 6. Token t has the weight
    4 sigmoid(x) sigmoid(-x) r_t A_i / L_i with x = tau (r_t - 1): r_t A_i / L_i at r_t = 1, fading
    on both sides. There is no clip.
    """
    advantage_N = segments.spread(response_advantage(advantage, logp, segments))
    log_r = token_log_ratio(logp, old_logp)
    tau = torch.full_like(advantage_N, tau_neg).masked_fill(advantage_N > 0, tau_pos)
    gate = tau * log_r.held.expm1()

    gain = gate.sigmoid() * (4.0 / tau) * advantage_N
    slope = 4.0 * gate.sigmoid() * (-gate).sigmoid() * log_r.held.exp() * advantage_N
    slope = torch.where(log_r.bounded, 0.0, slope)
    none = torch.zeros_like(log_r.bounded)
    return token_surrogate(gain, slope, log_r, none, none, segments, "responses")
