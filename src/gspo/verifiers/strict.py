"""A second, stricter grader beside the one that gives the reward: what it says is recorded and
never trained on. Where the two part, the policy is learning the grader and not the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.base import Verifier, check_prompts

#: The part of a verdict that holds the strict grader's reward; absent where it broke.
STRICT = "strict"


@dataclass(frozen=True, slots=True)
class StrictlyWatched:
    """Rewards and failures are the verifier's. Each verdict gets the strict grader's reward among
    its parts, in place of a part of that name."""

    verifier: Verifier
    strict: Verifier

    def check_all(self, prompts: Sequence[Prompt]) -> None:
        """DataError when one of the two cannot judge one of the prompts."""
        check_prompts(self.verifier, prompts)
        check_prompts(self.strict, prompts)

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        given = self.verifier.judge(prompt, rollouts)
        watched = self.strict.judge(prompt, rollouts)
        return [_with_part(verdict, strict) for verdict, strict in zip(given, watched, strict=True)]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """The verifier's verdict on the gold answer."""
        return self.verifier.probe(prompt)


def _with_part(verdict: Verdict, strict: Verdict) -> Verdict:
    parts = {name: value for name, value in verdict.parts.items() if name != STRICT}
    if strict.reward is not None:
        parts[STRICT] = strict.reward
    return replace(verdict, parts=parts)
