"""The engine seam: prompts in, groups of sampled responses out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gspo.errors import RecipeError
from gspo.types import Group, Prompt, Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to sample. temperature 0 is greedy, for evaluation only; top_k 0 and top_p 1 are off.

    (seed, step) enter the counted random numbers; `stream` keeps evaluation's apart from
    training's.
    """

    num_samples: int
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    step: int = 0
    stream: str = "train"

    def __post_init__(self) -> None:
        checks = (
            ("num_samples", self.num_samples >= 1, "at least 1"),
            ("max_tokens", self.max_tokens >= 1, "at least 1"),
            ("temperature", 0 <= self.temperature < float("inf"), "a finite number, 0 for greedy"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("top_k", self.top_k >= 0, "at least 0, 0 for off"),
        )
        for name, fine, wanted in checks:
            if not fine:
                raise RecipeError(f"sampling {name} is {getattr(self, name)!r}; wanted {wanted}")


@runtime_checkable
class Engine(Protocol):
    """Samples responses. The same (seed, step, prompt id, sample) gives the same random numbers
    whatever the batch shape."""

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Group]:
        """One group per prompt, in any order; rollouts in order of sample number."""
        ...

    def load(self, weights: Weights) -> None:
        """Use these weights for every later request; anything cached under old ones is dropped."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...
