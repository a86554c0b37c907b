"""Random ragged batches, and the gradient of an objective on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from gspo.objectives import OBJECTIVES
from gspo.segments import Segments
from gspo.settings import CISPO, GSPO, PPO, ClipRange, DrGRPO, GSPOToken, LengthFairClip


@dataclass(frozen=True)
class Batch:
    """S responses as lists of token log-probs; advantages per response and per token."""

    logp: list[Tensor]
    old_logp: list[Tensor]
    advantage: Tensor
    token_advantage: list[Tensor]

    @property
    def num_responses(self) -> int:
        return sum(len(row) > 0 for row in self.logp)

    @property
    def num_tokens(self) -> int:
        return sum(len(row) for row in self.logp)

    def run(self, objective, logp=None, rows=None):
        """The surrogate of these rows. logp: a leaf per response, or None for constants."""
        rows = range(len(self.logp)) if rows is None else rows
        logp = self.logp if logp is None else logp
        per_token = isinstance(objective, GSPOToken)
        return objective(
            join([logp[row] for row in rows]),
            join([self.old_logp[row] for row in rows]),
            join([self.token_advantage[row] for row in rows])
            if per_token
            else self.advantage[list(rows)],
            Segments.from_lengths([len(self.logp[row]) for row in rows]),
        )

    def gradient(self, objective, parts=None) -> list[Tensor]:
        """d loss / d logp of each response; parts: rows of each micro-batch, all in one if None."""
        leaves = [row.clone().requires_grad_() for row in self.logp]
        divisor = objective.divisor(self.num_responses, self.num_tokens)
        for rows in parts or [list(range(len(leaves)))]:
            (self.run(objective, leaves, rows).loss.sum() / divisor).backward()
        return [torch.zeros_like(row) if row.grad is None else row.grad for row in leaves]


def join(rows: list[Tensor]) -> Tensor:
    return torch.cat([torch.zeros(0, dtype=torch.float64), *rows])


@pytest.fixture(scope="session")
def random_batch():
    """(seed, lengths, spread in nats of the token log-ratios) -> Batch in float64."""

    def build(seed: int, lengths: list[int], spread: float) -> Batch:
        generator = torch.Generator().manual_seed(seed)

        def normal(count: int) -> Tensor:
            return torch.randn(count, generator=generator, dtype=torch.float64)

        old_logp = [-normal(length).abs() - 0.01 for length in lengths]
        return Batch(
            logp=[row + spread * (normal(len(row)) + 0.3 * normal(1)) for row in old_logp],
            old_logp=old_logp,
            advantage=normal(len(lengths)),
            token_advantage=[normal(length) for length in lengths],
        )

    return build


def all_settings():
    """Every objective once with ranges that cut some and keep some, and its special forms."""
    wide = ClipRange(low=0.0225, high=0.03)
    made: dict[str, Any] = {
        "gspo": GSPO(clip=wide),
        "gspo_token": GSPOToken(clip=wide),
        "cispo": CISPO(clip=ClipRange(low=0.2, high=0.28)),
    }
    made |= {name: OBJECTIVES[name]() for name in ("grpo", "dapo", "gmpo", "sapo", "ppo")}
    made["dr_grpo"] = DrGRPO(max_tokens=16)
    made["ppo, dual clip"] = PPO(dual_clip=1.5)
    made["gspo, length-fair"] = GSPO(clip=LengthFairClip(low=0.05, high=0.06))
    made["gspo_token, length-fair"] = GSPOToken(clip=LengthFairClip(low=0.05, high=0.06))
    assert {objective.name for objective in made.values()} == set(OBJECTIVES)
    return made


def pytest_generate_tests(metafunc):
    """A test with an argument `objective` runs for every objective; with `padded_objective` for
    those that the padded functions can name."""
    made = all_settings()
    if "objective" in metafunc.fixturenames:
        metafunc.parametrize("objective", list(made.values()), ids=list(made))
    if "padded_objective" in metafunc.fixturenames:
        named = {key: value for key, value in made.items() if "length-fair" not in key}
        metafunc.parametrize("padded_objective", list(named.values()), ids=list(named))
