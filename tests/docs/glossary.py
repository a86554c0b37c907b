"""Reads docs/metrics.md: which metrics it defines, and what each entry says.

An entry is a heading of names in backticks and a list of fields:

    ### `clip/cut_low`, `clip/cut_low_mb{minibatch}`
    - formula: ...

Import it in any test as `from tests.docs.glossary import documented`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
FIELDS = ("formula", "unit", "weighting", "good", "pitfalls")
#: What a brace in a name stands for.
PLACEHOLDERS = {
    "minibatch": r"[1-9]\d*",
    "bucket": r"1|[1-9]\d*-[1-9]\d*",
    "k": r"[1-9]\d*",
    "part": r".+",
}


@dataclass(frozen=True)
class Entry:
    """names: as in the heading, braces included. fields: formula, unit, ... -> text."""

    names: tuple[str, ...]
    fields: dict[str, str]


def parse(page: str) -> list[Entry]:
    """Entries of a glossary page, in order."""
    entries: list[Entry] = []
    for section in re.split(r"^### ", page, flags=re.M)[1:]:
        heading, _, body = re.split(r"^## ", section, flags=re.M)[0].partition("\n")
        pairs = re.findall(r"^- (\w+): *(.*\S)", body, flags=re.M)
        entries.append(Entry(tuple(re.findall(r"`([^`]+)`", heading)), dict(pairs)))
    return entries


def matcher(name: str) -> re.Pattern[str]:
    """Pattern of a name as it stands in a heading."""
    parts = re.split(r"\{(\w+)\}", name)
    return re.compile(
        "".join(f"(?:{PLACEHOLDERS[p]})" if i % 2 else re.escape(p) for i, p in enumerate(parts))
    )


@cache
def matchers() -> tuple[re.Pattern[str], ...]:
    """One pattern for each name of the page."""
    entries = parse(PAGE.read_text(encoding="utf-8"))
    return tuple(matcher(name) for entry in entries for name in entry.names)


def documented(name: str) -> bool:
    """Whether docs/metrics.md defines this metric, by itself or as a member of a family."""
    return any(pattern.fullmatch(name) for pattern in matchers())
