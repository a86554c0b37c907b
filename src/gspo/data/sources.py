"""Where rows come from: a file, a folder, or a name on the Hugging Face hub.

A file is read by our own readers. A folder and a hub name go through `datasets`: a folder that its
`save_to_disk` wrote, or one of data files as the hub holds them. No script of a data set is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gspo.data.files import Row, read_rows
from gspo.data.tables import table_rows
from gspo.errors import DataError, nearest

#: `name` or `owner/name`, as the hub allows them; what has a suffix of ours is a file.
HUB_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")
FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".arrow")
DEFAULT_SPLIT = "train"
ROWS_AT_ONCE = 1000


def source_rows(source: str, *, subset: str | None, split: str | None) -> Iterator[Row]:
    """Rows of a file, a folder or a hub data set.

    subset: the configuration of a hub data set that has several, as "main". split: of a folder or a
    hub data set; None is "train". A file has neither.
    """
    path = Path(source)
    if not path.is_dir() and (path.is_file() or not _is_hub_name(source)):
        for name, value in (("subset", subset), ("split", split)):
            if value is not None:
                raise DataError(
                    f"data.{name} is {value!r}, but {source} is a file, which has none; set it to null"
                )
        return read_rows(path)
    return _data_set_rows(source, subset, split or DEFAULT_SPLIT)


def _is_hub_name(source: str) -> bool:
    return not source.endswith(FILE_SUFFIXES) and HUB_NAME.fullmatch(source) is not None


def _data_set_rows(source: str, subset: str | None, split: str) -> Iterator[Row]:
    where = f"{source} {split}"
    data_set = _open(source, subset, split)
    if split != DEFAULT_SPLIT and not len(data_set):
        raise DataError(f"split {split!r} of {source} holds no row; look at the split's name")
    # Arrow, not Python: a column of pictures would be decoded row by row, for nothing.
    yield from table_rows(data_set.with_format("arrow").iter(batch_size=ROWS_AT_ONCE), where)


def _open(source: str, subset: str | None, split: str) -> Any:
    """One split, as a `datasets.Dataset`."""
    import datasets
    from datasets.exceptions import DatasetsError

    folder = Path(source)
    if any((folder / name).is_file() for name in ("state.json", "dataset_dict.json")):
        if subset is not None:
            raise DataError(f"data.subset is {subset!r}, but a saved folder has none: {source}")
        saved: Any = datasets.load_from_disk(source)
        if not isinstance(saved, datasets.DatasetDict):
            if split != DEFAULT_SPLIT:
                raise DataError(
                    f"data.split is {split!r}, but {source} holds one data set without splits; set it to null"
                )
            return saved
        return _split_of(saved, split, source)
    try:
        found: Any = datasets.load_dataset(source, subset)
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{source} is no file or folder here, and as a hub data set it does not load: {first}"
            if not folder.is_dir()
            else f"the folder {source} does not load as a data set: {first}"
        ) from error
    return _split_of(found, split, source)


def _split_of(splits: Any, split: str, source: str) -> Any:
    if split not in splits:
        raise DataError(f"{source} has no split {split!r}; {nearest(split, list(splits))}")
    return splits[split]
