"""Rows of JSONL, JSON and CSV files, as plain Python values, and the choice of a reader by suffix.

JSON has a reader of our own: values stay what they are in the file (no column type is guessed
from the first rows), and what is wrong is named by file and line.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gspo.errors import DataError

MAX_FIELD_CHARACTERS = (
    2**31 - 1
)  # of a CSV field; Python's own 131,072 is less than a long document


@dataclass(frozen=True, slots=True)
class Row:
    """number: counted from 1, blank lines left out. where: file and line (or row), for messages."""

    number: int
    where: str
    values: dict[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a .jsonl, .json, .csv, .parquet or .arrow file."""
    from gspo.data.tables import read_arrow, read_parquet

    readers = {
        ".jsonl": read_jsonl,
        ".json": read_json,
        ".csv": read_csv,
        ".parquet": read_parquet,
        ".arrow": read_arrow,
    }
    if path.suffix not in readers:
        raise DataError(f"{path} ends in {path.suffix!r}; wanted one of {', '.join(readers)}")
    if not path.is_file():
        raise DataError(f"{path} is not there, or is no file; the path is read from {Path.cwd()}")
    return readers[path.suffix](path)


def read_jsonl(path: Path) -> Iterator[Row]:
    """One JSON object a line. UTF-8, with or without byte-order mark; lines end in LF or CRLF, the
    last one may end without; blank lines are passed over.

    Lines are split at LF alone: U+2028 and the like are allowed inside JSON text.
    """
    number = 0
    with path.open("rb") as file:
        for line_number, line in enumerate(file, start=1):
            where = f"{path}:{line_number}"
            text = _utf8(line, where, may_have_mark=line_number == 1)
            if text.strip():
                number += 1
                value = _strict_json(text, where)
                if not isinstance(value, dict):
                    raise DataError(
                        f"{where}: the line holds a {type(value).__name__}; wanted a JSON object {{…}}"
                    )
                yield Row(number, where, value)


def read_json(path: Path) -> Iterator[Row]:
    """A list of objects. A file that does not begin with "[" is read as JSONL, which many name
    .json."""
    with path.open("rb") as file:
        start = file.read(3).removeprefix(b"\xef\xbb\xbf") + file.read(1 << 16)
    if not start.lstrip().startswith(b"["):
        yield from read_jsonl(path)
        return
    text = _utf8(path.read_bytes(), str(path), may_have_mark=True)
    for number, value in enumerate(_strict_json(text, str(path)), start=1):
        where = f"{path} row {number}"
        if not isinstance(value, dict):
            raise DataError(
                f"{where}: the list holds a {type(value).__name__}; wanted JSON objects {{…}}"
            )
        yield Row(number, where, value)


def read_csv(path: Path) -> Iterator[Row]:
    """Rows of a CSV file with a header. Every value is text, an empty field is a missing column."""
    text = _utf8(path.read_bytes(), str(path), may_have_mark=True)
    for number, values in enumerate(_csv_rows(text, path), start=1):
        where = f"{path} row {number}"
        if None in values or None in values.values():
            raise DataError(f"{where}: the number of fields differs from the header's: {values}")
        yield Row(number, where, {str(name): value or None for name, value in values.items()})


def _csv_rows(text: str, path: Path) -> list[dict[str | None, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)  # an open quote is an error
    try:
        with _long_csv_fields():
            header = reader.fieldnames or []
            if len(set(header)) < len(header):
                raise DataError(f"{path}: the header names a column twice: {', '.join(header)}")
            return [{**row} for row in reader]
    except csv.Error as error:
        raise DataError(f"{path} line {reader.line_num}: {error}") from error


@contextmanager
def _long_csv_fields() -> Iterator[None]:
    """The limit belongs to the whole process, so it is put back."""
    before = csv.field_size_limit(MAX_FIELD_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _utf8(raw: bytes, where: str, *, may_have_mark: bool) -> str:
    try:
        return raw.decode("utf-8-sig" if may_have_mark else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: byte 0x{raw[error.start]:02x} at place {error.start} is not UTF-8; save the file as UTF-8 text, uncompressed"
        ) from error


def _strict_json(text: str, where: str) -> Any:
    """Strict JSON: no NaN, no number beyond float64, no half of a surrogate pair."""
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_once_each,
        )
        if "\\u" in text:  # half of a surrogate pair can be written, but no tokenizer takes it
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON: {error}") from error
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return dict(pairs)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text} is beyond what a float64 holds")
    return value
