"""Rows of Parquet and Arrow, as the Python values that JSONL would give: lists, not arrays, and no
key that the table filled in with null.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gspo.data.files import Row
from gspo.errors import DataError

#: What pyarrow raises for bytes that are not what their type says; text is checked when it is read.
BROKEN = (OSError, pa.ArrowInvalid, UnicodeDecodeError)


def read_parquet(path: Path) -> Iterator[Row]:
    """Rows of a Parquet file."""
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is no Parquet file: {error}") from error
    with file:
        yield from table_rows(file.iter_batches(), str(path))


def read_arrow(path: Path) -> Iterator[Row]:
    """Rows of an Arrow file: the stream that `datasets` writes, or the file form (Feather 2)."""
    with pa.memory_map(str(path)) as source:
        try:
            batches: Iterable[pa.RecordBatch] = pa.ipc.open_stream(source)
        except pa.ArrowInvalid:
            try:
                file = pa.ipc.open_file(source)
            except pa.ArrowInvalid as error:
                raise DataError(f"{path} is no Arrow file: {error}") from error
            batches = (file.get_batch(k) for k in range(file.num_record_batches))
        yield from table_rows(batches, str(path))


def table_rows(tables: Iterable[pa.Table | pa.RecordBatch], where: str) -> Iterator[Row]:
    """Rows of parts of a table, counted through."""
    number = 0
    try:
        for table in tables:
            for values in table.to_pylist(maps_as_pydicts="strict"):
                number += 1
                yield Row(number, f"{where} row {number}", plain(values))
    except BROKEN as error:
        raise DataError(f"{where} cannot be read after row {number}: {error}") from error


def plain(value: Any) -> Any:
    """Lists for arrays and tuples, Python's numbers for numpy's, ISO text for times, text for exact
    decimals. Keys of nothing are left out: null, and NaN, which is how pandas writes null.

    >>> plain({"tests": np.array([1, 2]), "hint": None, "day": datetime.date(2024, 1, 1)})
    {'tests': [1, 2], 'day': '2024-01-01'}
    """
    if isinstance(value, dict):
        pairs = ((str(key), plain(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not None}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, float) and math.isnan(value):
        return None
    return str(value) if isinstance(value, decimal.Decimal) else value
