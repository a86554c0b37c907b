r"""Mathematics: is the final answer of a response the gold answer?

What counts as the final answer is in `math_extract`, what counts as the same in `math_equal`. Most
pairs are decided here, exactly and in microseconds. What needs computer algebra goes to worker processes:
an answer they cannot decide within the limit is wrong, and a worker that breaks gives no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, final

from gspo.errors import DataError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.math_equal import UndecidedError, texts_equal
from gspo.verifiers.math_extract import Place, final_answer
from gspo.verifiers.math_formula import UnreadError, formula_tree
from gspo.verifiers.math_reading import formulas, read
from gspo.verifiers.math_refute import Refutation
from gspo.verifiers.math_text import tidy
from gspo.verifiers.pool import Failure, WorkerPool, num_workers
from gspo.verifiers.written import written

LIMIT_S = 1.8  # of one comparison, so that none takes 2; honest ones take milliseconds
MEMORY_MIB = 512  # that a comparison may add to a worker
MAX_CACHED = 50_000  # verdicts; a pair has some hundred bytes

#: Failures that are the answer's doing: it is wrong. Others are the verifier's: no verdict.
_OWN_FAULT = {"timeout": "timeout", "memory": "timeout"}
_WRITTEN = {
    "any": r"\boxed{%s}",
    "box": r"\boxed{%s}",
    "tag": "<answer>%s</answer>",
    "hash": "#### %s",
    "phrase": "The answer is: %s",
    "bare": "%s",
}
_IS_SOMETHING = re.compile(r"[A-Za-z0-9]|\\infty|\\emptyset|\\\{\s*\\\}")


@dataclass(frozen=True, slots=True)
class MathSettings:
    """place: where the answer must stand; "any" tries all in the order of `math_extract`.
    all_boxes: a list of all boxes instead of the last. strict: decimals, units and percent signs
    as in the gold answer. limit_s: of one comparison."""

    place: Place = "any"
    all_boxes: bool = False
    strict: bool = False
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class _Decision:
    """equal, and why it is not where that is not plain: "unread" or "timeout"."""

    equal: bool
    why: str | None = None


@final
class MathVerifier:
    """Reward 1 when the final answer equals the prompt's, else 0. Parts, each 0 or 1: no_answer,
    unread (no mathematics that can be read), timeout (not decided within time and memory)."""

    def __init__(self, settings: MathSettings | None = None) -> None:
        self.settings = settings or MathSettings()
        self._pool = WorkerPool(
            "gspo.verifiers.math_worker:prepare",
            num_workers=num_workers(),
            timeout_s=self.settings.limit_s,
            memory_mib=MEMORY_MIB,
            retry_stalled=True,
        )
        self._cache: dict[tuple[str, str], _Decision] = {}
        self._lock = Lock()

    def check_all(self, prompts: Sequence[Prompt]) -> None:
        """DataError names the first prompt whose answer cannot be read. Formulas are parsed, all in
        one go."""
        golds = [_gold(prompt) for prompt in prompts]
        doubtful = dict.fromkeys(gold for gold in golds if _needs_parsing(gold))
        outcomes = dict(
            zip(doubtful, self._pool.run([{"parse": gold} for gold in doubtful]), strict=True)
        )
        for prompt, gold in zip(prompts, golds, strict=True):
            outcome = outcomes.get(gold)
            reason = outcome.reason if isinstance(outcome, Failure) else outcome
            if reason is not None:
                raise DataError(
                    f"prompt {prompt.id} has the answer {prompt.answer!r}, which cannot be read as mathematics ({reason}); correct it, or drop the prompt"
                )

    def check(self, prompt: Prompt) -> None:
        """DataError when the prompt's answer cannot be read."""
        self.check_all([prompt])

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order; all failed when the prompt's answer cannot be read."""
        try:
            gold = _gold(prompt)
        except DataError as error:
            return [Verdict.failed(str(error)) for _ in rollouts]
        settings = self.settings
        found = [
            final_answer(rollout.text, settings.place, all_boxes=settings.all_boxes)
            for rollout in rollouts
        ]
        answers = [None if text is None else tidy(text) for text in found]
        decided = self._decide(gold, [answer for answer in dict.fromkeys(answers) if answer])
        return [_verdict(decided[answer] if answer else None) for answer in answers]

    def probe(self, prompt: Prompt) -> Verdict:
        """The verdict on the column "gold", or on the answer, written where it is looked for."""
        self.check(prompt)
        response = prompt.columns.get("gold", _WRITTEN[self.settings.place] % _gold(prompt))
        return self.judge(prompt, [written(str(response))])[0]

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def _decide(self, gold: str, answers: Sequence[str]) -> dict[str, _Decision | Failure]:
        """One decision an answer: remembered, exact, or computed."""
        decided: dict[str, _Decision | Failure] = {}
        for answer in answers:
            decision = self._cache.get(_pair(gold, answer)) or _quick(
                gold, answer, self.settings.strict
            )
            if decision is not None:
                decided[answer] = decision
        rest = [answer for answer in answers if answer not in decided]
        jobs = [
            dict(
                zip(("gold", "answer"), _pair(gold, answer), strict=True),
                strict=self.settings.strict,
            )
            for answer in rest
        ]
        for answer, outcome in zip(rest, self._pool.run(jobs), strict=True):
            decided[answer] = _computed(outcome)
        with self._lock:
            if len(self._cache) > MAX_CACHED:
                self._cache.clear()
            for answer, decision in decided.items():
                if isinstance(decision, _Decision):
                    self._cache[_pair(gold, answer)] = decision
        return decided


def _pair(gold: str, answer: str) -> tuple[str, str]:
    """The same for both orders: so is the verdict."""
    return (gold, answer) if gold <= answer else (answer, gold)


def _gold(prompt: Prompt) -> str:
    """The prompt's answer, tidied; of a whole solution, its final answer."""
    answer = prompt.answer
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        raise DataError(f"prompt {prompt.id} has the answer {answer!r}; wanted text or a number")
    text: str | None = str(answer)
    for place in ("box", "tag", "hash"):
        if any(mark in text for mark in _MARKS[place]):
            text = final_answer(text, place)
            break
    tidied = "" if text is None else tidy(text)
    if not _IS_SOMETHING.search(tidied) or tidied.count("{") != tidied.count("}"):
        raise DataError(
            f"prompt {prompt.id} has the answer {answer!r}, in which there is no answer to compare; correct it, or drop the prompt"
        )
    return tidied


_MARKS: dict[Place, tuple[str, ...]] = {
    "box": (r"\boxed", r"\fbox"),
    "tag": ("<answer>",),
    "hash": ("####",),
}


def _needs_parsing(gold: str) -> bool:
    """It holds a formula that not even the quick parser reads."""
    for formula in formulas(read(gold)):
        try:
            formula_tree(formula)
        except UnreadError:
            return True
    return False


def _quick(gold: str, answer: str, strict: bool) -> _Decision | None:
    try:
        return _Decision(texts_equal(gold, answer, Refutation(strict=strict), strict=strict))
    except UndecidedError:
        return None


def _computed(outcome: Any | Failure) -> _Decision | Failure:
    if not isinstance(outcome, Failure):
        return _Decision(outcome["equal"], "unread" if "unread" in outcome else None)
    why = _OWN_FAULT.get(outcome.kind)
    return outcome if why is None else _Decision(equal=False, why=why)


def _verdict(decision: _Decision | Failure | None) -> Verdict:
    if isinstance(decision, Failure):
        return Verdict.failed(f"{decision.kind}: {decision.reason}")
    why = "no_answer" if decision is None else decision.why
    parts = {name: float(name == why) for name in ("no_answer", "unread", "timeout")}
    return Verdict(float(decision is not None and decision.equal), parts)
