"""The verifier seam: a prompt and its responses in, one verdict a response out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gspo.types import Prompt, Rollout, Verdict


@runtime_checkable
class Verifier(Protocol):
    """Judges the response alone (never prompt + response). Exactly one verdict a rollout, in order."""

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """A verifier that broke gives `Verdict.failed(reason)`, not a reward of 0."""
        ...

    def probe(self, prompt: Prompt) -> Verdict | None:
        """Verdict on the prompt's own gold answer, or None where there is none to try."""
        ...
