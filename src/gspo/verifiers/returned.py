"""What a user's function returned, as plain values: {reward, parts, failure}.

Knows no torch, so that a worker process starts in milliseconds; a tensor without dimension is a
number all the same.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Set
from numbers import Real
from typing import Any

#: As `gspo.types.LARGEST_REWARD`, which stands beside tensors.
LARGEST_REWARD = 1e100


def plain_verdict(value: Any) -> dict[str, Any]:
    """One response's. Text entries of a dict are no numbers and are left out."""
    parts: dict[str, float] = {}
    if isinstance(value, Mapping):
        key = next((name for name in ("reward", "score") if name in value), None)
        if key is None:
            return failed(f"returned {reprlib.repr(value)}, without 'reward' or 'score'")
        numbers = {str(name): _number(entry) for name, entry in value.items() if name != key}
        parts = {name: number for name, number in numbers.items() if number is not None}
        value = value[key]
    reward = _number(value)
    if reward is None:
        return failed(f"returned {reprlib.repr(value)}, wanted a finite number of at most 1e100")
    return {"reward": reward, "parts": parts, "failure": None}


def plain_verdicts(values: Any, num_responses: int) -> list[dict[str, Any]]:
    """A group's, from one call. A set has no order, so it holds nobody's reward."""
    if isinstance(values, str | bytes | bytearray | Mapping | Set) or not hasattr(
        values, "__len__"
    ):
        reason = f"returned {reprlib.repr(values)}, wanted {num_responses} rewards"
    elif len(values) != num_responses:
        reason = f"returned {len(values)} rewards for {num_responses} responses"
    else:
        return [plain_verdict(value) for value in values]
    return [failed(reason) for _ in range(num_responses)]


def failed(reason: str) -> dict[str, Any]:
    """No verdict."""
    return {"reward": None, "parts": {}, "failure": reason}


def _number(value: Any) -> float | None:
    """A finite real number as a float, numpy scalars and tensors without dimension included."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, Real) or not abs(value) <= LARGEST_REWARD:  # NaN is not  # pyright: ignore[reportOperatorIssue]
        return None
    return float(value)
