"""What the kit found, as a table and as values."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passes", "falls in", "note", "not judged"]

WIDTH = 100
INDENT = "    "


@dataclass(frozen=True)
class Verdict:
    """One trap and this loss. detail: what came, or why it was not judged; empty where it passes."""

    trap: str
    checks: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Finding:
    """A trap that the loss falls into, or, as a note, something its caller has to know.

    recognised: what this formula is called elsewhere, where it is known.
    """

    trap: str
    expected: str
    got: str
    why: str
    advice: str
    recognised: str | None = None

    def __str__(self) -> str:
        lines = [
            ("expected", self.expected),
            ("came", self.got),
            ("this is", self.recognised),
            ("why", self.why),
            ("do", self.advice),
        ]
        return "\n".join([self.trap, *(_paragraph(name, text) for name, text in lines if text)])


@dataclass(frozen=True)
class Report:
    """objective: name and settings it was compared with. verdicts: one a trap, in the order they
    were tried. findings: what it falls into. notes: what speaks for no fault of its own."""

    objective: str
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """It falls into none of the traps."""
        return not self.findings

    @property
    def traps(self) -> list[str]:
        """Names of the traps it falls into."""
        return [finding.trap for finding in self.findings]

    def assert_ok(self) -> None:
        """Raises AssertionError with the whole report unless it passed."""
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        unjudged = sum(verdict.outcome == "not judged" for verdict in self.verdicts)
        tried = len(self.verdicts) - unjudged
        head = f"against {self.objective}: falls into {len(self.findings)} of {tried} traps"
        if unjudged:
            head += f", {unjudged} not judged"
        names = max(len(verdict.trap) for verdict in self.verdicts)
        table = [
            textwrap.shorten(
                verdict.detail or verdict.checks, WIDTH - names - 16, placeholder=" ..."
            )
            for verdict in self.verdicts
        ]
        table = [
            f"  {verdict.outcome:<10}  {verdict.trap:<{names}}  {text}"
            for verdict, text in zip(self.verdicts, table, strict=True)
        ]
        faults = [str(finding) for finding in self.findings]
        notes = [f"note: {note}" for note in self.notes]
        return "\n\n".join([head, "\n".join(table), *faults, *notes])


def _paragraph(name: str, text: str) -> str:
    first = f"{INDENT}{name:<9} "
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
