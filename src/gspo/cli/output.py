"""What commands print: an aligned table for people, one JSON object for programs.

With `--json` standard output holds that object and nothing else: what a library or a user's
verifier prints while the command works goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from gspo.recorders.sanitize import visible

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")
]

ABSENT = "-"
MAX_CELL_CHARACTERS = 80


def print_json(report: Mapping[str, Any]) -> None:
    """One strict JSON object on one line. A number that is not finite becomes null."""
    print(json.dumps(_strict(report), allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their longest cell, numbers to the right; None is a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [_is_numbers(column) for column in zip(*rows, strict=True)] or [False] * len(header)
    for line in (header, *cells):
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(padded).rstrip())


@contextlib.contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Send what is written to standard output to standard error, child processes included."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _is_numbers(column: Sequence[Any]) -> bool:
    given = [value for value in column if value is not None]
    return bool(given) and all(isinstance(value, int | float) for value in given)


def _cell(value: Any) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, float):
        return f"{value:.4g}"
    return visible(str(value), max_chars=MAX_CELL_CHARACTERS, one_line=True)


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    return value
