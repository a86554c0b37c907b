"""The responses of a step: opened when somebody asks, a few kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gspo.dashboard.beneath import Beneath, state_of
from gspo.errors import DataError
from gspo.recorders.schema import RESPONSE_COLUMNS, arrow_schema

#: Read together, because they are asked for together.
SCALARS = (
    "group", "sample", "prompt_id", "source", "length", "reward", "advantage", "log_s",
    "minibatch", "cut_low", "cut_high", "finish", "skipped", "failure",
)  # fmt: skip
TEXTS = ("prompt", "text", "parts")
TOKENS = ("tokens", "engine_logp", "old_logp", "logp")

MAX_KEPT_BYTES = 2**26  # 64 MiB: the tokens of a step of 512 responses of 4,096
MAX_TABLE_BYTES = 2**30  # uncompressed; a small file can claim any size


class StepTables:
    """The tables of the steps opened last, of all runs together, in at most MAX_KEPT_BYTES."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, files: Beneath, name: str, step: int, columns: tuple[str, ...]
    ) -> pa.Table | None:
        """These columns of steps/NAME, checked; None where there is no such file. DataError for a
        damaged one."""
        file = files.open("steps", name)
        if file is None:
            return None
        with file, self._lock:
            key = (files.path, name, columns, state_of(file))
            table = self._kept.pop(key, None)
            if table is None:
                table = _read(file, f"steps/{name}", step, columns)
            self._kept[key] = table
            while sum(kept.nbytes for kept in self._kept.values()) > MAX_KEPT_BYTES:
                self._kept.popitem(last=False)
        return table


def _read(file: BinaryIO, name: str, step: int, columns: tuple[str, ...]) -> pa.Table:
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            if missing := [c for c in columns if c not in parquet.schema_arrow.names]:
                raise DataError(f"{name} is damaged: it has no column {missing[0]!r}")
            parts = range(parquet.num_row_groups)
            size = sum(parquet.metadata.row_group(k).total_byte_size for k in parts)
            if size > MAX_TABLE_BYTES:
                raise DataError(f"{name} is not opened: it has {size:,} bytes uncompressed")
            table = parquet.read(columns=list(columns), use_threads=False)
        table.validate(full=True)  # text is UTF-8, lists lie where they say
    except (pa.ArrowException, OSError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{name} is damaged ({first}): take another step") from error
    finally:
        pa.default_memory_pool().release_unused()
    _check(table, name, step, columns)
    return table


def _check(table: pa.Table, name: str, step: int, columns: tuple[str, ...]) -> None:
    schema = arrow_schema({column: RESPONSE_COLUMNS[column] for column in columns}, step)
    for wanted in schema:
        column = table.column(wanted.name)
        if column.type != wanted.type:
            raise DataError(
                f"{name} is damaged: column {wanted.name!r} is {column.type}, wanted {wanted.type}"
            )
        if column.null_count and not wanted.nullable:
            raise DataError(f"{name} is damaged: column {wanted.name!r} has nulls")
