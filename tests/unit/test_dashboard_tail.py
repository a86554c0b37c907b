"""A file that grows is read once, byte by byte; one that was replaced is read anew."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from gspo.dashboard import columns, tail
from gspo.dashboard.columns import MetricColumns
from gspo.dashboard.tail import LineTail, last_rows


class Reading:
    """A file, and the rows that a tail has taken from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.tail = LineTail(self.rows.clear, self.rows.append)

    def poll(self) -> list[int]:
        if not self.path.exists():
            self.tail.poll(None)
        else:
            with self.path.open("rb") as file:
                self.tail.poll(file)
        return [row["step"] for row in self.rows]

    def append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    return Reading(tmp_path / "a.jsonl")


def test_each_line_comes_once_and_half_a_line_waits(reading: Reading) -> None:
    assert reading.poll() == []
    reading.append('{"step": 1}\n{"st')
    assert reading.poll() == [1]
    assert reading.tail.reasons(growing=True) == []
    assert reading.tail.reasons(growing=False) == ["line 2: half-written last line (4 bytes)"]
    reading.append('ep": 2}\n')
    assert reading.poll() == [1, 2]
    assert reading.poll() == [1, 2]
    assert reading.tail.reasons(growing=False) == []


def test_only_what_is_new_is_read(reading: Reading) -> None:
    reading.append('{"step": 1}\n' * 1000)
    reading.poll()
    reading.append('{"step": 2}\n')
    read: list[int] = []

    class Counted(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            count = super().readinto(buffer)
            read.append(count or 0)
            return count or 0

    with io.BufferedReader(Counted(reading.path, "rb"), 1) as file:
        reading.tail.poll(file)
    assert reading.rows[-1] == {"step": 2}
    assert sum(read) == len('{"step": 2}\n')


def test_a_shorter_file_and_another_file_are_read_anew(reading: Reading) -> None:
    reading.append('{"step": 1}\n{"step": 2}\n')
    assert reading.poll() == [1, 2]
    reading.path.write_text('{"step": 5}\n')
    assert reading.poll() == [5]
    other = reading.path.with_name("b")
    other.write_text('{"step": 7}\n{"step": 8}\n{"step": 9}\n')
    other.replace(reading.path)
    assert reading.poll() == [7, 8, 9]
    reading.path.unlink()
    assert reading.poll() == []


def test_a_file_with_other_bytes_before_the_place_is_read_anew(reading: Reading) -> None:
    """The inode may be given out again, and the size may grow."""
    reading.append('{"step": 1}\n')
    assert reading.poll() == [1]
    with reading.path.open("r+") as file:
        file.write('{"step": 3}\n{"step": 4}\n')
    assert reading.poll() == [3, 4]


def test_bad_lines_are_named_and_counted(reading: Reading) -> None:
    reading.append('{"step": 1}\n\nnonsense\n[1]\n{"step": -1}\n{"step": 1e3}\n{"step": NaN}\n')
    reading.append('{"step": ' + "9" * 400 + "}\n" + '{"step": 2}\n')
    assert reading.poll() == [1, 2]
    reasons = reading.tail.reasons(growing=False)
    assert [reason.partition(":")[0] for reason in reasons] == [f"line {k}" for k in range(2, 9)]
    reading.append("x\n" * 100)
    reading.poll()
    assert reading.tail.reasons(growing=False)[-1] == "87 more lines like these"


def test_a_line_without_an_end_stops_the_reading(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(tail, "CHUNK_BYTES", 50)
    reading.append('{"step": 1}\n' + "x" * 200 + '\n{"step": 2}\n')
    assert reading.poll() == [1]
    assert reading.tail.reasons(growing=True) == [
        "line 2: more than 100 bytes: the file is read up to here"
    ]


def test_the_last_values_are_found_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    rows = [
        {"step": 1, "a": 1.0},
        {"step": 2, "a": 2.0, "pad": "x" * 200_000},
        {"step": 3, "a": None},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 4, "a"')
    with path.open("rb") as file:
        assert last_rows(file, ("step", "a")) == {"step": 3, "a": 2.0}
        assert last_rows(file, ("b",)) == {}
    path.write_text("")
    with path.open("rb") as file:
        assert last_rows(file, ("step",)) == {}


def test_the_end_of_a_long_file_is_all_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("".join(json.dumps({"step": k, "a": 0.5}) + "\n" for k in range(50_000)))
    lengths: list[int] = []

    def pread(descriptor: int, length: int, at: int) -> bytes:
        lengths.append(length)
        return os.pread(descriptor, length, at)

    monkeypatch.setattr(
        tail, "os", type("os", (), {"pread": staticmethod(pread), "fstat": os.fstat})
    )
    with path.open("rb") as file:
        assert last_rows(file, ("step", "a")) == {"step": 49_999, "a": 0.5}
    assert lengths == [tail.LAST_BYTES]


# --------------------------------------------------------------------------------------- columns


def columns_of(*rows: dict[str, Any]) -> MetricColumns:
    found = MetricColumns()
    for row in rows:
        found.add(row)
    return found


def column(found: MetricColumns, name: str) -> list[float | None]:
    return [None if math.isnan(x) else x for x in found.numbers[name]]


def test_rows_become_columns_and_lines_of_one_step_join() -> None:
    found = columns_of(
        {"step": 1, "a": 1.0, "time": "1970-01-01T00:00:10+00:00"},
        {"step": 3, "a": None, "b": 3, "time": "1970-01-01T00:00:30+00:00"},
        {"step": 3, "c": 30.0, "time": "1970-01-01T00:00:31+00:00", "nonfinite": ["a"]},
        {"step": 2, "a": 2.0, "time": "no time"},
    )
    assert found.steps == [1, 2, 3]
    assert column(found, "a") == [1.0, 2.0, None]
    assert column(found, "b") == [None, None, 3.0]
    assert column(found, "c") == [None, None, 30.0]
    assert [found.times[0], found.times[2]] == [10.0, 31.0]
    assert math.isnan(found.times[1])
    assert found.names == ["a", "b", "c"]
    assert (found.first("a"), found.last("a"), found.last("nothing")) == (1.0, 2.0, None)


@pytest.mark.parametrize("value", [None, True, "1", [1], math.nan, math.inf, 10**400])
def test_what_is_no_finite_number_is_missing(value: Any) -> None:
    assert column(columns_of({"step": 1, "a": value}), "a") == [None]


def test_histograms_keep_their_counts() -> None:
    edges = [-1.0, 0.0, 1.0]
    found = columns_of(
        {"step": 1, "h": None},
        {"step": 2, "h": {"edges": edges, "counts": [3, 4]}},
        {"step": 3, "h": None},
        {"step": 4, "h": {"edges": [0, 1, 2], "counts": [1, 1]}},
        {"step": 5, "h": {"edges": edges, "counts": [1]}},
        {"step": 6, "h": {"edges": edges, "counts": [0.5, 1]}},
        {"step": 7, "h": {"edges": edges, "counts": [2**70, 1]}},
        {"step": 8, "h": {"edges": "no", "counts": [1, 2]}},
        {"step": 9, "h": {"edges": edges, "counts": [5, 6]}},
    )
    counts = [None if c is None else list(c) for c in found.histograms["h"].counts]
    assert counts == [None, [3, 4], *[None] * 6, [5, 6]]
    assert found.histograms["h"].edges == edges
    assert "h" not in found.numbers
    assert len(found.problems) == 2


def test_a_file_that_would_fill_the_memory_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_CELLS", 6)
    found = columns_of({"step": 1, **dict.fromkeys("abcdefgh", 1)}, {"step": 2}, {"step": 3})
    assert (len(found.numbers), found.steps) == (6, [1])
    assert list(found.problems) == ["more than 6 numbers: the rest is left out"]
