"""What one test is: the job it asks of a program, and the expected value, which stays here."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gspo.verifiers.code_compare import OutputRule, as_json, same_output, same_value
from gspo.verifiers.sandbox.job import Call, Expression, Job, Program

Relation = Literal["==", "<", "<=", ">", ">=", "in", "contains", "near", "true"]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class AssertTest:
    """An assert line: an expression for the program, a relation, a value it never sees.

    expected: for "near" a triple (value, relative, absolute distance); for "true" not used.
    negated: the relation must not hold, which a value of no fitting type does not fulfil.
    """

    expression: str
    relation: Relation
    expected: Any = None
    negated: bool = False
    setup: str = ""
    candidate: str | None = None

    @property
    def shown(self) -> str:
        """For a reason."""
        return self.expression

    def job(self, code: str) -> Job:
        """The expression alone."""
        return Expression(code, self.expression, self.setup, self.candidate)

    def passes(self, value: Any, tolerance: float) -> bool:
        """Whether the relation holds for a plain value."""
        held = self._holds(value, tolerance)
        return held is not None and held is not self.negated

    def _holds(self, value: Any, tolerance: float) -> bool | None:
        """None where the value cannot be compared so."""
        if self.relation == "==":
            return same_value(value, self.expected, tolerance)
        if self.relation == "true":
            return bool(value)
        if self.relation == "in":
            return _contains(self.expected, value, tolerance)
        if self.relation == "contains":
            return _contains(value, self.expected, tolerance)
        try:
            if self.relation == "near":
                expected, relative, absolute = self.expected
                if isinstance(value, bool):
                    return None
                return math.isclose(value, expected, rel_tol=relative, abs_tol=absolute)
            return bool(_ORDER[self.relation](value, self.expected))
        except (TypeError, OverflowError):
            return None


def _contains(container: Any, entry: Any, tolerance: float) -> bool | None:
    """A part of a text, or an entry of a container; None for what contains nothing."""
    if isinstance(container, str):
        return isinstance(entry, str) and entry in container
    if not isinstance(container, list | tuple | set | frozenset | dict):
        return None
    return any(same_value(one, entry, tolerance) for one in container)


@dataclass(frozen=True, slots=True)
class CallTest:
    """A function by name, on these arguments; value and expected are compared as JSON keeps them.

    unwrap: the data wrap every expected value in a list, so its content is right too.
    """

    name: str
    arguments: list[Any]
    expected: Any
    unwrap: bool = False

    @property
    def shown(self) -> str:
        """For a reason."""
        return f"{self.name}({', '.join(repr(a)[:40] for a in self.arguments)})"

    def job(self, code: str) -> Job:
        """The name and the arguments alone."""
        return Call(code, self.name, self.arguments)

    def passes(self, value: Any, tolerance: float) -> bool:
        """Whether a plain value is the expected one."""
        found = as_json(value)
        right = [self.expected, *self.expected] if self.unwrap else [self.expected]
        return any(same_value(found, one, tolerance) for one in right)


@dataclass(frozen=True, slots=True)
class OutputTest:
    """A script's standard input and the standard output it should give."""

    input: str
    expected: str
    rule: OutputRule

    @property
    def shown(self) -> str:
        """For a reason."""
        return f"input {self.input[:60]!r}"

    def job(self, code: str) -> Job:
        """The input alone."""
        return Program(code, self.input.encode("utf-8", "surrogateescape"))

    def passes(self, value: Any, tolerance: float) -> bool:
        """Whether a stdout is the expected one."""
        return same_output(value, self.expected, self.rule, tolerance)


Test = AssertTest | CallTest | OutputTest
