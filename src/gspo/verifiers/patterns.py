"""Verifiers of a response's form: a regular expression, and sections in tags.

They say nothing about whether an answer is right; they are parts beside a verifier that does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from gspo.errors import RecipeError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.pool import Failure, WorkerPool, num_workers

LIMIT_S = 1.0  # of one response: a pattern that backtracks may take for ever
MEMORY_MIB = 256


@final
class RegexVerifier:
    """Reward 1 when the pattern is found in the response, else 0. `^` and `$` are the ends of the
    response, `.` matches line breaks too.

    The search runs in worker processes. One that is not done within the limit gives no verdict:
    the pattern is too slow, which is not the response's fault.
    """

    def __init__(self, pattern: str, limit_s: float = LIMIT_S) -> None:
        """RecipeError when the pattern is none."""
        try:
            re.compile(pattern, re.DOTALL)
        except re.error as error:
            raise RecipeError(
                f"verifier pattern {pattern!r} is no regular expression: {error}; see Python's re"
            ) from error
        self._pool = WorkerPool(
            "gspo.verifiers.pattern_worker:prepare",
            pattern,
            num_workers=num_workers(),
            timeout_s=limit_s,
            memory_mib=MEMORY_MIB,
        )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        return [
            Verdict.failed(f"{outcome.kind}: {outcome.reason}")
            if isinstance(outcome, Failure)
            else Verdict(float(outcome))
            for outcome in self._pool.run([rollout.text for rollout in rollouts])
        ]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """None: a gold answer has no form to try."""
        return None

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()


@dataclass(frozen=True, slots=True)
class FormatVerifier:
    """Reward 1 when the response is exactly these sections in this order, else 0: each tag once, as
    `<think>...</think>`, something in each, and nothing but blanks around them.

    Where the prompt's text ends with the first opening tag, the response begins inside it.
    """

    tags: tuple[str, ...] = ("think", "answer")

    def __post_init__(self) -> None:
        if not self.tags or not all(tag.isidentifier() for tag in self.tags):
            raise RecipeError(
                f"verifier tags are {list(self.tags)}; wanted names such as think and answer"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        first = f"<{self.tags[0]}>"
        opened = first if prompt.text.rstrip().endswith(first) else ""
        return [Verdict(float(self._fits(opened + rollout.text))) for rollout in rollouts]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """None: a gold answer has no form to try."""
        return None

    def _fits(self, text: str) -> bool:
        rest = text
        for tag in self.tags:
            opening, closing = f"<{tag}>", f"</{tag}>"
            if text.count(opening) != 1 or text.count(closing) != 1:
                return False
            before, _, rest = rest.partition(opening)
            inside, closed, rest = rest.partition(closing)
            if before.strip() or not closed or not inside.strip():
                return False
        return not rest.strip()
