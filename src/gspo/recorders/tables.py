"""Parquet files of a run folder: written whole, read with their checksums."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gspo.errors import DataError, nearest
from gspo.recorders.durable import replacing
from gspo.recorders.sanitize import well_formed
from gspo.recorders.schema import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

STEP_NAME = re.compile(r"(step-)?(?P<step>[0-9]{6,})(\.parquet)?")
MAGIC = b"PAR1"  # first and last bytes of every whole Parquet file
COMPRESSION_LEVEL = 3  # zstd: log-probs hardly shrink at any level, text does at this one


def step_file(folder: Path, step: int) -> Path:
    """steps/000012.parquet."""
    return folder / f"{step:06d}.parquet"


def step_of(path: Path) -> int | None:
    """12 for 000012.parquet and for step-000012; None for names that are no step."""
    match = STEP_NAME.fullmatch(path.name)
    return int(match["step"]) if match else None


def write_table(
    path: Path, step: int, columns: Mapping[str, tuple[str, bool]], rows: Sequence[Any]
) -> None:
    """One row an object, one column an attribute of it; the file is whole or absent."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(columns, step)
    arrays = [
        pa.array([_cell(getattr(row, field.name)) for row in rows], field.type) for field in schema
    ]
    table = pa.Table.from_arrays(arrays, schema=schema)
    texts = [field.name for field in schema if field.type == pa.string()]
    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            # Prompts repeat, log-probs do not. The stubs know only the form for all columns.
            use_dictionary=texts,  # pyright: ignore[reportArgumentType]
            write_page_checksum=True,
        )


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return [(well_formed(str(key)), number) for key, number in value.items()]
    return value


def is_whole(path: Path) -> bool:
    """Both ends of the file are there: a cheap test that a half-written file fails."""
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
            size = file.seek(0, 2)
            file.seek(max(size - len(MAGIC), 0))
            return head == file.read() == MAGIC
    except OSError:  # a folder, or a link to nothing
        return False


def read_table(path: Path, columns: Sequence[str] | None) -> pa.Table | str:
    """The table, or why it cannot be read. Raises DataError for a column the file does not have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            known = file.schema_arrow.names
            if unknown := [name for name in columns or () if name not in known]:
                raise DataError(
                    f"{path} has no column {unknown[0]!r}; {nearest(unknown[0], known)}"
                )
            return file.read(columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        return str(error).splitlines()[0]
