"""The dashboard's definitions are those of docs/metrics.md, from the source tree and from a wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from gspo.dashboard import definitions
from gspo.errors import DataError
from tests.docs import glossary

ROOT = Path(__file__).parents[2]


def test_they_are_what_the_glossary_test_reads() -> None:
    found = definitions.definitions()["metrics"]
    entries = glossary.parse(glossary.PAGE.read_text(encoding="utf-8"))
    assert [tuple(entry["names"]) for entry in found] == [entry.names for entry in entries]
    for ours, theirs in zip(found, entries, strict=True):
        assert {field: ours[field] for field in definitions.FIELDS} == theirs.fields


def test_a_pattern_takes_the_members_of_its_entry_only() -> None:
    found = definitions.definitions()["metrics"]

    def entries(name: str) -> list[list[str]]:
        return [entry["names"] for entry in found if re.fullmatch(entry["pattern"], name)]

    for name in ("clip/cut_share", "clip/cut_low_mb12", "log_s/std/len_8-15", "eval/pass@8"):
        assert len(entries(name)) == 1, name
    assert [n for n in entries("clip/cut_share_mb2")[0] if "share" in n] == [
        "clip/cut_share_mb{minibatch}"
    ]
    for name in (
        "clip/cut_share_mb0",
        "clip/cut_share/len_x",
        "xclip/cut_share",
        "clip/cut_share\n",
    ):
        assert entries(name) == [], name


def test_special_characters_of_a_name_are_plain() -> None:
    (entry,) = definitions.parse("### `a.b+(c)`, `d{k}`\n- formula: x\n")
    assert re.fullmatch(entry["pattern"], "a.b+(c)")
    assert re.fullmatch(entry["pattern"], "d7")
    assert not re.fullmatch(entry["pattern"], "aXb+(c)")
    assert (entry["formula"], entry["unit"]) == ("x", "")


def test_a_wheel_carries_the_page_where_it_is_looked_for() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    (place,) = build["targets"]["wheel"]["force-include"].items()
    assert place == ("docs/metrics.md", "gspo/dashboard/metrics.md")
    first, second = definitions.PLACES
    assert first == Path(definitions.__file__).parent / "metrics.md"
    assert second == ROOT / "docs" / "metrics.md"


def test_a_missing_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "PLACES", (ROOT / "nothing.md",))
    definitions.definitions.cache_clear()
    with pytest.raises(DataError, match="install gspo anew"):
        definitions.definitions()
