"""GSPO and GSPO-token: one length-normalised ratio and one clip decision per response."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.objectives.inputs import response_advantage, token_advantage
from gspo.ratios import cut_gain, response_log_ratio
from gspo.segments import Segments
from gspo.settings import SequenceClip
from gspo.types import Surrogate


def gspo(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "S"],
    segments: Segments,
    *,
    clip: SequenceClip,
) -> Surrogate:
    """Group Sequence Policy Optimization.

        s_i = exp(mean_t(logp_t - old_logp_t))
        loss_i = -min(s_i A_i, clip(s_i) A_i),  D = responses

    Source: arXiv 2507.18071, equations 5 and 7. Every token of a kept response has the same
    weight s_i A_i / L_i.

    logp, old_logp: nats. clip: a ClipRange around s = 1, or a LengthFairClip on log s.
    Raises GspoError for shapes that do not fit, NumericsError for log-probs coarser than float32.

    >>> from gspo.settings import ClipRange
    >>> logp = torch.tensor([0.58, 0.30, 0.90, 0.05]).log()
    >>> old_logp = torch.tensor([0.50, 0.40, 0.90, 0.04]).log()
    >>> segments, clip = Segments.from_lengths([4]), ClipRange(low=3e-4, high=4e-4)
    >>> gspo(logp, old_logp, torch.tensor([-1.0]), segments, clip=clip).loss
    tensor([1.0212])
    """
    advantage_S = response_advantage(advantage, logp, segments)
    log_s = response_log_ratio(logp, old_logp, segments)
    cut = cut_gain(log_s.held, advantage_S, *_band(clip, segments, logp))

    gain = cut.log_ratio.exp() * advantage_S
    weight = torch.where(cut.low | cut.high | log_s.bounded, 0.0, gain.detach())
    return Surrogate(
        loss=-gain,
        log_ratio=log_s.raw,
        cut_low=cut.low,
        cut_high=cut.high,
        bounded=log_s.bounded,
        weight=segments.spread(weight / segments.lengths.clamp(min=1)),
        segments=segments,
    )


def gspo_token(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    advantage: Float[Tensor, "N"],
    segments: Segments,
    *,
    clip: SequenceClip,
) -> Surrogate:
    """GSPO with one advantage per token.

        s_t = sg[s_i] exp(logp_t - sg[logp_t])
        loss_i = -mean_t min(s_t A_t, clip(s_t) A_t),  D = responses

    Source: arXiv 2507.18071, equations 13 and 14. Token t has the weight s_i A_t / L_i; equal
    advantages give GSPO in value, clip and gradient. Where a response's advantages differ in sign
    the clip stops only the tokens on one side: then cut_low and cut_high are False for the
    response, as its gradient is not zero, and `weight` shows which tokens stopped.

    Arguments and errors are those of `gspo`, but advantage is [N].
    """
    advantage_N = token_advantage(advantage, logp, segments)
    log_s = response_log_ratio(logp.detach(), old_logp, segments)
    low, high = _band(clip, segments, logp)

    # In this order: (logp + log s) - logp would round log s to the precision of logp.
    log_s_N = (logp - logp.detach()) + segments.spread(log_s.held)
    bounded_N = segments.spread(log_s.bounded)
    log_s_N = torch.where(bounded_N, segments.spread(log_s.held), log_s_N)
    cut = cut_gain(log_s_N, advantage_N, segments.spread(low), segments.spread(high))
    gain = cut.log_ratio.exp() * advantage_N
    weight = torch.where(cut.low | cut.high | bounded_N, 0.0, gain.detach())

    whole = cut_gain(log_s.held, _agreed_sign(advantage_N, segments), low, high)
    return Surrogate(
        loss=-segments.mean(gain),
        log_ratio=log_s.raw,
        cut_low=whole.low,
        cut_high=whole.high,
        bounded=log_s.bounded,
        weight=weight / segments.spread(segments.lengths),
        segments=segments,
    )


def _band(
    clip: SequenceClip, segments: Segments, like: Tensor
) -> tuple[Float[Tensor, "S"], Float[Tensor, "S"]]:
    """Bounds on log s of each response, in nats."""
    low, high = (
        torch.as_tensor(bound, dtype=like.dtype, device=like.device).expand(segments.num_responses)
        for bound in clip.band(segments.lengths)
    )
    return low, high


def _agreed_sign(advantage: Float[Tensor, "N"], segments: Segments) -> Float[Tensor, "S"]:
    """+1 or -1 where a response's non-zero advantages all have that sign, else 0."""
    some_positive = segments.sum((advantage > 0).to(advantage)) > 0
    some_negative = segments.sum((advantage < 0).to(advantage)) > 0
    return some_positive.to(advantage) - some_negative.to(advantage)
