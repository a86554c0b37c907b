"""What weight files hold, by their headers: a safetensors file begins with a list of its tensors."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gspo.errors import DataError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # the format's own limit


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """num_parameters: values in all tensors. dtypes: values by type, as BF16."""

    num_parameters: int
    num_files: int
    dtypes: dict[str, int]


def weight_files(model: Path) -> WeightFiles | None:
    """Of a model folder; None where it holds no safetensors, as beside a config.json alone.

    Raises DataError for a file whose header is none.
    """
    files = sorted(model.glob("*.safetensors")) if model.is_dir() else []
    if not files:
        return None
    counts: Counter[str] = Counter()
    for file in files:
        counts += _values(file)
    return WeightFiles(counts.total(), len(files), dict(counts))


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
