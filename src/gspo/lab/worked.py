"""The article's worked example, for any probabilities: what GSPO and GRPO do with one response."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gspo.errors import RecipeError
from gspo.segments import Segments
from gspo.settings import GRPO, GSPO, PAPER_CLIP, ClipRange, ObjectiveSettings, SequenceClip
from gspo.types import Surrogate

#: The article's four tokens, under the policy that sampled them and after one minibatch.
SAMPLING_PROBS = (0.50, 0.40, 0.90, 0.04)
CURRENT_PROBS = (0.58, 0.30, 0.90, 0.05)


def worked_example(
    sampling_probs: Sequence[float | int] = SAMPLING_PROBS,
    current_probs: Sequence[float | int] = CURRENT_PROBS,
    *,
    gspo_clip: SequenceClip = PAPER_CLIP,
    grpo_eps: float | int = 0.2,
) -> dict[str, Any]:
    """One response under both objectives, once with advantage +1 and once with -1.

    Returns {"token_ratios": [...], "s": number, "gspo": {"positive": {"cut", "weights"},
    "negative": {...}}, "grpo": {the same}}. weights: what multiplies each token's grad log pi, 0
    where cut. cut: for gspo whether the response is cut; for grpo the cut tokens, counted from 1.

    Raises RecipeError for probabilities outside (0, 1] or lists of different lengths.

    >>> result = worked_example()
    >>> round(result["s"], 4), result["gspo"]["positive"]["cut"], result["grpo"]["positive"]["cut"]
    (1.0212, True, [4])
    """
    _check_probabilities("sampling", sampling_probs)
    _check_probabilities("current", current_probs)
    if len(sampling_probs) != len(current_probs):
        raise RecipeError(
            f"{len(sampling_probs)} sampling and {len(current_probs)} current probabilities; "
            "wanted one of each per token"
        )
    logp = torch.tensor(list(current_probs), dtype=torch.float64).log()
    old_logp = torch.tensor(list(sampling_probs), dtype=torch.float64).log()
    segments = Segments.from_lengths([len(current_probs)])

    def run(objective: ObjectiveSettings, advantage: float) -> Surrogate:
        return objective(logp, old_logp, torch.tensor([advantage], dtype=torch.float64), segments)

    sequence = GSPO(clip=gspo_clip)
    token = GRPO(clip=ClipRange(low=grpo_eps, high=grpo_eps))
    signs = {"positive": 1.0, "negative": -1.0}
    return {
        "token_ratios": (logp - old_logp).exp().tolist(),
        "s": math.exp(run(sequence, 1.0).log_ratio.item()),
        "gspo": {name: _sequence_result(run(sequence, sign)) for name, sign in signs.items()},
        "grpo": {name: _token_result(run(token, sign)) for name, sign in signs.items()},
    }


def _sequence_result(surrogate: Surrogate) -> dict[str, Any]:
    cut = bool((surrogate.cut_low | surrogate.cut_high).item())
    return {"cut": cut, "weights": surrogate.weight.tolist()}


def _token_result(surrogate: Surrogate) -> dict[str, Any]:
    cut = (surrogate.cut_low | surrogate.cut_high).nonzero().flatten()
    return {"cut": (cut + 1).tolist(), "weights": surrogate.weight.tolist()}


def _check_probabilities(owner: str, probabilities: Sequence[float | int]) -> None:
    if not probabilities:
        raise RecipeError(f"there are no {owner} probabilities; wanted at least one")
    for position, probability in enumerate(probabilities, start=1):
        if not 0 < probability <= 1:
            raise RecipeError(
                f"{owner} probability of token {position} is {probability!r}; "
                "wanted a number above 0 and at most 1"
            )
