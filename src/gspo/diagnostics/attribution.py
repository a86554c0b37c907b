"""Which tokens drive a response's ratio: few or many, with or against one another.

d_t = logp_t - old_logp_t is the log-ratio of token t; log s is the mean of the d_t. Their size is
taken for the share, not their sum:

    share of the top k   sum of |d_t| over the k tokens of largest |d_t| / sum of |d_t|
    cancelled share      1 - |sum of d_t| / sum of |d_t|

A share of the signed sum would grow without bound where tokens cancel, and one such response
would decide any mean. So the first number says how few tokens hold the movement, the second how
much of the movement is lost because tokens pull against one another. Both lie in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.errors import DataError
from gspo.ratios import token_log_ratio
from gspo.segments import Segments
from gspo.stats import Mean, Stats

#: A response of 10 tokens or fewer has the top-10 share 1.
TOP = (1, 3, 10)
CONTEXT_TOKENS = 8  # shown on either side of a token: some words


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Of S responses, log-ratios in nats, float64; positions count a response's tokens from 0.

    size: sum of |d_t|. total: sum of d_t. NaN in both where the response was not run.
    top_position, top_value: the K tokens of largest |d_t|, largest first, the earlier one first
    among equals; -1 and 0 past the end of the response.
    pair_position, pair_value: the largest cancelling pair, its positive and its negative token. Of
    all pairs of opposite sign it is the one whose smaller |d_t| is largest, and of those the one
    whose sum is nearest to 0; -1 and 0 where all tokens move one way.
    """

    size: Float[Tensor, "S"]
    total: Float[Tensor, "S"]
    top_position: Int[Tensor, "S K"]
    top_value: Float[Tensor, "S K"]
    pair_position: Int[Tensor, "S 2"]
    pair_value: Float[Tensor, "S 2"]

    def top_share(self, k: int) -> Float[Tensor, "S"]:
        """Share of the k largest tokens, k at most K; NaN where nothing moved."""
        return self.top_value[:, :k].abs().sum(1) / self.size

    @property
    def cancelled_share(self) -> Float[Tensor, "S"]:
        """Share of the movement that cancels; NaN where nothing moved."""
        return 1 - self.total.abs() / self.size


def attribute(
    logp: Float[Tensor, "N"],
    old_logp: Float[Tensor, "N"],
    segments: Segments,
    *,
    top: int = max(TOP),
) -> Attribution:
    """Take the log-ratios of each response apart.

    Raises GspoError for different shapes, NumericsError for log-probs coarser than float32.

    >>> moved = torch.tensor([0.5, -0.25, 0.25])
    >>> found = attribute(moved, torch.zeros(3), Segments.from_lengths([3]))
    >>> found.top_share(1), found.cancelled_share, found.pair_position
    (tensor([0.5000], dtype=torch.float64), tensor([0.5000], dtype=torch.float64), tensor([[2, 1]]))
    """
    log_ratio = token_log_ratio(logp.detach(), old_logp).raw.double()
    starts = segments.lengths.cumsum(0) - segments.lengths
    position = torch.arange(segments.num_tokens, device=logp.device) - segments.spread(starts)
    top_position, top_value = _largest(log_ratio, position, segments, top)
    pair_position, pair_value = _largest_pair(log_ratio, position, segments)
    return Attribution(
        size=segments.sum(log_ratio.abs()),
        total=segments.sum(log_ratio),
        top_position=top_position,
        top_value=top_value,
        pair_position=pair_position,
        pair_value=pair_value,
    )


def attribution_stats(responses: UpdatedResponses, found: Attribution) -> Stats:
    """Every `attribution/*` statistic of one step: means over responses with A != 0 of off-policy
    minibatches, of which some token moved."""
    rows = responses.signal & responses.off_policy & found.size.isfinite() & (found.size > 0)
    shares = {f"top{k}_share": found.top_share(k) for k in TOP}
    shares["cancelled_share"] = found.cancelled_share
    return {
        f"attribution/{name}": Mean(share[rows].sum(), rows.sum()) for name, share in shares.items()
    }


def _largest(
    log_ratio: Float[Tensor, "N"], position: Int[Tensor, "N"], segments: Segments, top: int
) -> tuple[Int[Tensor, "S K"], Float[Tensor, "S K"]]:
    """Positions and values of each response's `top` tokens of largest size."""
    by_size = log_ratio.abs().argsort(descending=True, stable=True)
    order = by_size[segments.ids[by_size].argsort(stable=True)]
    # Responses lie where they lay, their tokens by size: `position` now counts ranks.
    within = position < top
    place = segments.ids[within], position[within]
    positions = position.new_full((segments.num_responses, top), -1)
    values = log_ratio.new_zeros((segments.num_responses, top))
    positions[place] = position[order[within]]
    values[place] = log_ratio[order[within]]
    return positions, values


def _largest_pair(
    log_ratio: Float[Tensor, "N"], position: Int[Tensor, "N"], segments: Segments
) -> tuple[Int[Tensor, "S 2"], Float[Tensor, "S 2"]]:
    """The best cancelled size is the smaller of the two extremes. On the side that has it there is
    no choice; on the other the token nearest to it wins."""
    sides = log_ratio.clamp(min=0), (-log_ratio).clamp(min=0)
    up, down = (_per_response(side, segments, "amax", 0.0) for side in sides)
    cancelled = torch.minimum(up, down)
    found = [_nearest(side, cancelled, position, segments) for side in sides]
    positions = torch.stack([at for at, _ in found], dim=1)
    return positions, torch.stack([found[0][1], -found[1][1]], dim=1)


def _nearest(
    side: Float[Tensor, "N"],
    cancelled: Float[Tensor, "S"],
    position: Int[Tensor, "N"],
    segments: Segments,
) -> tuple[Int[Tensor, "S"], Float[Tensor, "S"]]:
    """Position and size of the smallest token of this side that is at least `cancelled`."""
    fits = (side > 0) & (side >= segments.spread(cancelled))
    size = _per_response(side.masked_fill(~fits, math.inf), segments, "amin", math.inf)
    exact = fits & (side == segments.spread(size))
    beyond = segments.num_tokens
    first = _per_response(position.masked_fill(~exact, beyond), segments, "amin", beyond)
    some = (cancelled > 0) & (first < beyond)
    return torch.where(some, first, -1), torch.where(some, size, 0.0)


def _per_response(values: Tensor, segments: Segments, reduce: str, start: float) -> Tensor:
    """Largest ("amax") or smallest ("amin") of each response, from `start`."""
    return values.new_full((segments.num_responses,), start).scatter_reduce(
        0, segments.ids, values, reduce
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedToken:
    """A token where it stands. before, text, after: as decoded, nothing cleaned. log_ratio: d_t,
    nats. share: |d_t| of the response's sum of |d_t|."""

    position: int
    before: str
    text: str
    after: str
    log_ratio: float
    share: float

    def __str__(self) -> str:
        return f"{self.before}[{self.text}]{self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedResponse:
    """log_s: nats. top: the tokens that moved most. pair: the largest cancelling pair, its
    positive token first; None where all tokens move one way."""

    log_s: float
    cancelled_share: float
    top: Sequence[ExplainedToken]
    pair: tuple[ExplainedToken, ExplainedToken] | None


def explain_response(
    row: Mapping[str, Any],
    decode: Callable[[Sequence[int]], str],
    *,
    top: int = max(TOP),
    context: int = CONTEXT_TOKENS,
) -> ExplainedResponse:
    """The tokens behind log s of one row of steps/NNNNNN.parquet, with the text around them.

    row: `tokens`, `logp`, `old_logp`. context: tokens on either side. Shares are 0 where nothing
    moved. Raises DataError for a row without log-probs.
    """
    if row["logp"] is None or row["old_logp"] is None:
        raise DataError(
            f"this response has no log-probs of an update ({row.get('skipped') or 'not trained on'}): take a row whose logp is not null"
        )
    tokens = list(row["tokens"])
    logp, old_logp = torch.tensor(row["logp"]), torch.tensor(row["old_logp"])
    found = attribute(logp, old_logp, Segments.from_lengths([len(tokens)]), top=top)
    size = float(found.size[0])

    def explained(position: int, log_ratio: float) -> ExplainedToken:
        after = position + 1
        return ExplainedToken(
            position=position,
            before=decode(tokens[max(position - context, 0) : position]),
            text=decode(tokens[position:after]),
            after=decode(tokens[after : after + context]),
            log_ratio=log_ratio,
            share=abs(log_ratio) / size if size else 0.0,
        )

    largest = zip(found.top_position[0].tolist(), found.top_value[0].tolist(), strict=True)
    pair = list(zip(found.pair_position[0].tolist(), found.pair_value[0].tolist(), strict=True))
    return ExplainedResponse(
        log_s=float(found.total[0]) / max(len(tokens), 1),
        cancelled_share=float(found.cancelled_share[0]) if size else 0.0,
        top=[explained(at, value) for at, value in largest if at >= 0],
        pair=None if pair[0][0] < 0 else (explained(*pair[0]), explained(*pair[1])),
    )
