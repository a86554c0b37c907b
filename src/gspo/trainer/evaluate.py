"""Held-out pass rates: pass@1 with an interval, pass@k, greedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gspo.diagnostics.rollouts import PASS_REWARD
from gspo.engines.base import Engine, Sampling
from gspo.errors import DataError
from gspo.trainer.judge import judge_groups
from gspo.types import Group, Prompt
from gspo.verifiers.base import Verifier

NORMAL_95 = 1.959963984540054  # two-sided 95 % point of the normal distribution


@dataclass(frozen=True, slots=True)
class EvalResult:
    """pass_at_1: mean over all samples at temperature 1. interval: 95 %, over prompts.
    pass_at_k: share of prompts with a passing response among k, up to the fewest scored answers
    that a prompt has. greedy: share of prompts whose
    greedy response passes. unscored: responses without a verdict, left out."""

    num_prompts: int
    pass_at_1: float
    interval: tuple[float, float]
    pass_at_k: dict[int, float]
    greedy: float
    unscored: int
    groups: Sequence[Group]
    greedy_groups: Sequence[Group]

    def numbers(self) -> dict[str, float]:
        """By the names of docs/metrics.md."""
        by_k = {f"eval/pass@{k}": value for k, value in self.pass_at_k.items()}
        return {"eval/pass@1": self.pass_at_1, **by_k, "eval/greedy": self.greedy}


def evaluate(
    engine: Engine,
    verifier: Verifier,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    on_group: Callable[[], None] = lambda: None,
) -> EvalResult:
    """`sampling.num_samples` responses per prompt, then one greedy one; `on_group` after each."""

    def run(how: Sampling) -> list[Group]:
        groups: list[Group] = []
        for group in engine.generate(prompts, how):
            groups += judge_groups(verifier, [group])
            on_group()
        return sorted(groups, key=lambda group: order[group.prompt.id])

    order = {prompt.id: k for k, prompt in enumerate(prompts)}
    sampled = run(sampling)
    greedy = run(_greedy(sampling))
    return summarise(sampled, greedy)


def _greedy(sampling: Sampling) -> Sampling:
    return Sampling(
        num_samples=1, max_tokens=sampling.max_tokens, temperature=0.0, stream=sampling.stream
    )


def summarise(sampled: Sequence[Group], greedy: Sequence[Group]) -> EvalResult:
    """The numbers of judged groups."""
    passes = [[reward > PASS_REWARD for reward in group.rewards] for group in sampled]
    scored = [p for p in passes if p]
    rates = [sum(p) / len(p) for p in scored]
    if not rates:
        raise DataError(
            f"none of the answers to {len(sampled)} held-out prompts could be scored; try the verifier by hand with 'gspo verify'"
        )
    most = min(len(p) for p in scored)  # every k is about the same prompts
    ks = [k for k in range(2, most + 1) if k & (k - 1) == 0 or k == most]
    greedy_passes = [r > PASS_REWARD for group in greedy for r in group.rewards]
    return EvalResult(
        num_prompts=len(sampled),
        pass_at_1=_mean(rates),
        interval=prompt_interval(rates),
        pass_at_k={k: _mean([pass_at_k(len(p), sum(p), k) for p in scored]) for k in ks},
        greedy=_mean([float(p) for p in greedy_passes]),
        unscored=sum(len(g.rollouts) for g in sampled) - sum(len(p) for p in passes),
        groups=sampled,
        greedy_groups=greedy,
    )


def pass_at_k(num_samples: int, num_passed: int, k: int) -> float:
    """Chance that k of the samples, drawn without return, hold a passing one
    (unbiased; arXiv 2107.03374, equation 1).

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    return 1.0 - math.comb(num_samples - num_passed, k) / math.comb(num_samples, k)


def prompt_interval(rates: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean pass rate, prompts being the independent units.

    Wilson's interval with an effective number of trials: the spread of the prompts' rates says how
    much a prompt's several samples are worth. Never of width 0, also at a rate of 0 or 1.
    """
    n = len(rates)
    if n == 0:
        return 0.0, 1.0
    mean = sum(rates) / n
    variance = sum((r - mean) ** 2 for r in rates) / max(n - 1, 1) / n
    trials = mean * (1 - mean) / variance if 0 < mean < 1 and variance > 0 else n
    trials = max(trials, 1.0)
    z2 = NORMAL_95**2 / trials
    centre = (mean + z2 / 2) / (1 + z2)
    half = math.sqrt(mean * (1 - mean) * NORMAL_95**2 / trials + z2**2 / 4) / (1 + z2)
    return max(0.0, centre - half), min(1.0, centre + half)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
