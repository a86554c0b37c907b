"""Rescales, never rotates: the gradient of one response with noise on its old log-probs.

Responses of a policy with an independent softmax per position, as in the toy. The gradient of a
response is a vector over the logits of all its positions, weight_t x (one-hot - softmax) at
position t. With the noise it is compared with the same gradient without: the angle between the
two, and how much longer it became. Under GSPO all tokens have one weight, so the cosine is 1
whatever the noise is; under GRPO each token has its own factor r_t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.errors import RecipeError
from gspo.lab.arms import Arm, check_nats, chosen_arms, cut
from gspo.lab.normal import below
from gspo.lab.toy import NUM_SYMBOLS
from gspo.segments import Segments
from gspo.settings import GRPO, ClipRange, ObjectiveSettings
from gspo.types import Surrogate

LENGTH = 128
SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
NUM_RESPONSES = 2000
MAX_TOKENS = 2**24  # in all: their logits are 0.4 GB
Sign = Literal[1, -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An arm at one sigma and sign of the advantage, over the responses that keep a gradient.

    cosine, lowest: mean and smallest cosine between the noisy and the clean gradient. scale,
    scale_spread: length of the noisy over that of the clean one. cut_share: units (responses,
    tokens) that the clip stopped. limit: the cosine of endless responses in closed form, for GRPO.
    Numbers are None where no response kept a gradient.
    """

    arm: Arm
    length: int
    sigma: float
    advantage: Sign
    cosine: float | None
    lowest: float | None
    scale: float | None
    scale_spread: float | None
    cut_share: float
    limit: float | None


@dataclass(frozen=True, slots=True)
class Responses:
    """Sampled responses: log-prob and squared length of grad log pi of every token, and z."""

    logp: Float[Tensor, "N"]
    gradient_square: Float[Tensor, "N"]
    noise: Float[Tensor, "N"]
    segments: Segments


def gradient_rows(
    length: int,
    sigmas: Sequence[float],
    objectives: Sequence[str],
    *,
    num_responses: int = NUM_RESPONSES,
    seed: int = 0,
) -> list[Row]:
    """A row for every arm, sigma and sign. Raises RecipeError for what is none of these."""
    if not 1 <= length <= MAX_TOKENS // num_responses:
        raise RecipeError(
            f"length is {length}; wanted 1 to {MAX_TOKENS // num_responses:,} tokens, "
            f"of which {num_responses:,} responses fit in memory"
        )
    for sigma in sigmas:
        check_nats("sigma", sigma)
    responses = _responses(length, num_responses, torch.Generator().manual_seed(seed))
    rows: list[Row] = []
    for arm in chosen_arms(length, objectives):
        for sigma in sigmas:
            rows += [_row(arm, length, sigma, sign, responses) for sign in (1, -1)]
    return rows


def grpo_cosine(sigma: float, clip: ClipRange, sign: Sign) -> float:
    """E[w] / sqrt(E[w^2]) over tokens, w = r where the clip keeps it and 0 where it cuts, log r
    normal with spread sigma around 0: the cosine of a response of very many tokens.

    Without a clip it is exp(-sigma^2 / 2):

    >>> round(grpo_cosine(0.5, ClipRange(low=1.0, high=1e6), 1), 6) == round(math.exp(-0.125), 6)
    True
    """
    if sigma == 0:
        return 1.0
    low, high = clip.band(torch.tensor([1]))
    edge = float(high) if sign > 0 else -float(low)  # E[w^k] = e^(k^2 sigma^2 / 2) P(kept)
    first = math.exp(sigma**2 / 2) * below(edge / sigma - sign * sigma)
    second = math.exp(2 * sigma**2) * below(edge / sigma - sign * 2 * sigma)
    return first / math.sqrt(second)


def _responses(length: int, num_responses: int, generator: torch.Generator) -> Responses:
    """Logits are standard normal; tokens are sampled from them."""
    logp = torch.randn(num_responses * length, NUM_SYMBOLS, generator=generator).log_softmax(1)
    tokens = torch.multinomial(logp.exp(), 1, generator=generator)
    one_hot = torch.zeros_like(logp).scatter_(1, tokens, 1.0)
    return Responses(
        logp=logp.gather(1, tokens).squeeze(1),
        gradient_square=(one_hot - logp.exp()).square().sum(1),
        noise=torch.randn(num_responses * length, generator=generator),
        segments=Segments.from_lengths([length] * num_responses),
    )


def _row(arm: Arm, length: int, sigma: float, sign: Sign, responses: Responses) -> Row:
    noisy = _surrogate(arm.objective, sigma, sign, responses)
    clean = _surrogate(arm.objective, 0.0, sign, responses)
    cosine, scale = compare(noisy, clean, responses.gradient_square)
    kept = scale > 0
    cosines, scales = cosine[kept], scale[kept]
    some = bool(kept.any())
    objective = arm.objective
    return Row(
        arm=arm,
        length=length,
        sigma=sigma,
        advantage=sign,
        cosine=float(cosines.mean()) if some else None,
        lowest=float(cosines.min()) if some else None,
        scale=float(scales.mean()) if some else None,
        scale_spread=float(scales.std(correction=0)) if some else None,
        cut_share=float(cut(noisy).double().mean()),
        limit=grpo_cosine(sigma, objective.clip, sign) if isinstance(objective, GRPO) else None,
    )


def _surrogate(
    objective: ObjectiveSettings, sigma: float, sign: Sign, responses: Responses
) -> Surrogate:
    segments = responses.segments
    units = segments.num_tokens if objective.advantage_per == "token" else segments.num_responses
    old_logp = responses.logp + sigma * responses.noise
    return objective(responses.logp, old_logp, torch.full((units,), float(sign)), segments)


def compare(
    noisy: Surrogate, clean: Surrogate, gradient_square: Float[Tensor, "N"]
) -> tuple[Float[Tensor, "S"], Float[Tensor, "S"]]:
    """Cosine between the two gradients of each response, and the ratio of their lengths.

    Both are 0 where the noisy gradient is; positions have parameters of their own, so the product
    of two gradients is the sum over tokens of the product of weights times |grad log pi|^2.
    """
    total = noisy.segments.sum
    square = gradient_square.double()
    noisy_weight, clean_weight = noisy.weight.double(), clean.weight.double()
    product = total(noisy_weight * clean_weight * square)
    noisy_norm = total(noisy_weight.square() * square).sqrt()
    clean_norm = total(clean_weight.square() * square).sqrt()
    tiny = torch.finfo(torch.float64).tiny
    cosine = product / (noisy_norm * clean_norm).clamp(min=tiny)
    return cosine, noisy_norm / clean_norm.clamp(min=tiny)
