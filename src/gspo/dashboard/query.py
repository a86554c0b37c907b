"""The part of an address behind the question mark, as typed values. What is unknown or makes no
sense is `BadQueryError`; an empty value is none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from starlette.datastructures import QueryParams

from gspo.dashboard.answers_responses import ResponseQuery
from gspo.dashboard.folder import BadQueryError
from gspo.errors import nearest

MAX_LIMIT = 500  # rows of a table
MAX_STEPS = 10_000  # of histograms
MAX_TOKENS = 1_000
MAX_NAMES = 200
MAX_TEXT = 1_000
MAX_DIGITS = 15

CHOICES = {
    "cut": ("low", "high", "any", "none"),
    "advantage": ("positive", "negative", "zero"),
    "verdict": ("failed", "scored"),
    "sort": ("row", "reward", "advantage", "length", "log_s", "group"),
    "descending": ("0", "1"),
    "full": ("0", "1"),
}


class Query:
    """What was asked."""

    def __init__(self, given: QueryParams, allowed: Sequence[str]) -> None:
        for name in given:
            if name not in allowed:
                hint = nearest(name, allowed) if allowed else "this address takes none"
                raise BadQueryError(f"the query has {name!r:.80}; {hint}")
        self._given = given

    def all(self, name: str) -> list[str]:
        """Every value of a name that may come several times."""
        values = self._given.getlist(name)
        if len(values) > MAX_NAMES or any(len(value) > MAX_TEXT for value in values):
            raise BadQueryError(
                f"{name} has {len(values)} values; at most {MAX_NAMES} of {MAX_TEXT} characters "
                "are answered: ask in parts"
            )
        return values

    def text(self, name: str) -> str | None:
        """One text."""
        values = [value for value in self.all(name) if value]
        if len(values) > 1:
            raise BadQueryError(f"{name} is given {len(values)} times; wanted once")
        return values[0] if values else None

    def choice(self, name: str) -> str | None:
        """One of `CHOICES`."""
        value = self.text(name)
        if value is not None and value not in CHOICES[name]:
            raise BadQueryError(f"{name} is {value!r:.80}; {nearest(value, CHOICES[name])}")
        return value

    def flag(self, name: str) -> bool:
        """0 or 1; 0 if not given."""
        return self.choice(name) == "1"

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self.text(name)
        try:
            number = None if value is None else float(value)
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise BadQueryError(f"{name} is {value!r:.80}; wanted a number")
        return number

    def whole(self, name: str, *, low: int = 0, high: int = 10**MAX_DIGITS) -> int | None:
        """A whole number from low to high."""
        value = self.text(name)
        if value is None:
            return None
        return whole(value, f"{name} is", low, high)


def whole(value: str, what: str, low: int, high: int) -> int:
    """A whole number in decimal digits. Raises BadQueryError."""
    digits = value.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS + 1:
        number = int(value)
        if low <= number <= high:
            return number
    raise BadQueryError(f"{what} {value!r:.80}; wanted a whole number from {low} to {high}")


RESPONSE_NAMES = tuple(ResponseQuery.__dataclass_fields__)


def response_query(query: Query) -> ResponseQuery:
    """Which responses are wanted. query: with RESPONSE_NAMES."""
    limit = query.whole("limit", low=1, high=MAX_LIMIT)
    return ResponseQuery(
        search=query.text("search"),
        group=query.whole("group"),
        finish=query.text("finish"),
        cut=query.choice("cut"),  # pyright: ignore[reportArgumentType]  CHOICES has the literals
        advantage=query.choice("advantage"),  # pyright: ignore[reportArgumentType]
        verdict=query.choice("verdict"),  # pyright: ignore[reportArgumentType]
        reward_min=query.number("reward_min"),
        reward_max=query.number("reward_max"),
        length_min=query.number("length_min"),
        length_max=query.number("length_max"),
        minibatch=query.whole("minibatch"),
        sort=query.choice("sort") or "row",  # pyright: ignore[reportArgumentType]
        descending=query.flag("descending"),
        offset=query.whole("offset") or 0,
        limit=50 if limit is None else limit,
    )
