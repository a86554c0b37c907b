"""What is asked of a job, within which limits, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gspo.verifiers.sandbox.values import encode


class End(StrEnum):
    """How a job ended. All but the last are the program's doing, and a reward is due for each."""

    given = "given"  #: it sent a plain value, or its script ran to the end
    wrong = "wrong"  #: it ended without a value, or sent one that is not plain
    timeout = "timeout"
    crash = "crash"
    resource = "resource"
    policy = "policy"  #: it tried what the sandbox forbids
    broken = "broken"  #: the machine or the sandbox failed: no reward


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one job.

    cpu_s: CPU time of all its threads. wall_s: also ends a program that sleeps. memory_mib: address
    space, about 60 of it the interpreter's. max_reply_bytes, max_stdout_bytes: what is read.
    """

    cpu_s: float
    wall_s: float
    memory_mib: int
    max_reply_bytes: int = 4 * 2**20
    max_stdout_bytes: int = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Program:
    """A script to be run with this standard input."""

    code: str
    input: bytes

    @property
    def stdin(self) -> bytes | None:
        """Given over a pipe; stdout is read from another."""
        return self.input

    def content(self) -> dict[str, Any]:
        """The job as the runner reads it."""
        return {"mode": "program", "code": self.code}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over what the code defines. setup runs first; candidate: another name for the
    function of this name, for tests that call it so."""

    code: str
    expression: str
    setup: str = ""
    candidate: str | None = None
    stdin: None = field(default=None, init=False)

    def content(self) -> dict[str, Any]:
        """The job as the runner reads it."""
        return {
            "mode": "expression",
            "code": self.code,
            "setup": self.setup,
            "expression": self.expression,
            "candidate": self.candidate,
        }


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the code, or a method of its class Solution, on plain arguments."""

    code: str
    name: str
    arguments: list[Any]
    stdin: None = field(default=None, init=False)

    def content(self) -> dict[str, Any]:
        """The job as the runner reads it."""
        return {
            "mode": "call",
            "code": self.code,
            "name": self.name,
            "arguments": encode(self.arguments),
        }


Job = Program | Expression | Call


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended, its value (a Program's is its stdout, as bytes), and why there is none.

    The reason may quote the program, which may say what it likes.
    """

    end: End
    value: Any = None
    reason: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
