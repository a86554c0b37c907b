"""Tasks made on the fly: seeded, nothing downloaded, questions without end.

A task is a frozen settings object. Its `reward` is a verifier function: `(completion, answer,
**columns) -> float`, to be wrapped like any other. Those of reasoning-gym are in gym.py.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Protocol, runtime_checkable

from gspo.data.addition import Addition
from gspo.data.countdown import Countdown
from gspo.data.drawing import WorkedExample
from gspo.errors import RecipeError, nearest
from gspo.types import Prompt


@runtime_checkable
class Task(Protocol):
    """Makes prompts and worked examples, and scores responses.

    characters: all that prompts and right responses are made of, for `character_tokenizer`.
    num_steps: what a demonstration can get wrong; imitation of demonstrations saturates at
    (1 - corruption) ** num_steps. max_response_tokens: one token a character, end token included.
    """

    name: ClassVar[str]
    characters: ClassVar[str]
    reward: Any

    @property
    def num_steps(self) -> int: ...

    @property
    def max_response_tokens(self) -> int: ...

    def prompts(self, split: str, count: int, seed: int) -> list[Prompt]:
        """`count` different prompts of "train" or "held_out"; no prompt is in both."""
        ...

    def demonstrations(self, count: int, seed: int, corruption: float = 0.2) -> list[WorkedExample]:
        """Training prompts with a response; each step is wrong with probability `corruption`."""
        ...


#: name -> settings class; `data.task: NAME` in a recipe.
TASKS: dict[str, type[Addition] | type[Countdown]] = {
    task.name: task for task in (Addition, Countdown)
}


def make_task(name: str, **settings: Any) -> Task:
    """Our own task of this name, with its settings.

    >>> make_task("addition", digits=3).max_response_tokens
    27
    """
    if name not in TASKS:
        raise RecipeError(f"unknown task {name!r}; {nearest(name, TASKS)}")
    known = [field.name for field in fields(TASKS[name])]
    for key in settings:
        if key not in known:
            raise RecipeError(f"task {name} has no setting {key!r}; {nearest(key, known)}")
    defaults = {field.name: field.default for field in fields(TASKS[name])}
    for key, value in settings.items():
        if type(value) is not type(defaults[key]):
            raise RecipeError(
                f"{name}.{key} is {value!r}; wanted {type(defaults[key]).__name__}, as {defaults[key]!r}"
            )
    return TASKS[name](**settings)
