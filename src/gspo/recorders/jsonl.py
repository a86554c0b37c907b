"""JSON lines that every strict reader accepts, appended one by one and read past damage."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from gspo.errors import GspoError
from gspo.recorders.durable import append, write_text
from gspo.recorders.sanitize import well_formed

NONFINITE = "nonfinite"
LARGEST_INT = 2**63 - 1  # what DuckDB and Polars hold in an integer column


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same as strict JSON types: tensors and arrays as numbers and lists, NaN and infinity as
    None with the names that held them under "nonfinite".

    >>> plain({"loss": float("nan"), "clip": (3e-4, 4e-4)})
    {'loss': None, 'clip': [0.0003, 0.0004], 'nonfinite': ['loss']}
    """
    nonfinite: dict[str, None] = {}
    rows = {
        well_formed(str(name)): _plain(value, name, nonfinite) for name, value in fields.items()
    }
    return {**rows, NONFINITE: list(nonfinite)} if nonfinite else rows


def _plain(value: Any, name: str, nonfinite: dict[str, None]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | Path):
        return well_formed(str(value))
    if isinstance(value, int | float):
        return _number(value, name, nonfinite)
    if isinstance(value, Mapping):
        return {well_formed(str(k)): _plain(v, name, nonfinite) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name, nonfinite) for item in value]
    if hasattr(value, "tolist"):  # tensors, arrays and their scalars
        return _plain(value.tolist(), name, nonfinite)
    raise GspoError(
        f"{name} is a {type(value).__name__}; a record holds numbers, text, lists and mappings: "
        "convert it first"
    )


def _number(value: float | int, name: str, nonfinite: dict[str, None]) -> float | int | None:
    if isinstance(value, int) and abs(value) <= LARGEST_INT:
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number):
        return number
    nonfinite[str(name)] = None
    return None


def line(fields: Mapping[str, Any]) -> str:
    """One line of strict JSON, with its newline."""
    return json.dumps(plain(fields), allow_nan=False, separators=(", ", ": ")) + "\n"


class JsonLines:
    """A file that only grows; each object is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, fields: Mapping[str, Any]) -> None:
        """Add one object."""
        append(self._file, self._path, line(fields).encode("ascii"))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The objects of a file in order, and one reason for each line that is none.

    A missing file has no objects. What is returned was complete: an object cut short by a kill
    never parses.
    """
    if not path.exists():
        return [], []
    rows: list[dict[str, Any]] = []
    reasons: list[str] = []
    if not path.is_file():
        return [], ["is no file"]
    lines = path.read_bytes().split(b"\n")
    for number, raw in enumerate(lines, start=1):
        if not raw and number == len(lines):  # what follows the last newline
            continue
        row = parse(raw)
        if row is None:
            half = "half-written last line" if number == len(lines) else "not a JSON object"
            reasons.append(f"line {number}: {half} ({len(raw)} bytes)")
        else:
            rows.append(row)
    return rows, reasons


def parse(raw: bytes) -> dict[str, Any] | None:
    """One line's object with a whole-number step; None for anything else."""
    try:
        row = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and type(row.get("step")) is int else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def truncate_after(path: Path, step: int) -> int:
    """Keep the readable objects up to `step`, in one atomic replacement; returns how many went."""
    rows, reasons = read(path)
    kept = [row for row in rows if row["step"] <= step]
    num_removed = len(rows) - len(kept) + len(reasons)
    if path.exists():
        write_text(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in kept))
    return num_removed


def last_values(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """The last value of each name that is not None. Reads from the end: a long file costs little."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    last: dict[str, Any] = {}
    for raw in reversed(lines):
        row = parse(raw) or {}
        for name in names:
            if name not in last and row.get(name) is not None:
                last[name] = row[name]
        if len(last) == len(names):
            break
    return last
