"""The article's toy: 64 prompts with a target string each, an independent softmax per position.

Nothing is shared between positions, so credit per token is right and no objective is at a
disadvantage; what a method does with noise on the behaviour log-probs is all that differs. Many
seeds are computed at once: each has its own targets, random numbers and parameters, and its own
denominator, so a seed's result does not depend on the others. The random numbers depend on seed,
length and the choices below, never on objective or sigma: differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gspo.advantages import group_advantage
from gspo.lab.arms import cut
from gspo.segments import Segments
from gspo.settings import ObjectiveSettings
from gspo.types import Surrogate

NUM_PROMPTS = 64
NUM_SYMBOLS = 6
PROMPTS_A_STEP = 16
GROUP = 8
RESPONSES_A_STEP = PROMPTS_A_STEP * GROUP
MINIBATCHES = 4
RESPONSES_A_MINIBATCH = RESPONSES_A_STEP // MINIBATCHES
LEARNING_RATE = 1000.0
STEPS = 100

Std = Literal["unbiased", "biased"]
Draw = Literal["without", "with"]
Mix = Literal["shuffled", "even"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """length: tokens of every response. The rest is what the article leaves open;
    the defaults are what comes nearest to its figures (docs/lab.md).

    std: the estimator that divides the advantages. draw: a step's prompts, without or with
    replacement. mix: a minibatch is a random quarter of the step's responses, or has two of each
    prompt. initial: spread of the logits at the start, around 0.
    """

    length: int
    std: Std = "biased"
    draw: Draw = "with"
    mix: Mix = "shuffled"
    initial: float = 0.0
    steps: int = STEPS


@dataclass(frozen=True, slots=True)
class StepNumbers:
    """The random numbers of one step; n seeds, B prompts, G responses each, R responses in all.

    prompts: which of the 64. uniform: samples tokens. order: the responses as the minibatches take
    them, one minibatch after another. noise: standard normal, in that order.
    """

    prompts: Int[Tensor, "n B"]
    uniform: Float[Tensor, "n B G L"]
    noise: Float[Tensor, "n R L"]
    order: Int[Tensor, "n R"]


class World:
    """What all learners of some seeds share: targets, starting logits and random numbers."""

    def __init__(self, toy: Toy, seeds: Sequence[int]) -> None:
        self.toy, self.num_seeds = toy, len(seeds)
        self._generators = [
            torch.Generator().manual_seed(seed * 2**20 + toy.length) for seed in seeds
        ]
        shape = NUM_PROMPTS, toy.length
        self.target = self._stacked(
            [torch.randint(NUM_SYMBOLS, shape, generator=g) for g in self._generators]
        )
        starts = [torch.randn(NUM_SYMBOLS, *shape, generator=g) for g in self._generators]
        self.start = toy.initial * torch.stack(starts, dim=1)

    def steps(self) -> Iterator[StepNumbers]:
        """The numbers of every step, once."""
        for _ in range(self.toy.steps):
            parts = [self._numbers(generator) for generator in self._generators]
            yield StepNumbers(*(self._stacked(part) for part in zip(*parts, strict=True)))

    def _numbers(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One seed's part of a step."""
        length = self.toy.length
        if self.toy.draw == "without":
            prompts = torch.randperm(NUM_PROMPTS, generator=generator)[:PROMPTS_A_STEP]
        else:
            prompts = torch.randint(NUM_PROMPTS, (PROMPTS_A_STEP,), generator=generator)
        uniform = torch.rand(PROMPTS_A_STEP, GROUP, length, generator=generator)
        noise = torch.randn(RESPONSES_A_STEP, length, generator=generator)
        if self.toy.mix == "shuffled":
            order = torch.randperm(RESPONSES_A_STEP, generator=generator)
        else:
            table = torch.arange(RESPONSES_A_STEP).view(PROMPTS_A_STEP, MINIBATCHES, -1)
            order = table.transpose(0, 1).flatten()
        return prompts, uniform, noise, order

    @staticmethod
    def _stacked(parts: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
        return torch.stack(list(parts))


class Learner:
    """One objective under one sigma, on all seeds of a world."""

    def __init__(self, world: World, objective: ObjectiveSettings, sigma: float) -> None:
        toy = world.toy
        self._world, self._objective, self._sigma = world, objective, sigma
        self._logits = world.start.clone()  # [symbol, seed, prompt, position]
        self._seed = torch.arange(world.num_seeds)[:, None]
        self._segments = Segments.from_lengths(
            [toy.length] * (world.num_seeds * RESPONSES_A_MINIBATCH)
        )
        self._group = torch.arange(world.num_seeds * PROMPTS_A_STEP).repeat_interleave(GROUP)
        self._cut = torch.zeros(MINIBATCHES, world.num_seeds, dtype=torch.float64)
        self._with_signal = torch.zeros_like(self._cut)
        self._units = 0

    def step(self, numbers: StepNumbers) -> None:
        """Sample, judge, and take the step's minibatches."""
        seed, length = self._seed, self._world.toy.length
        logits = self._logits[:, seed, numbers.prompts]
        logp = logits.log_softmax(0)
        tokens = sample(logp.exp(), numbers.uniform)
        advantage = self._advantage(tokens, self._world.target[seed, numbers.prompts])

        # A prompt drawn twice has its parameters in the row of its first draw.
        first = (numbers.prompts[:, :, None] == numbers.prompts[:, None, :]).int().argmax(2)
        row = seed * PROMPTS_A_STEP + first.repeat_interleave(GROUP, dim=1)
        place = row[seed, numbers.order][:, :, None] * length + torch.arange(length)
        place += tokens.flatten(1, 2)[seed, numbers.order].long() * logits[0].numel()
        old_logp = logp.flatten()[place] + self._sigma * numbers.noise
        parts = (place, old_logp, advantage[seed, numbers.order])
        for minibatch, (at, old, signal) in enumerate(
            zip(*(part.chunk(MINIBATCHES, dim=1) for part in parts), strict=True)
        ):
            if minibatch:
                logp = logits.log_softmax(0)
            surrogate = self._surrogate(
                logp.flatten()[at.flatten()], old.flatten(), signal.flatten()
            )
            self._count(minibatch, surrogate, signal)
            logits += self._update(surrogate, at.flatten(), logp)
        self._logits[:, seed, numbers.prompts] = logits[:, seed, first]

    def accuracy(self) -> Float[Tensor, "n"]:
        """Expected share of matching tokens over all prompts, for each seed."""
        probability = self._logits.softmax(0).gather(0, self._world.target[None]).squeeze(0)
        return probability.double().mean((1, 2))

    def cut_share(self) -> Float[Tensor, "n"]:
        """`clip/cut_share` over the run: off-policy minibatches, units with an advantage."""
        return self._cut[1:].sum(0) / self._with_signal[1:].sum(0).clamp(min=1)

    def cut_share_all(self) -> Float[Tensor, "n"]:
        """`clip/cut_share_all` over the run: every minibatch and unit."""
        return self._cut.sum(0) / max(self._units, 1)

    def _advantage(
        self, tokens: Int[Tensor, "n B G L"], target: Int[Tensor, "n B L"]
    ) -> Float[Tensor, "n R"]:
        """Group advantages; the reward is the share of matching tokens."""
        reward = (tokens == target[:, :, None]).double().mean(3)
        advantage = group_advantage(reward.flatten(), self._group)
        if self._world.toy.std == "biased":
            advantage = advantage * math.sqrt(GROUP / (GROUP - 1))
        return advantage.view(-1, RESPONSES_A_STEP)

    def _surrogate(
        self, logp: Float[Tensor, "N"], old_logp: Float[Tensor, "N"], advantage: Float[Tensor, "S"]
    ) -> Surrogate:
        if self._objective.advantage_per == "token":
            advantage = self._segments.spread(advantage)
        return self._objective(logp, old_logp, advantage, self._segments)

    def _update(
        self, surrogate: Surrogate, at: Int[Tensor, "N"], logp: Float[Tensor, "V n B L"]
    ) -> Float[Tensor, "V n B L"]:
        """Plain SGD: weight x grad log pi of every token, grad log softmax = one-hot - softmax."""
        divisor = self._objective.divisor(
            RESPONSES_A_MINIBATCH, RESPONSES_A_MINIBATCH * self._world.toy.length
        )
        weight = torch.zeros(logp.numel()).index_add_(0, at, surrogate.weight).view_as(logp)
        weight.addcmul_(logp.exp(), weight.sum(0), value=-1)
        return weight.mul_(LEARNING_RATE / divisor)

    def _count(self, minibatch: int, surrogate: Surrogate, advantage: Float[Tensor, "n S"]) -> None:
        stopped = cut(surrogate).view(*advantage.shape, -1)
        self._cut[minibatch] += stopped.sum((1, 2))
        self._with_signal[minibatch] += (advantage != 0).sum(1) * stopped.shape[2]
        self._units += stopped[0].numel()


def sample(
    probability: Float[Tensor, "V n B L"], uniform: Float[Tensor, "n B G L"]
) -> Int[Tensor, "n B G L"]:
    """Symbols by inverting the cumulative distribution, int8."""
    tokens = torch.zeros(uniform.shape, dtype=torch.int8)
    for bound in probability.cumsum(0)[:-1]:  # what is above the last bound is the last symbol
        tokens += uniform > bound[:, :, None]
    return tokens
