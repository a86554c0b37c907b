"""What every objective does first and last: check its advantages, assemble its surrogate."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gspo.errors import GspoError
from gspo.ratios import LogRatio
from gspo.segments import Segments
from gspo.settings import Denominator
from gspo.types import Surrogate


def response_advantage(
    advantage: Tensor, logp: Float[Tensor, "N"], segments: Segments
) -> Float[Tensor, "S"]:
    """Advantages, one per response, in the precision of logp; 0 for an empty response, whose
    ratio is 1 for want of tokens and must not count.

    Raises GspoError when advantage is not [S] or logp not [N].
    """
    _check_tokens(logp, segments)
    if tuple(advantage.shape) != (segments.num_responses,):
        raise GspoError(
            f"advantage has shape {tuple(advantage.shape)}; wanted ({segments.num_responses},), "
            "one per response: for one per token use gspo_token"
        )
    return torch.where(segments.lengths > 0, advantage.detach().to(logp), 0.0)


def token_advantage(
    advantage: Tensor, logp: Float[Tensor, "N"], segments: Segments
) -> Float[Tensor, "N"]:
    """Advantages, one per token, in the precision of logp.

    Raises GspoError when advantage or logp is not [N].
    """
    _check_tokens(logp, segments)
    if tuple(advantage.shape) != (segments.num_tokens,):
        raise GspoError(
            f"advantage has shape {tuple(advantage.shape)}; wanted ({segments.num_tokens},), "
            "one per token: segments.spread(advantage) gives each token that of its response"
        )
    return advantage.detach().to(logp)


def token_surrogate(
    gain: Float[Tensor, "N"],
    slope: Float[Tensor, "N"],
    ratio: LogRatio,
    cut_low: Bool[Tensor, "N"],
    cut_high: Bool[Tensor, "N"],
    segments: Segments,
    denominator: Denominator,
) -> Surrogate:
    """Surrogate of an objective that is a sum over tokens.

    gain: what each token adds to the maximised objective. slope: its derivative with respect to
    the token's logp. Both are averaged over the response where D counts responses, else summed.
    """
    weight = slope.detach()
    if denominator == "responses":
        return Surrogate(
            loss=-segments.mean(gain),
            log_ratio=ratio.raw,
            cut_low=cut_low,
            cut_high=cut_high,
            bounded=ratio.bounded,
            weight=weight / segments.spread(segments.lengths),
            segments=segments,
        )
    return Surrogate(
        loss=-segments.sum(gain),
        log_ratio=ratio.raw,
        cut_low=cut_low,
        cut_high=cut_high,
        bounded=ratio.bounded,
        weight=weight,
        segments=segments,
    )


def _check_tokens(logp: Tensor, segments: Segments) -> None:
    if tuple(logp.shape) != (segments.num_tokens,):
        raise GspoError(
            f"logp has shape {tuple(logp.shape)}, but segments hold {segments.num_tokens} tokens "
            f"of {segments.num_responses} responses: wanted ({segments.num_tokens},)"
        )
