"""The columns of a row as gspo names them: `prompt`, `answer`, `id`, and the verifier's extras.

    our own, and TRL's    prompt (text or messages), answer, any other columns
    verl's                prompt (messages), reward_model.ground_truth, data_source, extra_info

A map of columns, our name -> theirs, says where else one is; theirs may be a path, as
`reward_model.ground_truth`. A column that is mapped to another name leaves its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gspo.data.files import Row
from gspo.errors import DataError

VERL_ANSWER = "reward_model.ground_truth"


class RowError(DataError):
    """One row cannot be used. kind: what such rows are counted under."""

    def __init__(self, kind: str, row: Row, text: str) -> None:
        super().__init__(f"{row.where}: {text}")
        self.kind = kind


def no_column(row: Row, name: str, mapped: str = "") -> RowError:
    """A column is missing, or null."""
    has = ", ".join(sorted(row.values)) or "none"
    return RowError(f"no column {name!r}", row, f"no column {name!r}{mapped}; the row has {has}")


#: our name -> theirs. None, for `answer` alone: there are none.
ColumnMap = Mapping[str, str | None]


def named_columns(row: Row, columns: ColumnMap) -> dict[str, Any]:
    """Values under our names; null counts as missing. A column that the map names must be there.

    Without a map, an answer is the column `answer`, else verl's `reward_model.ground_truth`.
    """
    given = {name: value for name, value in row.values.items() if value is not None}
    renamed = {
        ours: _at(given, theirs, ours, row)
        for ours, theirs in columns.items()
        if theirs is not None
    }
    moved = {theirs for ours, theirs in columns.items() if theirs != ours}
    rest = {name: value for name, value in given.items() if name not in moved}
    for ours, theirs in columns.items():
        if theirs not in (None, ours) and ours in rest:
            raise RowError(
                f"data.columns takes {theirs!r} as {ours!r}",
                row,
                f"data.columns takes {theirs!r} as {ours!r}, and the row has a column {ours!r} of its own; rename that, as data.columns.old_{ours}={ours}",
            )
    values = {**rest, **renamed}
    if "answer" in columns:
        return values
    found = given.get("answer", _inside(given, VERL_ANSWER))
    return values if found is None else {**values, "answer": found}


def _at(values: Mapping[str, Any], path: str, ours: str, row: Row) -> Any:
    found = values[path] if path in values else _inside(values, path)
    if found is None:
        raise no_column(row, path, "" if path == ours else f" (data.columns.{ours})")
    return found


def _inside(values: Mapping[str, Any], path: str) -> Any:
    """What is at a path of keys, or None."""
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
