"""A reward that is a weighted sum of several verifiers' rewards, each of them on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.base import Verifier, check_prompts


@dataclass(frozen=True, slots=True)
class Part:
    """One term of the sum. name: of its entry among a verdict's parts."""

    name: str
    verifier: Verifier
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class WeightedParts:
    """reward = sum of weight x reward over the parts.

    A verdict's parts hold each part's reward before its weight, under its name, and that part's
    own parts as name/part. A part that breaks leaves the response without a reward: a sum that
    lacks a term is another reward.
    """

    parts: tuple[Part, ...]

    def check_all(self, prompts: Sequence[Prompt]) -> None:
        """DataError of the first part that cannot judge one of the prompts."""
        for part in self.parts:
            check_prompts(part.verifier, prompts)

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        columns = [part.verifier.judge(prompt, rollouts) for part in self.parts]
        return [self._sum(verdicts) for verdicts in zip(*columns, strict=True)] if rollouts else []

    def probe(self, prompt: Prompt) -> Verdict | None:
        """The sum over the parts that have a gold answer to try. A part that refuses it, though it
        is there to reward it, makes the reward 0; None where no part has one."""
        tried = [(part, part.verifier.probe(prompt)) for part in self.parts]
        known = [(part, verdict) for part, verdict in tried if verdict is not None]
        if not known:
            return None
        for part, verdict in known:
            if verdict.failure is not None:
                return Verdict.failed(f"{part.name}: {verdict.failure}")
            if part.weight > 0 and (verdict.reward is None or verdict.reward <= 0):
                return Verdict(0.0, {part.name: verdict.reward or 0.0})
        return Verdict(sum(part.weight * (verdict.reward or 0.0) for part, verdict in known))

    def _sum(self, verdicts: Sequence[Verdict]) -> Verdict:
        parts: dict[str, float] = {}
        reward = 0.0
        for part, verdict in zip(self.parts, verdicts, strict=True):
            if verdict.reward is None:
                return Verdict.failed(f"{part.name}: {verdict.failure}")
            reward += part.weight * verdict.reward
            parts[part.name] = verdict.reward
            parts |= {f"{part.name}/{name}": value for name, value in verdict.parts.items()}
        return Verdict(reward, parts)
