"""docs/metrics.md as data: every name that is recorded has its definition there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from gspo.errors import DataError

PAGE = "metrics.md"
#: A wheel carries the page beside this file; in the source tree it is one of the docs.
PLACES = (Path(__file__).with_name(PAGE), Path(__file__).parents[3] / "docs" / PAGE)
FIELDS = ("formula", "unit", "weighting", "good", "pitfalls")
#: What a brace in a name stands for.
FAMILIES = {
    "minibatch": r"[1-9]\d*",
    "bucket": r"1|[1-9]\d*-[1-9]\d*",
    "k": r"[1-9]\d*",
    "part": r".+",
}
SPECIAL = re.compile(r"([.*+?^$()|\[\]\\])")


@cache
def definitions() -> dict[str, Any]:
    """{"metrics": [...]}, in the page's order. pattern: a regular expression, for Python and for
    JavaScript, of all names that the entry defines. DataError where the page is missing."""
    place = next((place for place in PLACES if place.is_file()), None)
    if place is None:
        raise DataError(f"{PAGE}, which defines every metric, is missing: install gspo anew")
    return {"metrics": parse(place.read_text(encoding="utf-8"))}


def parse(page: str) -> list[dict[str, Any]]:
    """The entries of the page: a heading of names in backticks, then `- field: text`."""
    entries: list[dict[str, Any]] = []
    for section in re.split(r"^### ", page, flags=re.M)[1:]:
        heading, _, body = re.split(r"^## ", section, flags=re.M)[0].partition("\n")
        names = re.findall(r"`([^`]+)`", heading)
        said = dict(re.findall(r"^- (\w+): *(.*\S)", body, flags=re.M))
        entries.append(
            {"names": names, "pattern": _pattern(names)}
            | {field: said.get(field, "") for field in FIELDS}
        )
    return entries


def _pattern(names: list[str]) -> str:
    return "^(?:" + "|".join(map(_family, names)) + ")$"


def _family(name: str) -> str:
    parts = re.split(r"\{(\w+)\}", name)
    return "".join(
        f"(?:{FAMILIES[part]})" if number % 2 else SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    )
