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


@runtime_checkable
class ChecksAll(Protocol):
    """A verifier that checks prompts faster together than one by one."""

    def check_all(self, prompts: Sequence[Prompt]) -> None:
        """DataError names the first prompt that cannot be judged."""
        ...


@runtime_checkable
class ChecksEach(Protocol):
    """A verifier that can tell from a prompt alone that it cannot judge it."""

    def check(self, prompt: Prompt) -> None:
        """DataError when it cannot."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A verifier that can say in words why a response has its reward."""

    def explained(self, prompt: Prompt, rollout: Rollout) -> tuple[Verdict, str | None]:
        """The verdict, and the reason for a scored one below 1; it may quote the response."""
        ...


def check_prompts(verifier: Verifier, prompts: Sequence[Prompt]) -> None:
    """DataError when a verifier cannot judge one of the prompts; to be called before anything is
    generated."""
    if isinstance(verifier, ChecksAll):
        verifier.check_all(prompts)
    elif isinstance(verifier, ChecksEach):
        for prompt in prompts:
            verifier.check(prompt)
