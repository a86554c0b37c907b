"""A function is a verifier. Three signatures are taken as they are, told apart by one name:

    has `completion`      (prompt, completion, **columns) -> float
    has `completions`     TRL's (prompts, completions, **columns) -> list[float], one call a group
    has `solution_str`    verl's (data_source, solution_str, ground_truth, extra_info) -> float

The completion is the response's text alone. `columns` are the data's columns and `answer`; a
function gets those it has a parameter for, or all of them if it takes `**kwargs`. In TRL's form
every column is a list with one value a response, and a prompt of messages and its completions are
lists of messages, as TRL passes them. In verl's form `ground_truth` is the answer, `extra_info`
the column of that name, else all columns.

A function returns a number, or a dict with it under "reward" or "score"; the dict's other numbers
are recorded as parts. Anything else, and anything it raises, is a failed verdict: no reward.
"""

from __future__ import annotations

import inspect
import reprlib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

from gspo.errors import DataError, RecipeError
from gspo.types import LARGEST_REWARD, Prompt, Rollout, Verdict

MAX_REASON_CHARACTERS = 500  # an exception may carry a whole document


@dataclass(slots=True)
class Contained:
    """What a block raised, if anything."""

    error: BaseException | None = None

    @property
    def reason(self) -> str:
        """As "ExceptionType: message"; written by `traceback`, which survives a broken __str__."""
        lines = traceback.format_exception_only(self.error)
        return "".join(lines).strip()[:MAX_REASON_CHARACTERS]


@contextmanager
def contained() -> Iterator[Contained]:
    """Run a user's code: what it raises is kept, so that one bad response costs one verdict.

    The one place that catches everything: a user's function may raise anything, SystemExit too,
    and none of it may become a reward or end the run. KeyboardInterrupt passes.
    """
    caught = Contained()
    try:
        yield caught
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — see above
        caught.error = error


@dataclass(frozen=True, slots=True)
class _Form:
    """One of the three signatures: the name that tells it, names no column may have, and the
    arguments of one call. A call is for one response, or for all of a group in TRL's form."""

    marker: str
    own: frozenset[str]
    arguments: Callable[[Prompt, Sequence[Rollout]], dict[str, Any]]


def _columns(prompt: Prompt) -> dict[str, Any]:
    answer = {} if prompt.answer is None else {"answer": prompt.answer}
    return {**prompt.columns, **answer}


def _our_arguments(prompt: Prompt, rollouts: Sequence[Rollout]) -> dict[str, Any]:
    own = {"prompt": prompt.text, "completion": rollouts[0].text}
    return {**_columns(prompt), **own}


def _trl_arguments(prompt: Prompt, rollouts: Sequence[Rollout]) -> dict[str, Any]:
    def said(text: str) -> Any:
        return text if prompt.messages is None else [{"role": "assistant", "content": text}]

    asked = prompt.text if prompt.messages is None else prompt.messages
    own = {
        "prompts": [asked for _ in rollouts],
        "completions": [said(rollout.text) for rollout in rollouts],
        "completion_ids": [list(rollout.response_ids) for rollout in rollouts],
    }
    return {**{name: [v for _ in rollouts] for name, v in _columns(prompt).items()}, **own}


def _verl_arguments(prompt: Prompt, rollouts: Sequence[Rollout]) -> dict[str, Any]:
    answer = {} if prompt.answer is None else {"ground_truth": prompt.answer}
    return {
        **answer,
        "data_source": prompt.columns.get("data_source", prompt.source),
        "solution_str": rollouts[0].text,
        "extra_info": prompt.columns.get("extra_info", dict(prompt.columns)),
    }


TRL = _Form(
    "completions", frozenset({"prompts", "completions", "completion_ids", "answer"}), _trl_arguments
)
FORMS = (
    _Form("completion", frozenset({"prompt", "completion", "answer"}), _our_arguments),
    TRL,
    _Form("solution_str", frozenset({"solution_str", "ground_truth"}), _verl_arguments),
)


@final
class FunctionVerifier:
    """Judges with a function of one of the three forms.

    A function that raises, or returns no finite number, fails the response it was called for; in
    TRL's form a call that raises, or returns no list of the right length, fails its whole group.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        """RecipeError when the parameters' names fit none of the three forms, or several."""
        self.name = name
        self._function = function
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError as error:
            raise RecipeError(
                f"verifier {name} is {function!r}, whose parameters Python does not tell; wrap it in a function of your own"
            ) from error
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self._accepted = {p.name for p in named}
        self._required = {p.name for p in named if p.default is p.empty}
        self._takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        forms = [form for form in FORMS if form.marker in self._accepted]
        if len(forms) != 1:
            raise RecipeError(
                f"verifier {name} has the parameters {inspect.signature(function)}; wanted one of (prompt, completion, **columns) -> float, TRL's (prompts, completions, **columns) -> list[float], verl's (data_source, solution_str, ground_truth, extra_info) -> float"
            )
        self._form = forms[0]

    def check(self, prompt: Prompt) -> None:
        """DataError when the function needs a column this prompt lacks, or when a column has a
        name that the form fills itself. To be called before anything is generated."""
        clashes = self._form.own & prompt.columns.keys()
        if clashes:
            raise DataError(
                f"prompt {prompt.id}: the data has columns {sorted(clashes)}, names that verifier {self.name} is given by the trainer; rename them"
            )
        missing = self._required - self._form.arguments(prompt, [_written("")]).keys()
        if missing:
            raise DataError(
                f"verifier {self.name} needs {sorted(missing)}, which prompt {prompt.id} has not; its columns are {sorted(_columns(prompt))}"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        if self._form is TRL:
            return self._judge_group(prompt, rollouts) if rollouts else []
        return [self._judge_one(prompt, rollout) for rollout in rollouts]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """The verdict on the column "gold", a whole response that must pass; None without one.
        Checks the prompt's columns first."""
        self.check(prompt)
        if "gold" not in prompt.columns:
            return None
        return self.judge(prompt, [_written(str(prompt.columns["gold"]))])[0]

    def _call(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> Any:
        arguments = self._form.arguments(prompt, rollouts)
        taken = arguments.keys() if self._takes_all else arguments.keys() & self._accepted
        return self._function(**{name: arguments[name] for name in taken})

    def _judge_one(self, prompt: Prompt, rollout: Rollout) -> Verdict:
        with contained() as caught:
            return verdict_of(self._call(prompt, [rollout]))
        return Verdict.failed(caught.reason)

    def _judge_group(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        with contained() as caught:
            rewards = self._call(prompt, rollouts)
            if isinstance(rewards, str | Mapping) or not hasattr(rewards, "__len__"):
                reason = f"returned {reprlib.repr(rewards)}, wanted {len(rollouts)} rewards"
                return [Verdict.failed(reason) for _ in rollouts]
            if len(rewards) != len(rollouts):
                reason = f"returned {len(rewards)} rewards for {len(rollouts)} responses"
                return [Verdict.failed(reason) for _ in rollouts]
            return [verdict_of(reward) for reward in rewards]
        return [Verdict.failed(caught.reason) for _ in rollouts]


def verdict_of(value: Any) -> Verdict:
    """What a function returned, as a verdict. Its text entries are not numbers and are left out.

    >>> verdict_of({"score": True, "format": 0.5, "pred": "46"})
    Verdict(reward=1.0, parts={'format': 0.5}, failure=None)
    """
    parts: dict[str, float] = {}
    if isinstance(value, Mapping):
        key = next((name for name in ("reward", "score") if name in value), None)
        if key is None:
            return Verdict.failed(f"returned {reprlib.repr(value)}, without 'reward' or 'score'")
        numbers = {str(name): _number(entry) for name, entry in value.items() if name != key}
        parts = {name: number for name, number in numbers.items() if number is not None}
        value = value[key]
    reward = _number(value)
    if reward is None:
        return Verdict.failed(
            f"returned {reprlib.repr(value)}, wanted a finite number of at most 1e100"
        )
    return Verdict(reward, parts)


def _number(value: Any) -> float | None:
    """A finite real number as a float, numpy scalars and tensors without dimension included."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, Real) or not abs(value) <= LARGEST_REWARD:  # NaN is not  # pyright: ignore[reportOperatorIssue]
        return None
    return float(value)


def _written(text: str) -> Rollout:
    """A response that nobody sampled."""
    return Rollout(
        prompt_ids=(),
        response_ids=(),
        trained=(),
        engine_logp=(),
        text=text,
        finish="stop",
        version=0,
    )
