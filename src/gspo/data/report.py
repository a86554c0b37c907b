"""What was read, kept and left out, and why: printed before a run, recorded in its run.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Counted:
    """How often something was met, and where first."""

    what: str
    count: int
    first: str


@dataclass(slots=True)
class Tally:
    """Counts as things are met, in the order they were met first."""

    _counts: dict[str, Counted] = field(default_factory=dict[str, Counted])

    def add(self, what: str, example: str) -> None:
        """Once more; the example is kept if it is the first."""
        before = self._counts.get(what, Counted(what, 0, example))
        self._counts[what] = replace(before, count=before.count + 1)

    def counted(self) -> list[Counted]:
        """Everything met."""
        return list(self._counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport:
    """source: file, data set or task. rows: read; kept: left to train on or to evaluate with.
    dropped: rows left out, by reason. notes: rows that are kept and worth a look, by reason."""

    source: str
    rows: int
    kept: int
    dropped: Sequence[Counted] = ()
    notes: Sequence[Counted] = ()

    @property
    def num_dropped(self) -> int:
        """Rows left out."""
        return sum(entry.count for entry in self.dropped)

    def without(self, dropped: Iterable[Counted]) -> DataReport:
        """After more rows were left out."""
        more = list(dropped)
        kept = self.kept - sum(entry.count for entry in more)
        return replace(self, kept=kept, dropped=[*self.dropped, *more])

    def noting(self, notes: Iterable[Counted]) -> DataReport:
        """With more notes."""
        return replace(self, notes=[*self.notes, *notes])

    def lines(self) -> list[str]:
        """For people: one line, and one more a reason."""
        head = f"{self.source}: {self.rows:,} read, {self.kept:,} kept"
        if self.num_dropped:
            head += f", {self.num_dropped:,} dropped"
        entries = [("dropped", e) for e in self.dropped] + [("note", e) for e in self.notes]
        return [head, *(f"  {kind} {e.count:,}: {e.what}; first {e.first}" for kind, e in entries)]

    def record(self) -> dict[str, Any]:
        """For run.json."""
        return asdict(self)
