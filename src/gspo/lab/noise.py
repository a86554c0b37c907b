"""Every objective on the toy, without and with noise on the behaviour log-probs."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from gspo.errors import RecipeError
from gspo.lab.arms import Arm, check_nats, chosen_arms
from gspo.lab.normal import mean_interval
from gspo.lab.toy import Learner, Toy, World

LENGTHS = (32, 128)
SIGMAS = (0.0, 0.1, 0.3)  # nats, on each behaviour log-prob
SEEDS = 20
#: Seeds computed at once, on one core: enough that a tensor is worth a call, few enough for its
#: caches. A constant, so that results do not depend on the number of cores.
SEEDS_A_PART = 10
MAX_LENGTH = 4096  # tokens: ten seeds under every objective hold 0.6 GB
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


@dataclass(frozen=True, slots=True)
class Part:
    """What one core does at a time: some seeds of a toy under one sigma, every arm."""

    toy: Toy
    sigma: float
    objectives: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One arm's figures, a number a seed."""

    accuracy: list[float]
    cut_share: list[float]
    cut_share_all: list[float]

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.accuracy + other.accuracy,
            self.cut_share + other.cut_share,
            self.cut_share_all + other.cut_share_all,
        )


def noise_parts(
    toys: Sequence[Toy], sigmas: Sequence[float], objectives: Sequence[str], num_seeds: int = SEEDS
) -> list[Part]:
    """Everything that is to be computed, seeds 0, 1, ..., rows side by side.

    Raises RecipeError for an unknown objective, and for a toy, sigma or number of seeds that is
    none.
    """
    if num_seeds < 1:
        raise RecipeError(f"seeds is {num_seeds}; wanted at least 1")
    for toy in toys:
        if not 1 <= toy.length <= MAX_LENGTH:
            raise RecipeError(f"length is {toy.length}; wanted 1 to {MAX_LENGTH} tokens")
        check_nats("initial", toy.initial)
        chosen_arms(toy.length, objectives)
    for sigma in sigmas:
        check_nats("sigma", sigma)
    return [
        Part(toy, sigma, tuple(objectives), tuple(range(num_seeds)[first : first + SEEDS_A_PART]))
        for toy in toys
        for sigma in sigmas
        for first in range(0, num_seeds, SEEDS_A_PART)
    ]


def noise_rows(parts: Sequence[Part], on_part: Callable[[], None] = lambda: None) -> list[Row]:
    """A row for every toy, sigma and arm, in the order of the parts, on every core."""
    outcomes: dict[tuple[Toy, float], list[Outcome]] = {}
    for part, found in _computed(parts):
        key = part.toy, part.sigma
        outcomes[key] = (
            [before + more for before, more in zip(outcomes[key], found, strict=True)]
            if key in outcomes
            else found
        )
        on_part()
    arms = {part.toy: chosen_arms(part.toy.length, part.objectives) for part in parts}
    return [
        row
        for part in parts
        if part.seeds[0] == 0
        for row in _rows(part, arms[part.toy], outcomes[part.toy, part.sigma])
    ]


def run_part(part: Part) -> list[Outcome]:
    """Train every arm of a part; they all see the same random numbers."""
    world = World(part.toy, part.seeds)
    arms = chosen_arms(part.toy.length, part.objectives)
    learners = [Learner(world, arm.objective, part.sigma) for arm in arms]
    for numbers in world.steps():
        for learner in learners:
            learner.step(numbers)
    return [
        Outcome(
            learner.accuracy().tolist(),
            learner.cut_share().tolist(),
            learner.cut_share_all().tolist(),
        )
        for learner in learners
    ]


def _computed(parts: Sequence[Part]) -> Iterator[tuple[Part, list[Outcome]]]:
    """Parts with their outcomes, seeds of a row in order; long parts first, one process a core.

    Processes, as much of a step is Python. Leaving early ends them.
    """
    longest_first = sorted(parts, key=lambda part: -part.toy.length)
    num_processes = min(torch.get_num_threads(), len(parts))
    if num_processes < 2:
        for part in longest_first:
            yield part, run_part(part)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(num_processes, initializer=_one_core) as pool:
        yield from zip(longest_first, pool.imap(run_part, longest_first), strict=True)


def _one_core() -> None:
    """In each process. An interrupt is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _rows(part: Part, arms: Sequence[Arm], outcomes: Sequence[Outcome]) -> Iterator[Row]:
    pairs = list(zip(arms, outcomes, strict=True))
    grpo = next((outcome.accuracy for arm, outcome in pairs if arm.name == "grpo"), None)
    for arm, outcome in pairs:
        mean, interval = mean_interval(outcome.accuracy)
        yield Row(
            arm=arm,
            length=part.toy.length,
            sigma=part.sigma,
            accuracy=mean,
            interval=interval,
            minus_grpo=None
            if grpo is None or arm.name == "grpo"
            else _difference(outcome.accuracy, grpo),
            cut_share=mean_interval(outcome.cut_share)[0],
            cut_share_all=mean_interval(outcome.cut_share_all)[0],
            seeds=len(outcome.accuracy),
        )


def _difference(values: Sequence[float], others: Sequence[float]) -> tuple[float, Interval]:
    return mean_interval([value - other for value, other in zip(values, others, strict=True)])
