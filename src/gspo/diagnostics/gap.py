"""The engine against the trainer on the same tokens, and whether the clip range stands it.

d_t = trainer log-prob - engine log-prob of a token, nats. A response's gap is mean_t d_t: what its
log s would be off by if the engine's log-probs were the old ones. Bias is the mean over responses,
noise the spread. Averaging shrinks independent noise with length and leaves bias as it is, so a
small bias can be the worse of the two: it shifts every response to one side of the band.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.diagnostics.lengths import bucket_index, bucket_name, present_buckets
from gspo.segments import Segments

#: Shares of the narrower side of the band. At 0.1 a bias moves the cut share by under 0.02 of a
#: normal spread; noise of 0.3 widens the spread by 5 %.
MAX_BIAS = 0.1
MAX_NOISE = 0.3
MAX_DECADE = 6  # probabilities below 1e-6 are in one bucket
NUM_WORST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GapTokens:
    """Log-probs of N tokens by engine and trainer, nats; NaN where one had none. names [S]: what
    each response is called."""

    engine_logp: Float[Tensor, "N"]
    trainer_logp: Float[Tensor, "N"]
    segments: Segments
    names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Tokens or responses that belong together: how many, and mean and spread of their gap, nats.
    std is None below two."""

    name: str
    count: int
    mean: float
    std: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstToken:
    """A token of large gap: its response, its place among the trained tokens (from 0), the
    log-probs, nats."""

    response: int
    position: int
    engine_logp: float
    trainer_logp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """mean, std: over responses, of the mean gap. token_mean, token_std: over tokens. product_mean,
    product_std: over responses, of the summed gap, which is what an un-normalised sequence weight
    exponentiates. first, last: the first and last trained token of each response. missing: tokens
    without an engine log-prob, left out."""

    num_responses: int
    num_tokens: int
    missing: int
    mean: float
    std: float | None
    token_mean: float
    token_std: float | None
    product_mean: float
    product_std: float | None
    by_length: tuple[Part, ...]
    by_position: tuple[Part, ...]
    by_probability: tuple[Part, ...]
    first: Part
    last: Part
    worst: tuple[WorstToken, ...]

    def unsafe(self, band: float) -> str | None:
        """Why engine log-probs cannot be the old ones under a band whose narrower side is `band`
        nats; None when they can."""
        if abs(self.mean) > MAX_BIAS * band:
            return f"bias {self.mean:.2g} is more than {MAX_BIAS:g} of the band's narrower side, {band:.2g}"
        if self.std is None:
            return "one response shows no spread"
        if self.std > MAX_NOISE * band:
            return f"spread {self.std:.2g} is more than {MAX_NOISE:g} of the band's narrower side, {band:.2g}"
        return None


def gap_report(
    engine_logp: Float[Tensor, "N"], trainer_logp: Float[Tensor, "N"], segments: Segments
) -> GapReport | None:
    """engine_logp: NaN where the engine had none. None when no token has both."""
    known = engine_logp.isfinite() & trainer_logp.isfinite()
    gap = torch.where(known, trainer_logp.double() - engine_logp.double(), 0.0)
    counts = segments.sum(known.double())
    some = counts > 0
    if not bool(some.any()):
        return None
    total = segments.sum(gap)
    response_gap = (total / counts.clamp(min=1))[some]
    position = torch.arange(segments.num_tokens) - segments.spread(
        segments.lengths.cumsum(0) - segments.lengths
    )
    last = position == segments.spread(segments.lengths) - 1
    whole, tokens = _part("", response_gap), _part("", gap[known])
    product = _part("", total[some])
    return GapReport(
        num_responses=whole.count,
        num_tokens=tokens.count,
        missing=int((~known).sum()),
        mean=whole.mean,
        std=whole.std,
        token_mean=tokens.mean,
        token_std=tokens.std,
        product_mean=product.mean,
        product_std=product.std,
        by_length=_parts(response_gap, present_buckets(segments.lengths[some])),
        by_position=_parts(gap[known], _position_buckets(position[known])),
        by_probability=_parts(gap[known], _probability_buckets(trainer_logp[known])),
        first=_part("first", gap[known & (position == 0)]),
        last=_part("last", gap[known & last]),
        worst=_worst(engine_logp, trainer_logp, gap, segments.ids, position),
    )


def _part(name: str, values: Float[Tensor, "R"]) -> Part:
    count = values.numel()
    return Part(
        name=name,
        count=count,
        mean=float(values.mean()) if count else 0.0,
        std=float(values.std()) if count > 1 else None,
    )


def _parts(
    values: Float[Tensor, "R"], buckets: Mapping[str, Bool[Tensor, "R"]]
) -> tuple[Part, ...]:
    return tuple(_part(name, values[rows]) for name, rows in buckets.items())


def _position_buckets(position: Int[Tensor, "M"]) -> dict[str, Bool[Tensor, "M"]]:
    """Powers of two, counted from 1: token 1, 2-3, 4-7, ..."""
    index = bucket_index(position + 1)
    return {bucket_name(k): index == k for k in sorted(set(index.tolist()))}


def _probability_buckets(logp: Float[Tensor, "M"]) -> dict[str, Bool[Tensor, "M"]]:
    """Decades of the trainer's probability, likeliest first."""
    decade = (-logp.double() / torch.log(torch.tensor(10.0, dtype=torch.float64))).floor()
    decade = decade.clamp(0, MAX_DECADE).long()
    names = {k: f"1e-{k + 1}..1e-{k}" for k in range(1, MAX_DECADE)}
    names |= {0: "0.1..1", MAX_DECADE: f"below 1e-{MAX_DECADE}"}
    return {names[k]: decade == k for k in sorted(set(decade.tolist()))}


def _worst(
    engine_logp: Float[Tensor, "N"],
    trainer_logp: Float[Tensor, "N"],
    gap: Float[Tensor, "N"],
    response: Int[Tensor, "N"],
    position: Int[Tensor, "N"],
) -> tuple[WorstToken, ...]:
    order = gap.abs().argsort(descending=True, stable=True)[:NUM_WORST].tolist()
    return tuple(
        WorstToken(
            response=int(response[k]),
            position=int(position[k]),
            engine_logp=float(engine_logp[k]),
            trainer_logp=float(trainer_logp[k]),
        )
        for k in order
        if float(gap[k]) != 0
    )
