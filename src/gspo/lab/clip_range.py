"""Noise on token log-probs, and how far it carries log s out of a clip range, at any length.

    log r_t = bias + sigma z_t + log(to / from) at the outlier tokens,  z_t independent normal
    log s   = mean over the L tokens of log r_t

Responses are simulated in pieces, so memory does not grow with their number. Beside every
simulated figure stands its closed form: log s is normal with mean bias + outliers / L x
log(to / from) and spread sigma / sqrt(L).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.errors import RecipeError
from gspo.lab.arms import check_nats
from gspo.lab.normal import outside
from gspo.settings import PAPER_CLIP, ClipRange, LengthFairClip

LENGTHS = (16, 64, 256, 1024, 4096)
NUM_RESPONSES = 20_000
SIGMA = 0.1  # nats, of one token's log-ratio
#: The article's range for tokens, GRPO's in the paper's comparison.
TOKEN_CLIP = ClipRange(low=0.2, high=0.27)
#: 1.44 sigma at the article's sigma: 15 % of the responses outside at every length.
LENGTH_FAIR = LengthFairClip(low=0.144, high=0.144)
#: An outlier is a token whose probability moves from the first to the second.
OUTLIER = (0.001, 0.1)
OUTLIER_SHIFT = math.log(OUTLIER[1] / OUTLIER[0])  # nats: log 100
ARTICLE_TOKENS = 100  # the response length of the article's outlier
#: Tokens simulated at a time: 4 MB a tensor. The longest response too.
PIECE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What moves a token's log-ratio: spread and mean of its noise in nats, outliers a response."""

    sigma: float = SIGMA
    bias: float = 0.0
    outliers: int = 0

    def __post_init__(self) -> None:
        check_nats("sigma", self.sigma)
        check_nats("bias", abs(self.bias))
        if self.outliers < 0:
            raise RecipeError(f"outliers is {self.outliers}; wanted a number of tokens, 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The three ranges: for tokens, and fixed and length-fair for responses."""

    token: ClipRange = TOKEN_CLIP
    fixed: ClipRange = PAPER_CLIP
    length_fair: LengthFairClip = LENGTH_FAIR

    def nats(self, length: int) -> tuple[tuple[float, float], ...]:
        """Bounds on log r_t, and on log s fixed and length-fair, at this length."""
        lengths = torch.tensor([length])
        clips = (self.token, self.fixed, self.length_fair)
        bounds = (clip.band(lengths) for clip in clips)
        return tuple((float(low), float(high)) for low, high in bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Spreads (standard deviations) in nats, and shares outside a range."""

    token_spread: float
    log_s_mean: float
    log_s_spread: float
    token_outside: float
    response_outside: float
    response_outside_length_fair: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One length under one noise: as simulated, and in closed form."""

    length: int
    noise: Noise
    simulated: Figures
    exact: Figures


def clip_range_rows(
    lengths: Sequence[int],
    noises: Sequence[Noise],
    bands: Bands,
    *,
    num_responses: int = NUM_RESPONSES,
    seed: int = 0,
    on_row: Callable[[], None] = lambda: None,
) -> list[Row]:
    """A row for every noise and length; the same seed gives the same numbers.

    Raises RecipeError for lengths outside 1 to PIECE, more outliers than tokens, or fewer than
    two responses.
    """
    if num_responses < 2:
        raise RecipeError(f"{num_responses} responses have no spread; wanted at least 2")
    for length in lengths:
        for noise in noises:
            _check_length(length, noise)
    rows: list[Row] = []
    for noise in noises:
        for length in lengths:
            generator = torch.Generator().manual_seed((seed + 1) * PIECE + length)
            simulated = _simulate(length, noise, bands, num_responses, generator)
            rows.append(
                Row(
                    length=length,
                    noise=noise,
                    simulated=simulated,
                    exact=exact_figures(length, noise, bands),
                )
            )
            on_row()
    return rows


def exact_figures(length: int, noise: Noise, bands: Bands) -> Figures:
    """The closed forms. A token is an outlier with probability outliers / length.

    >>> exact = exact_figures(1024, Noise(sigma=0.1), Bands())
    >>> exact.token_spread, exact.log_s_spread
    (0.1, 0.003125)
    """
    share = noise.outliers / length
    token, fixed, length_fair = bands.nats(length)
    mean, spread = noise.bias + share * OUTLIER_SHIFT, noise.sigma / math.sqrt(length)
    return Figures(
        token_spread=math.sqrt(noise.sigma**2 + share * (1 - share) * OUTLIER_SHIFT**2),
        log_s_mean=mean,
        log_s_spread=spread,
        token_outside=(1 - share) * outside(noise.bias, noise.sigma, *token)
        + share * outside(noise.bias + OUTLIER_SHIFT, noise.sigma, *token),
        response_outside=outside(mean, spread, *fixed),
        response_outside_length_fair=outside(mean, spread, *length_fair),
    )


def outlier_shift(length: int = ARTICLE_TOKENS) -> float:
    """How far one outlier moves log s of a response of this length, nats.

    >>> round(outlier_shift(), 3)
    0.046
    """
    return OUTLIER_SHIFT / length


def _simulate(
    length: int, noise: Noise, bands: Bands, num_responses: int, generator: torch.Generator
) -> Figures:
    token, fixed, length_fair = bands.nats(length)
    tokens, responses = _Total(), _Total()
    token_outside, fixed_outside, fair_outside = 0, 0, 0
    at_a_time = max(PIECE // length, 1)
    for start in range(0, num_responses, at_a_time):
        rows = min(at_a_time, num_responses - start)
        log_r = torch.randn(rows, length, generator=generator) * noise.sigma + noise.bias
        log_r[:, : noise.outliers] += OUTLIER_SHIFT  # which tokens does not matter: they are alike
        log_s = log_r.double().mean(1)
        tokens.add(log_r)
        responses.add(log_s)
        token_outside += _num_outside(log_r, token)
        fixed_outside += _num_outside(log_s, fixed)
        fair_outside += _num_outside(log_s, length_fair)
    return Figures(
        token_spread=tokens.spread,
        log_s_mean=responses.mean,
        log_s_spread=responses.spread,
        token_outside=token_outside / (num_responses * length),
        response_outside=fixed_outside / num_responses,
        response_outside_length_fair=fair_outside / num_responses,
    )


def _num_outside(values: Float[Tensor, "..."], band: tuple[float, float]) -> int:
    return int(((values < band[0]) | (values > band[1])).sum())


class _Total:
    """Mean and spread of values that come in pieces, in float64.

    Pieces are joined by their own means, so that a large common mean costs no digits.
    """

    def __init__(self) -> None:
        self._count = 0
        self._squares = 0.0  # sum of squared distances from the mean
        self.mean = 0.0

    def add(self, values: Float[Tensor, "..."]) -> None:
        """One more piece."""
        variance, mean = torch.var_mean(values.double(), correction=0)
        count = values.numel()
        total = self._count + count
        step = float(mean) - self.mean
        self._squares += float(variance) * count + step * step * self._count * count / total
        self.mean += step * count / total
        self._count = total

    @property
    def spread(self) -> float:
        """Standard deviation, unbiased."""
        return math.sqrt(self._squares / (self._count - 1))


def _check_length(length: int, noise: Noise) -> None:
    if not 1 <= length <= PIECE:
        raise RecipeError(f"length is {length}; wanted 1 to {PIECE:,} tokens")
    if noise.outliers > length:
        raise RecipeError(
            f"{noise.outliers} outliers in a response of {length} tokens; wanted at most {length}"
        )
