"""Addition with its working shown: the demo task.

    prompt      3847+1926=
    response    760=13;421=07;890=17;311=05;>5773

One step a digit, from the units up: digit, digit, carry in, "=", the two-digit sum; then ">" and
the answer. The answer's digits are those the steps wrote, top first, with the last carry in front
when it is 1. Operands have exactly `digits` digits, none leading with 0; an answer with a leading
0 is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gspo.data.drawing import (
    WorkedExample,
    check_corruption,
    distinct_questions,
    seeded,
    training_question,
)
from gspo.errors import RecipeError
from gspo.types import Prompt

ANSWER_MARK = ">"
STEP_CHARACTERS = len("760=13;")
MAX_DIGITS = 50


def answer_of(text: str) -> str | None:
    """What stands after the last ">", or None without one."""
    _, mark, answer = text.rpartition(ANSWER_MARK)
    return answer if mark else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Sums of two numbers of `digits` digits; a chain of `digits` steps."""

    name: ClassVar = "addition"
    characters: ClassVar = "0123456789+=;>"
    digits: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MAX_DIGITS:
            raise RecipeError(f"addition.digits is {self.digits}; wanted 1 to {MAX_DIGITS}")

    @property
    def num_steps(self) -> int:
        """Steps that a demonstration can get wrong."""
        return self.digits

    @property
    def max_response_tokens(self) -> int:
        """The longest right response with its end token: steps, mark, answer, <eos>."""
        return STEP_CHARACTERS * self.digits + len(ANSWER_MARK) + (self.digits + 1) + 1

    def prompts(self, split: str, count: int, seed: int) -> list[Prompt]:
        """Different sums; a sum and its swapped form are one. `columns["gold"]` is a response
        that earns reward 1. `ids` are empty until a tokenizer fills them."""
        rng = seeded("addition", self.digits, split, seed)
        pairs = distinct_questions(lambda: self._draw(rng), _key, split, count)
        return [self._prompt(*pair) for pair in pairs]

    def demonstrations(self, count: int, seed: int, corruption: float = 0.2) -> list[WorkedExample]:
        """Training sums, each step corrupted independently with probability `corruption`.

        A corrupted step writes one of the nine wrong digits, each as likely; everything after
        follows from what was written. So perfect imitation is right with probability
        (1 - corruption) ** num_steps when it samples, and always when it is greedy.
        """
        check_corruption(corruption)
        rng = seeded("addition demonstrations", self.digits, seed)
        examples: list[WorkedExample] = []
        for _ in range(count):
            first, second = training_question(lambda: self._draw(rng), _key)
            shifts = [
                rng.randint(1, 9) if rng.random() < corruption else 0 for _ in range(self.digits)
            ]
            prompt = self._prompt(first, second)
            examples.append(WorkedExample(prompt, written(first, second, shifts)))
        return examples

    def reward(self, completion: str, answer: str) -> float:
        """1 when the final answer is the sum, else 0; the steps are not looked at."""
        return float(answer_of(completion) == answer)

    def _draw(self, rng: random.Random) -> tuple[int, int]:
        low, high = 10 ** (self.digits - 1), 10**self.digits - 1
        return rng.randint(low, high), rng.randint(low, high)

    def _prompt(self, first: int, second: int) -> Prompt:
        text = f"{first}+{second}="
        return Prompt(
            id=f"addition/{text}",
            text=text,
            ids=(),
            answer=str(first + second),
            source="addition",
            columns={"gold": written(first, second, [0] * self.digits)},
        )


def written(first: int, second: int, shifts: Sequence[int]) -> str:
    """The response that adds shifts[k] (mod 10) to the sum digit it writes in step k; a shift of
    0 is a right step.

    >>> written(3847, 1926, [0, 0, 0, 0])
    '760=13;421=07;890=17;311=05;>5773'
    >>> written(3847, 1926, [0, 5, 0, 0])
    '760=13;421=02;890=17;311=05;>5723'
    """
    steps, answer, carry = "", "", 0
    for place, shift in enumerate(shifts):
        digit, other = first // 10**place % 10, second // 10**place % 10
        total = digit + other + carry
        sum_digit = (total + shift) % 10
        steps += f"{digit}{other}{carry}={total // 10}{sum_digit};"
        answer = f"{sum_digit}{answer}"
        carry = total // 10
    return steps + ANSWER_MARK + ("1" if carry else "") + answer


def _key(pair: tuple[int, int]) -> str:
    return f"addition {min(pair)} {max(pair)}"
