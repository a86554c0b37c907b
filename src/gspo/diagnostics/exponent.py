"""How the spread of log s falls with length: spread = scale x L^-a.

Log s is a mean over L tokens. Independent token noise gives a = 1/2: then a fixed band cuts short
responses more, and `LengthFairClip` is the fair one. What moves a response as a whole (the
update's own drift) does not average out: a = 0, and a fixed band is fair.

    log s = mean by sign of the advantage + L^-a noise + sqrt(r) h(L) shared

`shared` is one number for a whole group, and h(L) = 1 (all lengths alike) or L^-a (as the noise).
The normal likelihood is maximal over r, h and the scale for each a; no buckets, no logarithm of a
noisy spread. With w = L^2a and a group's covariance inverted by Sherman and Morrison, twice the
negative log-likelihood up to a constant is S log(sum_g Q_g) + sum_g D_g,

    h = 1      Q = sum w y^2 - r (sum w y)^2 / (1 + r sum w)      D = log(1 + r sum w) - sum log w
    h = L^-a   Q = sum w y^2 - r (sum sqrt(w) y)^2 / (1 + r n)    D = log(1 + r n) - sum log w

r = 0 gives the exponent of the whole spread, which is what a band meets. Everything is a sum over
groups: a replicate of the bootstrap weights it by its draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gspo.diagnostics.bootstrap import interval
from gspo.diagnostics.lengths import present_buckets

#: Candidates for a; between them the vertex of a parabola.
FIRST, LAST, STEP = -0.5, 1.5, 0.05
EXPONENTS = torch.linspace(FIRST, LAST, round((LAST - FIRST) / STEP) + 1, dtype=torch.float64)
#: Candidates for r: shared variance over that of the noise at the mean length (geometric).
SHARED = (0.0, *(2.0**k for k in range(-5, 8)))
FAIR_EXPONENT = 0.35  # between drift (0) and noise (1/2), nearer to noise
TOO_STEEP = 0.65  # as far above 1/2: no averaging does that, short responses differ in kind
MAX_INTERVAL = 0.5  # a wider one holds drift and noise at once
MAX_MEAN_SHARE = 0.5  # of the spread: a mean does not shrink with length
MIN_BUCKET = 64  # responses of one sign; a mean is then known to 1/8 of the spread
TINY = 1e-300  # keeps the logarithm of nothing finite
DRAWS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Exponent:
    """A fitted exponent and its 95 % interval over groups."""

    value: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """False at either end of the candidates: a few odd responses among lengths that are all
        alike decide it, and the interval means nothing."""
        return FIRST + STEP / 2 < self.value < LAST - STEP / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLaw:
    """noise: exponent of what differs between responses to one prompt. overall: of the whole
    spread. shared: part of the variance, at the mean length, that a group has in common.
    mean_share: largest |mean| over spread, by length bucket and sign of the advantage; None where
    no bucket has enough responses."""

    noise: Exponent
    overall: Exponent
    shared: float
    mean_share: float | None

    @property
    def against_length_fair(self) -> list[str]:
        """What speaks against a band that narrows as 1/sqrt(L); empty: it is the fair one."""
        reasons: list[str] = []
        for name, exponent in (("noise", self.noise), ("whole spread", self.overall)):
            if not exponent.is_known:
                reasons.append(
                    f"lengths are too much alike: the exponent of the {name} is not between {FIRST} and {LAST}"
                )
            elif exponent.high - exponent.low > MAX_INTERVAL:
                reasons.append(
                    f"lengths are too much alike: the exponent of the {name} is {exponent.low:.2f} to {exponent.high:.2f}"
                )
            elif exponent.low <= 0:
                reasons.append(
                    f"the exponent of the {name} may be 0: {exponent.low:.2f} to {exponent.high:.2f}"
                )
            elif exponent.value <= FAIR_EXPONENT:
                reasons.append(
                    f"the exponent of the {name} is {exponent.value:.2f}, not above {FAIR_EXPONENT}"
                )
            elif exponent.low > TOO_STEEP:
                reasons.append(
                    f"the exponent of the {name} is {exponent.value:.2f}: more than token noise, short responses differ in kind"
                )
        if self.mean_share is None:
            reasons.append(f"no length bucket has {MIN_BUCKET} responses of one sign")
        elif self.mean_share >= MAX_MEAN_SHARE:
            reasons.append(
                f"drift: the mean of log s is up to {self.mean_share:.2f} of its spread, not below {MAX_MEAN_SHARE}"
            )
        return reasons


@dataclass(frozen=True, slots=True)
class _GroupSums:
    """Sums over each group's responses, for every candidate exponent."""

    count: Float[Tensor, "P 1"]
    weight: Float[Tensor, "P A"]
    weighted: Float[Tensor, "P A"]
    root_weighted: Float[Tensor, "P A"]
    squares: Float[Tensor, "P A"]
    log_weight: Float[Tensor, "P A"]

    def terms(self, shared: float, *, falls: bool) -> Float[Tensor, "P C"]:
        """Q and D of each group and exponent, and its count. falls: h = L^-a."""
        inner = 1 + shared * (self.count if falls else self.weight)
        common = self.root_weighted if falls else self.weighted
        squares = self.squares - shared * common**2 / inner
        return torch.cat([squares, inner.log() - self.log_weight, self.count], dim=1)


def fit_length_law(
    log_s: Float[Tensor, "S"],
    advantage: Float[Tensor, "S"],
    lengths: Int[Tensor, "S"],
    group: Int[Tensor, "S"],
    draws: Int[Tensor, "R P"],
) -> LengthLaw:
    """The exponents of these responses.

    log_s: finite. advantage: not 0. lengths: at least 1. group: from 0 to P - 1. draws: of
    `group_draws`.
    """
    residual = _without_sign_means(log_s.double(), advantage)
    sums = _group_sums(residual, lengths, group, draws.shape[1])
    everyone = torch.ones(1, draws.shape[1], dtype=torch.float64)
    models = [(shared, falls) for shared in SHARED for falls in (False, True)]
    shared, falls = min(
        models,
        key=lambda model: float(_objective(everyone, sums.terms(model[0], falls=model[1])).min()),
    )
    return LengthLaw(
        noise=_exponent(sums.terms(shared, falls=falls), draws),
        overall=_exponent(sums.terms(0.0, falls=False), draws),
        shared=shared / (1 + shared),
        mean_share=_mean_share(log_s, advantage, lengths, residual),
    )


def _without_sign_means(
    log_s: Float[Tensor, "S"], advantage: Float[Tensor, "S"]
) -> Float[Tensor, "S"]:
    residual = log_s.clone()
    for rows in (advantage > 0, advantage < 0):
        residual[rows] -= log_s[rows].mean()
    return residual


def _group_sums(
    residual: Float[Tensor, "S"],
    lengths: Int[Tensor, "S"],
    group: Int[Tensor, "S"],
    num_groups: int,
) -> _GroupSums:
    log_length = lengths.double().log()
    log_length = log_length - log_length.mean()

    def by_group(values: Float[Tensor, "S"]) -> Float[Tensor, "P"]:
        return values.new_zeros(num_groups).index_add(0, group, values)

    columns: list[list[Tensor]] = []
    for exponent in EXPONENTS:  # one at a time: [S, A] would be 100 MB for a long run
        root = (exponent * log_length).exp()
        y = root * residual
        columns.append([by_group(part) for part in (root * root, root * y, y, y * y)])
    weight, weighted, root_weighted, squares = (
        torch.stack(part, dim=1) for part in zip(*columns, strict=True)
    )
    return _GroupSums(
        count=by_group(torch.ones_like(residual))[:, None],
        weight=weight,
        weighted=weighted,
        root_weighted=root_weighted,
        squares=squares,
        log_weight=2 * EXPONENTS * by_group(log_length)[:, None],
    )


def _objective(times: Float[Tensor, "R P"], terms: Float[Tensor, "P C"]) -> Float[Tensor, "R A"]:
    """Twice the negative log-likelihood, with each group as often as drawn."""
    total, num = times @ terms, len(EXPONENTS)
    return total[:, -1:] * total[:, :num].clamp(min=TINY).log() + total[:, num:-1]


def _exponent(terms: Float[Tensor, "P C"], draws: Int[Tensor, "R P"]) -> Exponent:
    """The best exponent of all groups, and its interval over replicates."""
    everyone = torch.ones(1, draws.shape[1], dtype=torch.float64)
    replicates = [_lowest(_objective(part.double(), terms)) for part in draws.split(DRAWS_AT_ONCE)]
    low, high = interval(torch.cat(replicates), draws.shape[1])
    return Exponent(float(_lowest(_objective(everyone, terms))), low, high)


def _lowest(objective: Float[Tensor, "R A"]) -> Float[Tensor, "R"]:
    """Where each row is smallest: the vertex of a parabola through the best point and its
    neighbours."""
    at = objective.argmin(1, keepdim=True).clamp(1, len(EXPONENTS) - 2)
    before, here, after = (objective.gather(1, at + k) for k in (-1, 0, 1))
    bend = (before - 2 * here + after).clamp(min=TINY)
    shift = ((before - after) / (2 * bend)).clamp(-1, 1)
    return (EXPONENTS[at] + shift * STEP).squeeze(1)


def _mean_share(
    log_s: Float[Tensor, "S"],
    advantage: Float[Tensor, "S"],
    lengths: Int[Tensor, "S"],
    residual: Float[Tensor, "S"],
) -> float | None:
    shares: list[float] = []
    for bucket in present_buckets(lengths).values():
        spread = float(residual[bucket].square().mean().sqrt())
        for rows in (bucket & (advantage > 0), bucket & (advantage < 0)):
            if int(rows.sum()) >= MIN_BUCKET and spread > 0:
                shares.append(abs(float(log_s[rows].double().mean())) / spread)
    return max(shares, default=None)
