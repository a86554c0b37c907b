"""Group-relative advantages: how much better a response did than the others to its prompt."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.errors import GspoError, NumericsError, RecipeError, nearest
from gspo.types import LARGEST_REWARD, rewards_differ

Baseline = Literal["mean", "loo"]
Scale = Literal["std", "none"]

#: Reward units: keeps the division finite, and far below any spread that counts as one.
STD_FLOOR = 1e-6


def group_advantage(
    rewards: Sequence[float | int | None] | Tensor,
    group: Sequence[Hashable] | Tensor,
    *,
    baseline: Baseline = "mean",
    scale: Scale = "std",
) -> Float[Tensor, "S"]:
    """Advantage of each response within its group, in float32, computed in float64.

        A_i = (r_i - baseline_i) / (std + 1e-6),  or undivided for scale "none"

    Source: arXiv 2507.18071, equation 4 (mean, std); arXiv 2503.20783, section 3.2 (none);
    arXiv 2402.14740, equation 8 (leave-one-out).

    rewards: None for a response without a score: its advantage is 0 and the others' baseline does
    not know it. group: an id per response, in any order; groups may be of any size. baseline
    "loo" is the mean of the other scored members. std is unbiased, over all scored members of
    the group under either baseline, so leaving one out cannot make it vanish. A group with one
    scored member, or whose scored rewards are equal (see `rewards_differ`), gives 0.

    Raises NumericsError for a reward that is not finite, GspoError for lengths that differ,
    RecipeError for an unknown baseline or scale.

    >>> group_advantage([1, 0, None, 1], ["a", "a", "a", "a"])
    tensor([ 0.5773, -1.1547,  0.0000,  0.5773])
    """
    _check_choice("baseline", baseline, get_args(Baseline))
    _check_choice("scale", scale, get_args(Scale))
    scores = _scores(rewards)
    ids: list[Hashable] = group.tolist() if isinstance(group, Tensor) else list(group)
    if len(ids) != len(scores):
        raise GspoError(
            f"{len(scores)} rewards and {len(ids)} group ids; wanted one of each per response"
        )

    members: dict[Hashable, list[int]] = {}
    for index, (group_id, score) in enumerate(zip(ids, scores, strict=True)):
        if score is not None:
            members.setdefault(group_id, []).append(index)
    advantages = [0.0] * len(scores)
    for indices in members.values():
        own = [score for index in indices if (score := scores[index]) is not None]
        for index, advantage in zip(indices, _of_group(own, baseline, scale), strict=True):
            advantages[index] = advantage
    return torch.tensor(advantages, dtype=torch.float32)


def _of_group(scores: list[float], baseline: Baseline, scale: Scale) -> list[float]:
    """Advantages of the scored members of one group."""
    size = len(scores)
    if not rewards_differ(scores):
        return [0.0] * size
    mean = math.fsum(scores) / size
    centred = [score - mean for score in scores]
    std = math.sqrt(math.fsum(x * x for x in centred) / (size - 1))
    if baseline == "loo":  # r - mean of the others = (r - mean of all) n / (n - 1)
        centred = [x * size / (size - 1) for x in centred]
    return [x / (std + STD_FLOOR) for x in centred] if scale == "std" else centred


def _scores(rewards: Sequence[float | int | None] | Tensor) -> list[float | None]:
    values: Sequence[float | int | None] = (
        rewards.tolist() if isinstance(rewards, Tensor) else rewards
    )
    scores = [None if value is None else float(value) for value in values]
    for index, score in enumerate(scores):
        if score is not None and not math.isfinite(score):
            raise NumericsError(
                f"reward {index} is {score}; wanted a finite number, "
                "or None for a response that could not be scored"
            )
        if score is not None and abs(score) > LARGEST_REWARD:
            raise NumericsError(
                f"reward {index} is {score:g}; wanted at most {LARGEST_REWARD:g} either way, so that its square is finite"
            )
    return scores


def _check_choice(name: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise RecipeError(f"advantage {name} is {given!r}; {nearest(str(given), known)}")
