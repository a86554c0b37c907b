"""GMPO: the geometric mean of token ratios, each clipped on one side in log space first."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.objectives.inputs import response_advantage
from gspo.ratios import check_logp, cut_gain, hold
from gspo.segments import Segments
from gspo.settings import LogClip
from gspo.types import Surrogate


def gmpo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: LogClip,
) -> Surrogate:
    """Geometric-Mean Policy Optimization.

        k_t = min(log r_t, high) for A_i > 0,  max(log r_t, -low) for A_i < 0
        loss_i = -exp(mean_t k_t) A_i,  D = responses

    Source: arXiv 2507.20673, equation 4. Every token that was not clipped has the weight
    exp(mean_t k_t) A_i / L_i.

    log_ratio, cut and bounded are per token; it is the mean that is held, so `bounded` is true
    for all tokens of a response or for none. Errors are those of `gspo`.
    """
    advantage_S = response_advantage(advantage, logp, segments)
    check_logp(logp, old_logp)
    log_r = logp - old_logp.detach()
    cut = cut_gain(log_r, segments.spread(advantage_S), *clip.band(segments.lengths))
    mean = hold(segments.mean(cut.log_ratio))

    gain = mean.held.exp() * advantage_S
    bounded_N = segments.spread(mean.bounded)
    share = segments.spread(gain.detach() / segments.lengths.clamp(min=1))
    return Surrogate(
        loss=-gain,
        log_ratio=log_r.detach(),
        cut_low=cut.low,
        cut_high=cut.high,
        bounded=bounded_N,
        weight=torch.where(cut.low | cut.high | bounded_N, 0.0, share),
        segments=segments,
    )
