"""What weight files hold, by their headers: a safetensors file begins with a list of its tensors."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gspo.errors import DataError

INDEX = "model.safetensors.index.json"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # the format's own limit


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """num_parameters: values in all tensors. dtypes: values by type, as BF16. missing: files that
    the folder's index names and that are not there."""

    num_parameters: int
    num_files: int
    dtypes: dict[str, int]
    missing: tuple[str, ...] = ()


def weight_files(model: Path) -> WeightFiles | None:
    """Of a model folder; None where it holds no safetensors, as beside a config.json alone. Where
    there is an index, the files that it names count, and no others.

    Raises DataError for a file whose header is none, or an index that is none.
    """
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else []
    if not files:
        return None
    named = _indexed(model / INDEX)
    if named:
        files = [model / name for name in sorted(named) if (model / name).is_file()]
    counts: Counter[str] = Counter()
    for file in files:
        counts += _values(file)
    missing = sorted(named - {file.name for file in files})
    return WeightFiles(counts.total(), len(files), dict(counts), tuple(missing))


def _indexed(index: Path) -> set[str]:
    """Names of the files that an index spreads the tensors over; empty without one."""
    if not index.is_file():
        return set()
    try:
        return {
            Path(str(name)).name for name in json.loads(index.read_text())["weight_map"].values()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{index} is no index of weight files: {error}; copy it again") from error


def _values(file: Path) -> Counter[str]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(LENGTH_BYTES), "little")
        text = opened.read(length) if length <= MAX_HEADER_BYTES else b""
    try:
        tensors = json.loads(text)
        counts: Counter[str] = Counter()
        for name, about in tensors.items():
            if name != "__metadata__":
                counts[about["dtype"]] += math.prod(about["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is no whole safetensors file: {error}; copy it again") from error
    return counts
