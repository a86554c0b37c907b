"""What became of each setting on its way from one trainer to another: taken, changed, not carried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Taken:
    """A setting that means the same on both sides. to: its names and values on the other side,
    empty where both are off, or words. place: where it stood, or whose default it is; none in a recipe. note: what to know."""

    key: str
    value: Any
    to: Mapping[str, Any] | str
    place: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting that became something else. to: names and values on the other side, in words where
    it became no setting. place: as of Taken; none for a difference that is no one setting's."""

    key: str
    value: Any
    to: Mapping[str, Any] | str
    why: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class NotCarried:
    """A setting without counterpart, or with a value that has none."""

    key: str
    value: Any
    why: str


@dataclass(slots=True)
class Report:
    """Three lists, in the order in which the settings were looked at."""

    taken: list[Taken] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    not_carried: list[NotCarried] = field(default_factory=list)

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """The three lists under their names."""
        return {
            "taken": [
                {"key": t.key, "value": t.value, "to": t.to, "place": t.place, "note": t.note}
                for t in self.taken
            ],
            "changed": [
                {"key": c.key, "from": c.value, "to": c.to, "why": c.why, "place": c.place}
                for c in self.changed
            ],
            "not_carried": [
                {"key": n.key, "value": n.value, "why": n.why} for n in self.not_carried
            ],
        }

    def lines(self) -> Iterator[str]:
        """The report for people. What is not carried for one reason stands together."""
        yield f"taken ({len(self.taken)})"
        for taken in self.taken:
            place = f"  [{taken.place}]" if taken.place else ""
            yield f"  {taken.key} {_shown(taken.value)} -> {_settings(taken.to)}{place}"
            if taken.note:
                yield f"      {taken.note}"
        yield f"changed ({len(self.changed)})"
        for changed in self.changed:
            place = f"  [{changed.place}]" if changed.place else ""
            yield f"  {changed.key} {_shown(changed.value)} -> {_settings(changed.to)}{place}"
            yield f"      {changed.why}"
        yield f"not carried over ({len(self.not_carried)})"
        reasons: dict[str, list[str]] = {}
        for left in self.not_carried:
            reasons.setdefault(left.why, []).append(f"{left.key} {_shown(left.value)}")
        for why, keys in reasons.items():
            yield f"  {', '.join(keys)}"
            yield f"      {why}"


def _settings(to: Mapping[str, Any] | str) -> str:
    if isinstance(to, str):
        return to
    return ", ".join(f"{name} {_shown(value)}" for name, value in to.items()) or "off here too"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(inner)}' for key, inner in value.items())}}}"
    return str(value)
