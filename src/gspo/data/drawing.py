"""What made tasks share: seeded draws, and a split that follows from the question itself.

No question is in both splits whatever the seeds, because its split is a hash of its content.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from gspo.errors import DataError, RecipeError, nearest
from gspo.types import Prompt

Split = Literal["train", "held_out"]

HELD_OUT_BYTES = 32  # of the 256 values of a hash byte: one question in eight is held out
MAX_MISSES = 2000  # draws in a row without a new question: the task has hardly any left

Question = TypeVar("Question")


@dataclass(frozen=True, slots=True)
class WorkedExample:
    """A prompt of the training split and a written response, without the end token."""

    prompt: Prompt
    completion: str


def split_of(key: str) -> Split:
    """The split of a question; `key` is its content, the same for every way of writing it."""
    return "held_out" if hashlib.sha256(key.encode()).digest()[0] < HELD_OUT_BYTES else "train"


def seeded(*parts: str | int) -> random.Random:
    """Random numbers that follow from these parts alone."""
    return random.Random(" ".join(str(part) for part in parts))  # noqa: S311 — nothing to guard


def check_corruption(corruption: float) -> None:
    """It is a probability."""
    if not 0 <= corruption <= 1:
        raise RecipeError(f"corruption is {corruption!r}; wanted a probability from 0 to 1")


def training_question(draw: Callable[[], Question], key_of: Callable[[Question], str]) -> Question:
    """The next question of the training split; one may come again."""
    while split_of(key_of(question := draw())) != "train":
        pass
    return question


def distinct_questions(
    draw: Callable[[], Question], key_of: Callable[[Question], str], split: str, count: int
) -> list[Question]:
    """`count` different questions of one split. The first n do not depend on `count`."""
    if split not in get_args(Split):
        raise RecipeError(f"unknown split {split!r}; {nearest(split, get_args(Split))}")
    found: dict[str, Question] = {}
    misses = 0
    while len(found) < count:
        question = draw()
        key = key_of(question)
        if split_of(key) == split and key not in found:
            found[key] = question
            misses = 0
        elif (misses := misses + 1) > MAX_MISSES:
            raise DataError(
                f"asked for {count} different {split} questions and found {len(found)}; ask for fewer, or make the task larger"
            )
    return list(found.values())
