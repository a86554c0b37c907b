"""Every response of a step, without its text."""

from __future__ import annotations

from typing import Any

from gspo.dashboard.folder import RunFolderView
from gspo.dashboard.plain import finite_list, short
from gspo.dashboard.tables import SCALARS

NUMBERS = ("reward", "advantage", "log_s")
WORDS = ("prompt_id", "source", "finish", "skipped", "failure")


def units(run: RunFolderView, step: int) -> dict[str, list[Any]]:
    """Columns in file order; long texts are cut. Raises NotFoundError, and DataError for a damaged
    file."""
    table = run.table(step, SCALARS)
    columns: dict[str, list[Any]] = {"row": list(range(table.num_rows))}
    for name in SCALARS:
        values = table.column(name).to_pylist()
        if name in NUMBERS:
            values = finite_list(values)
        elif name in WORDS:
            values = [short(value) for value in values]
        columns[name] = values
    return columns
