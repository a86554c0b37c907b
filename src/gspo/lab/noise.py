"""Every objective on the toy, without and with noise on the behaviour log-probs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.errors import RecipeError
from gspo.lab.arms import Arm, chosen_arms
from gspo.lab.normal import mean_interval
from gspo.lab.toy import Learner, Toy, World

LENGTHS = (32, 128)
SIGMAS = (0.0, 0.1, 0.3)  # nats, on each behaviour log-prob
Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One arm at one length and sigma. Intervals: 95 %, over seeds; None for a single seed.

    minus_grpo: accuracy less GRPO's on the same seeds, with its interval; None for GRPO itself
    and where it did not run.
    """

    arm: Arm
    length: int
    sigma: float
    accuracy: float
    interval: Interval
    minus_grpo: tuple[float, Interval] | None
    cut_share: float
    cut_share_all: float
    seeds: int


def noise_rows(
    toy: Toy,
    sigmas: Sequence[float],
    objectives: Sequence[str],
    on_step: Callable[[], None] = lambda: None,
) -> list[Row]:
    """All arms of these objectives on one toy, sigma by sigma; on_step is called toy.steps times.

    Raises RecipeError for an unknown objective, and for a toy or sigma that is none.
    """
    _check(toy, sigmas)
    world = World(toy)
    runs = [
        (arm, sigma, Learner(world, arm.objective, sigma))
        for sigma in dict.fromkeys(sigmas)
        for arm in chosen_arms(toy.length, objectives)
    ]
    # Learners share only what they read. Threads of torch's own would find too little in one.
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        for numbers in world.steps():
            list(threads.map(lambda run: run[2].step(numbers), runs))  # noqa: B023 - ends here
            on_step()
    accuracies = [learner.accuracy() for _, _, learner in runs]
    grpo = {
        sigma: accuracy
        for (arm, sigma, _), accuracy in zip(runs, accuracies, strict=True)
        if arm.name == "grpo"
    }
    return [
        _row(arm, toy, sigma, learner, accuracy, None if arm.name == "grpo" else grpo.get(sigma))
        for (arm, sigma, learner), accuracy in zip(runs, accuracies, strict=True)
    ]


def _row(
    arm: Arm,
    toy: Toy,
    sigma: float,
    learner: Learner,
    accuracy: Float[Tensor, "n"],
    grpo: Float[Tensor, "n"] | None,
) -> Row:
    mean, interval = mean_interval(accuracy.tolist())
    return Row(
        arm=arm,
        length=toy.length,
        sigma=sigma,
        accuracy=mean,
        interval=interval,
        minus_grpo=None if grpo is None else mean_interval((accuracy - grpo).tolist()),
        cut_share=float(learner.cut_share().mean()),
        cut_share_all=float(learner.cut_share_all().mean()),
        seeds=toy.seeds,
    )


def _check(toy: Toy, sigmas: Sequence[float]) -> None:
    for name, value, least in (("length", toy.length, 1), ("seeds", toy.seeds, 1)):
        if value < least:
            raise RecipeError(f"{name} is {value}; wanted at least {least}")
    for name, value in (("initial", toy.initial), *(("sigma", sigma) for sigma in sigmas)):
        if not 0 <= value < float("inf"):
            raise RecipeError(f"{name} is {value}; wanted a finite number, 0 or more")
