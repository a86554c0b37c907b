"""Countdown: reach a target with three numbers, each used exactly once.

    prompt      3,7,25=46:
    response    25+(3*7)

The numbers stand in rising order, so their order gives nothing away.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gspo.data.arithmetic import evaluate
from gspo.data.drawing import (
    WorkedExample,
    check_corruption,
    distinct_questions,
    seeded,
    training_question,
)
from gspo.errors import RecipeError
from gspo.types import Prompt

NUM_NUMBERS = 3
OPERATIONS = "+-*/"


@dataclass(frozen=True, slots=True)
class _Question:
    """The numbers in rising order, the target, and an expression that reaches it."""

    numbers: tuple[int, ...]
    target: int
    expression: str

    @property
    def text(self) -> str:
        return f"{','.join(map(str, self.numbers))}={self.target}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Countdown:
    """Three numbers from 1 to `max_number`, a whole target from 1 to `max_target`."""

    name: ClassVar = "countdown"
    characters: ClassVar = "0123456789+-*/()=,:"
    max_number: int = 25
    max_target: int = 99

    def __post_init__(self) -> None:
        for name in ("max_number", "max_target"):
            if getattr(self, name) < NUM_NUMBERS:
                raise RecipeError(
                    f"countdown.{name} is {getattr(self, name)}; wanted at least {NUM_NUMBERS}"
                )

    @property
    def num_steps(self) -> int:
        """The expression is one step."""
        return 1

    @property
    def max_response_tokens(self) -> int:
        """The longest expression asked for: numbers, two operations, two brackets, <eos>."""
        return NUM_NUMBERS * len(str(self.max_number)) + (NUM_NUMBERS - 1) + 2 + 1

    def prompts(self, split: str, count: int, seed: int) -> list[Prompt]:
        """Different questions. `columns`: "numbers", and "gold", a response that earns reward 1.
        `ids` are empty until a tokenizer fills them."""
        rng = seeded("countdown", self.max_number, self.max_target, split, seed)
        questions = distinct_questions(lambda: self._draw(rng), _key, split, count)
        return [_prompt(question) for question in questions]

    def demonstrations(self, count: int, seed: int, corruption: float = 0.2) -> list[WorkedExample]:
        """Training questions with an expression each. A corrupted one, with probability
        `corruption`, uses the numbers but misses the target; which way it misses is spread."""
        check_corruption(corruption)
        rng = seeded("countdown demonstrations", self.max_number, self.max_target, seed)
        examples: list[WorkedExample] = []
        for _ in range(count):
            question = training_question(lambda: self._draw(rng), _key)
            wrong = rng.random() < corruption
            expression = _miss(rng, question) if wrong else question.expression
            examples.append(WorkedExample(_prompt(question), expression))
        return examples

    def reward(self, completion: str, answer: str, numbers: Sequence[int]) -> float:
        """1 when the whole response is an expression that uses each number exactly once and
        equals the target, exactly; else 0."""
        try:
            value, used = evaluate(completion.strip())
        except (ValueError, ZeroDivisionError):
            return 0.0
        return float(sorted(used) == sorted(numbers) and value == int(answer))

    def _draw(self, rng: random.Random) -> _Question:
        while True:
            numbers = [rng.randint(1, self.max_number) for _ in range(NUM_NUMBERS)]
            expression, value = _random_expression(rng, numbers)
            if value.denominator == 1 and 1 <= value <= self.max_target:
                return _Question(tuple(sorted(numbers)), int(value), expression)


def _random_expression(rng: random.Random, numbers: Sequence[int]) -> tuple[str, Fraction]:
    """Two random operations on the numbers in random order, brackets round the first or second."""
    while True:
        a, b, c = rng.sample(numbers, NUM_NUMBERS)
        first, second = rng.choice(OPERATIONS), rng.choice(OPERATIONS)
        left = rng.random() < 0.5
        expression = f"({a}{first}{b}){second}{c}" if left else f"{a}{first}({b}{second}{c})"
        try:
            return expression, evaluate(expression)[0]
        except ZeroDivisionError:
            continue


def _miss(rng: random.Random, question: _Question) -> str:
    """An expression of the same numbers with another value."""
    while True:
        expression, value = _random_expression(rng, question.numbers)
        if value != question.target:
            return expression


def _key(question: _Question) -> str:
    return f"countdown {question.text}"


def _prompt(question: _Question) -> Prompt:
    return Prompt(
        id=f"countdown/{question.text}",
        text=question.text,
        ids=(),
        answer=str(question.target),
        source="countdown",
        columns={"numbers": list(question.numbers), "gold": question.expression},
    )
