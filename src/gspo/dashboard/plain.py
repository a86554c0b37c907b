"""Answers as JSON: no NaN, no text that is not UTF-8, nothing without bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from gspo.recorders.jsonl import LARGEST_INT
from gspo.recorders.sanitize import well_formed

MAX_DEPTH = 20  # what the recorder writes stands at 3
SHORT_CHARS = 400  # of a text in a table


def finite(value: float | None) -> float | None:
    """None for NaN and infinities."""
    return value if value is not None and math.isfinite(value) else None


def finite_list(values: Iterable[float | None]) -> list[float | None]:
    """The same for each of them."""
    isfinite = math.isfinite
    return [x if x is not None and isfinite(x) else None for x in values]


def short(text: str | None) -> str | None:
    """The beginning of a text."""
    return text if text is None else text[:SHORT_CHARS]


def plain(value: Any, depth: int = 0) -> Any:
    """What a file holds, fit for an answer: numbers finite and at most 64 bits wide, nothing
    nested deeper than MAX_DEPTH."""
    if depth > MAX_DEPTH:
        return f"nested more than {MAX_DEPTH} deep: left out"
    if isinstance(value, Mapping):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, int) and abs(value) > LARGEST_INT:
        return None
    return finite(value) if isinstance(value, float) else value


def json_bytes(answer: Mapping[str, Any]) -> bytes:
    """One strict JSON object in UTF-8; lone surrogates become U+FFFD."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return well_formed(text).encode()
