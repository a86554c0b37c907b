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

It runs in this process, or with a limit: then in worker processes, and a call that takes too long
or too much memory is killed and costs its own responses their verdicts, nobody else's.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.contained import contained
from gspo.verifiers.pool import Failure, WorkerPool, num_workers
from gspo.verifiers.returned import plain_verdict, plain_verdicts
from gspo.verifiers.written import written

FUNCTION_MEMORY_MIB = 4096  # beyond what the function's module needs to load


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


def _own(value: Any) -> Any:
    """A copy of a list or an object, so that what a function does to it is not there in its next call."""
    return copy.deepcopy(value) if isinstance(value, list | dict) else value


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
    columns = _columns(prompt).items()
    return {**{name: [_own(value) for _ in rollouts] for name, value in columns}, **own}


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

    def __init__(
        self, function: Callable[..., Any], name: str, pool: WorkerPool | None = None
    ) -> None:
        """pool: where the calls run, of `function_pool`; None is here. RecipeError when the
        parameters' names fit none of the three forms, or several."""
        self.name = name
        self._function = function
        self._pool = pool
        if _is_async(function):
            raise RecipeError(
                f"verifier {name} is an async function; wanted a plain one, so call asyncio.run in it"
            )
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
        missing = self._required - self._form.arguments(prompt, [written("")]).keys()
        if missing:
            raise DataError(
                f"verifier {self.name} needs {sorted(missing)}, which prompt {prompt.id} has not; its columns are {sorted(_columns(prompt))}"
            )

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        if not rollouts:
            return []
        calls = [rollouts] if self._form is TRL else [[rollout] for rollout in rollouts]
        if self._pool is not None:
            return self._judge_in_workers(self._pool, prompt, calls)
        return [verdict for call in calls for verdict in self._judge_here(prompt, call)]

    def probe(self, prompt: Prompt) -> Verdict | None:
        """The verdict on the column "gold", a whole response that must pass; None without one.
        Checks the prompt's columns first."""
        self.check(prompt)
        if "gold" not in prompt.columns:
            return None
        return self.judge(prompt, [written(str(prompt.columns["gold"]))])[0]

    def _arguments(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> dict[str, Any]:
        arguments = self._form.arguments(prompt, rollouts)
        taken = arguments.keys() if self._takes_all else arguments.keys() & self._accepted
        return {name: _own(arguments[name]) for name in taken}

    def _judge_here(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        with contained() as caught:
            value = self._function(**self._arguments(prompt, rollouts))
            if self._form is TRL:
                return [Verdict(**plain) for plain in plain_verdicts(value, len(rollouts))]
            return [verdict_of(value)]
        return [Verdict.failed(caught.reason) for _ in rollouts]

    def _judge_in_workers(
        self, pool: WorkerPool, prompt: Prompt, calls: Sequence[Sequence[Rollout]]
    ) -> list[Verdict]:
        jobs = [
            {
                "arguments": self._arguments(prompt, call),
                "num_responses": len(call) if self._form is TRL else None,
            }
            for call in calls
        ]
        verdicts: list[Verdict] = []
        for call, outcome in zip(calls, pool.run(jobs), strict=True):
            if isinstance(outcome, Failure):
                reason = f"{outcome.kind}: {outcome.reason}"
                verdicts += [Verdict.failed(reason) for _ in call]
            else:
                verdicts += [Verdict(**plain) for plain in outcome]
        return verdicts


def _is_async(function: Callable[..., Any]) -> bool:
    return any(
        test(called)
        for called in (function, getattr(function, "__call__", None))  # noqa: B004 - an object's
        for test in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    )


def function_pool(place: str, sha256: str, limit_s: float) -> WorkerPool:
    """Workers for the function at this place, of a file with this digest. limit_s: of one call,
    which is one response, or one group in TRL's form."""
    return WorkerPool(
        "gspo.verifiers.function_worker:prepare",
        {"place": place, "sha256": sha256},
        num_workers=num_workers(),
        timeout_s=limit_s,
        memory_mib=FUNCTION_MEMORY_MIB,
    )


def verdict_of(value: Any) -> Verdict:
    """What a function returned, as a verdict. Its text entries are not numbers and are left out.

    >>> verdict_of({"score": True, "format": 0.5, "pred": "46"})
    Verdict(reward=1.0, parts={'format': 0.5}, failure=None)
    """
    return Verdict(**plain_verdict(value))
