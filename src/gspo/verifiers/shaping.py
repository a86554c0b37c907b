"""Rewards that depend on a response's length alone: parts beside a verifier of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspo.errors import RecipeError
from gspo.types import Prompt, Rollout, Verdict


@dataclass(frozen=True, slots=True)
class LengthVerifier:
    """Reward 1 up to `short` response tokens, 0 from `long` on, a straight line between.

    short above long turns it round: then longer is better.
    """

    short: int
    long: int

    def __post_init__(self) -> None:
        if self.short == self.long or min(self.short, self.long) < 0:
            raise RecipeError(
                f"length goes from {self.short} tokens (reward 1) to {self.long} (reward 0); wanted two different numbers of at least 0"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        return [Verdict(self._reward(len(rollout.response_ids))) for rollout in rollouts]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """None: a gold answer has no length of its own."""
        return None

    def _reward(self, length: int) -> float:
        return min(max((self.long - length) / (self.long - self.short), 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class OverlongPunishment:
    """DAPO's soft punishment, arXiv 2503.14476, equation 13, of a response of L tokens:

        0                                   L <= max - buffer
        (max - buffer - L) / buffer         max - buffer < L <= max
        -1                                  max < L, or the response was cut off

    max_tokens: what the engine may sample; buffer_tokens: in how many before that it sets in.
    """

    max_tokens: int
    buffer_tokens: int

    def __post_init__(self) -> None:
        if not 0 < self.buffer_tokens <= self.max_tokens:
            raise RecipeError(
                f"the overlong punishment sets in {self.buffer_tokens} tokens before {self.max_tokens}; wanted between 1 and {self.max_tokens}"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        return [Verdict(self._reward(rollout)) for rollout in rollouts]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """None: a gold answer has no length of its own."""
        return None

    def _reward(self, rollout: Rollout) -> float:
        if rollout.finish == "length":
            return -1.0
        over = len(rollout.response_ids) - (self.max_tokens - self.buffer_tokens)
        return max(-max(over, 0) / self.buffer_tokens, -1.0) + 0.0
