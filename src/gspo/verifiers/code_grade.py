"""Judging one program: its tests in an order it cannot foresee, each in a process of its own."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gspo.verifiers.code_tests import Test
from gspo.verifiers.sandbox.job import End, Job, Limits, Outcome

Rule = Literal["all", "share"]
Fault = Literal["wrong", "timeout", "crash", "resource", "policy", "format"]
MAX_TIMEOUTS = 3  # of one program: each costs seconds, and data have hundreds of tests
MAX_SHOWN_CHARACTERS = 120  # of a value in a reason
FAULTS: tuple[Fault, ...] = ("wrong", "timeout", "crash", "resource", "policy", "format")


@dataclass(frozen=True, slots=True)
class Grade:
    """reward: None where the sandbox failed. fault: of the first test that failed, None where all
    passed. reason: in words; it may quote the program. num_passed of num_run tests, num_tests in all."""

    reward: float | None
    fault: Fault | None
    reason: str
    num_passed: int
    num_run: int
    num_tests: int


def grade(
    code: str,
    tests: Sequence[Test],
    run: Callable[[Job, Limits], Outcome],
    limits: Limits,
    rule: Rule,
    tolerance: float,
) -> Grade:
    """Rule "all": 1 or 0, over at the first failure. Rule "share": the share of tests passed; over
    at the third timeout, and what was not run did not pass."""
    num_passed = num_run = num_timeouts = 0
    fault: Fault | None = None
    reason = ""
    for test in _shuffled(code, tests):
        ended = run(test.job(code), limits)
        if ended.end is End.broken:
            return Grade(None, None, ended.reason, num_passed, num_run, len(tests))
        num_run += 1
        found, why = _judged(test, ended, tolerance)
        if found is None:
            num_passed += 1
            continue
        if fault is None:
            fault, reason = found, f"{test.shown}: {why}"
        num_timeouts += found == "timeout"
        if rule == "all" or num_timeouts == MAX_TIMEOUTS:
            break
    reward = num_passed / len(tests) if rule == "share" else float(fault is None)
    return Grade(reward, fault, reason, num_passed, num_run, len(tests))


def _shuffled(code: str, tests: Sequence[Test]) -> list[Test]:
    """The same order for the same program, so that a verdict can be repeated."""
    seed = hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()
    order = list(tests)
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret: each test is a new process
    return order


def _judged(test: Test, ended: Outcome, tolerance: float) -> tuple[Fault | None, str]:
    if ended.end is not End.given:
        return _fault(ended.end), ended.reason
    try:
        passed = test.passes(ended.value, tolerance)
    except (ValueError, ArithmeticError, RecursionError) as error:  # an int of too many digits
        return "wrong", f"the value cannot be compared: {error}"
    return (None, "") if passed else ("wrong", f"gave {_shown(ended.value)}")


def _fault(end: End) -> Fault:
    return next(fault for fault in FAULTS if fault == end.value)


def _shown(value: object) -> str:
    """Short, also for what Python refuses to write: an int of many digits."""
    try:
        return repr(value)[:MAX_SHOWN_CHARACTERS]
    except ValueError as error:
        return f"a value that cannot be written: {error}"
