"""From logits and one uniform a row to one token a row, with its log-prob.

Inverse of the cumulative distribution, on two levels: the sums of blocks of tokens say in which
block the token lies, and only that block is summed token by token. With the softmax that makes
three passes over the logits: 1.2 ms for 64 rows of 49,152 tokens on two cores, where
`torch.multinomial` takes 85 ms.

The log-prob is that of the whole distribution at the sampling temperature, also under top-k and
top-p, so that a trainer's log-softmax of logits / temperature must give the same number. What was
sampled from is narrower: its log-prob is `logp - log(kept_mass)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from gspo.errors import NumericsError

ONE_LEVEL_WEIGHTS = 2**15  # 128 rows of 256: one cumulative sum is then faster than finding blocks
NUCLEUS_TOKENS = 1024  # taking them out is eight times as fast as sorting 49,152; mostly enough
BELOW_ONE = 1 - 2.0**-53  # the largest float64 below 1, as the largest uniform there is


@dataclass(frozen=True, slots=True)
class Draw:
    """One token a row.

    logp: nats, float32, under the whole distribution at the sampling temperature; greedy tokens
    carry the log-prob at temperature 1 (at 0 every one of them would be 0). kept_mass: probability
    of the tokens that top-k and top-p left, in (0, 1]; None when both are off.
    """

    ids: Int64[Tensor, "B"]
    logp: Float[Tensor, "B"]
    kept_mass: Float[Tensor, "B"] | None = None


def draw(
    logits: Float[Tensor, "B V"],
    uniform: Float64[Tensor, "B"],
    *,
    temperature: float,
    top_k: int = 0,
    top_p: float = 1.0,
) -> Draw:
    """Sample each row with its uniform in [0, 1). temperature 0 takes the most likely token and
    ignores uniform, top_k and top_p. A logit of -inf is a token that cannot come.

    Raises NumericsError for NaN, +inf, or a row of -inf.
    """
    logits = logits.float()
    weights = _weights(logits, temperature or 1.0)
    kept = weights
    if temperature == 0:
        ids, total = logits.argmax(-1), weights.sum(-1)
    else:
        kept = keep_likeliest(weights, top_k=top_k, top_p=top_p)
        ids, total = pick(kept, uniform)
    drawn = weights.gather(-1, ids[:, None]).squeeze(-1)
    if not bool((drawn > 0).all()):  # one check for all that is rare: NaN is not above 0 either
        _check_finite(logits.amax(-1))
        ids = torch.where(drawn > 0, ids, kept.argmax(-1))
        drawn = weights.gather(-1, ids[:, None]).squeeze(-1)
    if kept is weights:
        return Draw(ids, (drawn / total).log().float())
    total = weights.sum(-1)
    return Draw(ids, (drawn / total).log(), kept.sum(-1) / total)


def keep_likeliest(
    weights: Float[Tensor, "B V"], *, top_k: int, top_p: float
) -> Float[Tensor, "B V"]:
    """Weights with the tokens outside top-k, then outside top-p of what is left, at zero.

    top-p keeps the fewest likeliest tokens whose mass reaches top_p, the one that crosses it
    included. Tokens exactly as likely as the last one kept stay too: the kept set is a property of
    the distribution, not of a sorting order. Returns `weights` itself when both are off.
    """
    if 0 < top_k < weights.shape[-1]:
        edge = weights.topk(top_k).values[:, -1:]
        weights = torch.where(weights >= edge, weights, 0.0)
    if top_p < 1:
        target = top_p * weights.sum(-1, keepdim=True)
        edge = _nucleus_edge(weights, target, min(NUCLEUS_TOKENS, weights.shape[-1]))
        weights = torch.where(weights >= edge, weights, 0.0)
    return weights


def pick(
    weights: Float[Tensor, "B V"], uniform: Float64[Tensor, "B"]
) -> tuple[Int64[Tensor, "B"], Float64[Tensor, "B"]]:
    """First token whose cumulative weight exceeds uniform times the total, and the total.

    Cumulative sums are float64, so that uniform * total stays below the total. A token of weight 0
    does not raise the sum, so the first to exceed the target has weight; a parallel scan that sums
    in another order on each side of a border may still step up there, once in 10^15.
    """
    num_tokens = weights.shape[-1]
    if weights.numel() <= ONE_LEVEL_WEIGHTS:
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        total = cumulative[:, -1:]
        ids = _first_above(cumulative, uniform[:, None] * total)
        return ids.squeeze(-1), total.squeeze(-1)
    size = 1 << round(math.log2(num_tokens) / 2)  # about as many blocks as tokens in each
    sums = _block_sums(weights, size).double()
    cumulative = sums.cumsum(-1)
    total = cumulative[:, -1:]
    target = uniform[:, None] * total
    block = _first_above(cumulative, target)
    before = (cumulative - sums).gather(-1, block)
    # Behind the last token it stands again: who lands there has passed all others.
    index = block * size + torch.arange(size, device=weights.device)
    inside = weights.gather(-1, index.clamp_(max=num_tokens - 1)).cumsum(-1, dtype=torch.float64)
    # The block's float32 sum may exceed its float64 one by a rounding.
    rest = (target - before).clamp_(min=0).minimum(inside[:, -1:] * BELOW_ONE)
    ids = (block * size + _first_above(inside, rest)).clamp_(max=num_tokens - 1)
    return ids.squeeze(-1), total.squeeze(-1)


def _weights(logits: Float[Tensor, "B V"], temperature: float) -> Float[Tensor, "B V"]:
    """Proportional to the probabilities. A tensor of its own, so the caller's logits stay as they
    are, and the only one of this size: at 64 x 49,152 a second one costs more than all the rest."""
    if temperature == 1:
        return logits.softmax(-1)
    scaled = logits / temperature
    return scaled.sub_(scaled.amax(-1, keepdim=True)).exp_()


def _nucleus_edge(
    weights: Float[Tensor, "B V"], target: Float[Tensor, "B one"], num_likeliest: int
) -> Float[Tensor, "B one"]:
    """Weight of the token with which the sum, likeliest first, reaches the target. Rows whose
    num_likeliest do not reach it are sorted whole."""
    num_tokens = weights.shape[-1]
    whole = num_likeliest == num_tokens
    ordered = (
        weights.sort(-1, descending=True).values if whole else weights.topk(num_likeliest).values
    )
    mass = ordered.cumsum(-1)
    edge = ordered.gather(-1, (mass[:, :-1] < target).sum(-1, keepdim=True))
    short = (mass[:, -1:] < target).squeeze(-1)
    if not whole and bool(short.any()):
        edge[short] = _nucleus_edge(weights[short], target[short], num_tokens)
    return edge


def _first_above(
    cumulative: Float64[Tensor, "B N"], target: Float64[Tensor, "B one"]
) -> Int64[Tensor, "B one"]:
    """Place of the first sum above the target; the last place for a row of NaN."""
    place = torch.searchsorted(cumulative, target, right=True)
    return place.clamp_(max=cumulative.shape[-1] - 1)


def _block_sums(weights: Float[Tensor, "B V"], size: int) -> Float[Tensor, "B N"]:
    """Sums of `size` neighbours; the last block may be shorter."""
    num_whole = weights.shape[-1] // size
    whole, tail = weights.tensor_split((num_whole * size,), -1)
    sums = whole.unflatten(-1, (num_whole, size)).sum(-1)
    return torch.cat((sums, tail.sum(-1, keepdim=True)), -1) if tail.shape[-1] else sums


def _check_finite(peak: Float[Tensor, "B"]) -> None:
    """The largest logit shows it all: NaN and +inf come through, -inf means nothing is left."""
    broken = ~peak.isfinite()
    if bool(broken.any()):
        raise NumericsError(
            f"the largest logit of {int(broken.sum())} of {peak.shape[0]} rows is "
            f"{peak[broken][0].item()}; wanted a finite number: the weights hold NaN or inf, or "
            "activations overflow; load the last good checkpoint, or run the model in float32"
        )
