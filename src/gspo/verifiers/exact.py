"""The final answer, compared as text or as a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout, Verdict

#: Plain decimal numbers only: no exponent, so no short text stands for a huge number.
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")


@dataclass(frozen=True, slots=True)
class ExactVerifier:
    """Reward 1 when what follows the last `marker`, up to the end of its line, equals the
    prompt's answer, else 0. Without a marker the whole response is the answer.

    Blanks at the ends do not count; 46, +46 and 46.0 are equal. A response without the marker is
    a wrong answer. The answer is text or a number.
    """

    marker: str | None = None

    def __post_init__(self) -> None:
        if self.marker is not None and not self.marker.strip():
            raise RecipeError(
                f"exact.marker is {self.marker!r}; wanted text that stands before the answer, or null for the whole response"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order; all failed when the prompt has no answer to compare."""
        if not _comparable(prompt):
            reason = f"prompt {prompt.id} has the answer {prompt.answer!r}, wanted text or a number"
            return [Verdict.failed(reason) for _ in rollouts]
        gold = str(prompt.answer)
        return [Verdict(self._reward(rollout.text, gold)) for rollout in rollouts]

    def check(self, prompt: Prompt) -> None:
        """DataError when the prompt has no answer to compare."""
        if not _comparable(prompt):
            raise DataError(
                f"prompt {prompt.id} has the answer {prompt.answer!r}; wanted text or a number"
            )

    def probe(self, prompt: Prompt) -> Verdict:
        """The verdict on the column "gold", or on the marker with the answer behind it."""
        self.check(prompt)
        written = prompt.columns.get("gold", f"{self.marker or ''}{prompt.answer}")
        return Verdict(self._reward(str(written), str(prompt.answer)))

    def _reward(self, text: str, gold: str) -> float:
        answer = text
        if self.marker is not None:
            _, mark, rest = text.rpartition(self.marker)
            if not mark:
                return 0.0
            answer = rest.split("\n", 1)[0]
        return float(same_answer(answer, gold))


def same_answer(given: str, gold: str) -> bool:
    """Equal as trimmed text, or as decimal numbers.

    >>> same_answer(" 46 ", "46.0"), same_answer("4,6", "46")
    (True, False)
    """
    given, gold = given.strip(), gold.strip()
    if given == gold:
        return True
    return bool(NUMBER.fullmatch(given) and NUMBER.fullmatch(gold)) and Decimal(given) == Decimal(
        gold
    )


def _comparable(prompt: Prompt) -> bool:
    return isinstance(prompt.answer, str | int | float) and bool(str(prompt.answer).strip())
