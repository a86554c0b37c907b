"""Comparing what a program gave with what was expected. All of it happens here, on plain values.

values   None, text, bytes: equal. A bool equals only a bool, a list only a list, a tuple only
         a tuple. Where a float is expected: within the tolerance, relative or absolute; NaN
         never, an infinity only its like. Where an int is expected: the same number, 2.0 for 2
         too. Sets and keys: exactly.
stdout   lines, blanks at their ends and empty lines at the end aside; or all tokens in one
         row. Numbers written with a point or an exponent: within the tolerance. All else: as text.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

OutputRule = Literal["lines", "tokens"]

MAX_NUMBER_CHARACTERS = 400  # of a decimal: the largest float has 309; reading long ones is slow

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_IS_DECIMAL = re.compile(r".*[.eE].*")


def same_value(given: Any, expected: Any, tolerance: float) -> bool:
    """Whether a plain value is the expected one.

    >>> same_value([0.1 + 0.2, 2.0], [0.3, 2], 1e-6), same_value(1, True, 1e-6)
    (True, False)
    """
    if isinstance(expected, bool) or isinstance(given, bool):
        return given is expected
    if isinstance(expected, float):
        return _is_real(given) and _close(given, expected, tolerance)
    if isinstance(expected, complex):
        return isinstance(given, complex | float | int) and _close_complex(
            complex(given), expected, tolerance
        )
    if isinstance(expected, int):
        return _is_real(given) and given == expected
    if isinstance(expected, set | frozenset):
        return isinstance(given, set | frozenset) and _keyed(given) == _keyed(expected)
    if type(given) is not type(expected):
        return False
    if isinstance(expected, list | tuple):
        return len(given) == len(expected) and all(
            same_value(g, e, tolerance) for g, e in zip(given, expected, strict=True)
        )
    if isinstance(expected, dict):
        return _same_dict(given, expected, tolerance)
    return given == expected


def as_json(value: Any) -> Any:
    """A value as JSON would keep it: tuples as lists, the keys of a dict as text."""
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, dict):
        return {_json_key(key): as_json(entry) for key, entry in value.items()}
    return value


def same_output(given: bytes, expected: str, rule: OutputRule, tolerance: float) -> bool:
    """Whether a script's stdout is the expected one.

    >>> same_output(b"0.333333 YES \\n\\n", "0.33333333 YES", "lines", 1e-6)
    True
    """
    split = _lines if rule == "lines" else str.split
    found, wanted = split(given.decode("utf-8", "replace")), split(expected)
    return len(found) == len(wanted) and all(
        _same_text(f, w, tolerance) for f, w in zip(found, wanted, strict=True)
    )


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(given: float, expected: float, tolerance: float) -> bool:
    """Not for NaN, which equals nothing; an int too large for a float is not close to one."""
    try:
        return math.isclose(given, expected, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:
        return False


def _close_complex(given: complex, expected: complex, tolerance: float) -> bool:
    return _close(given.real, expected.real, tolerance) and _close(
        given.imag, expected.imag, tolerance
    )


def _same_dict(given: dict[Any, Any], expected: dict[Any, Any], tolerance: float) -> bool:
    """Keys exactly, values by the rule."""
    by_key = {_exact(key): value for key, value in given.items()}
    return len(by_key) == len(expected) and all(
        _exact(key) in by_key and same_value(by_key[_exact(key)], value, tolerance)
        for key, value in expected.items()
    )


def _keyed(values: set[Any] | frozenset[Any]) -> set[Any]:
    return {_exact(value) for value in values}


def _exact(value: Any) -> Any:
    """A hashable in which a bool is no int, also inside tuples and frozen sets."""
    if isinstance(value, tuple):
        return ("tuple", *(_exact(entry) for entry in value))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(_exact(entry) for entry in value))
    return (isinstance(value, bool), value)


def _json_key(key: Any) -> Any:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, int) else key


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_text(given: str, expected: str, tolerance: float) -> bool:
    """Equal, or equal between the numbers and close at each of them."""
    if given == expected:
        return True
    found, wanted = _NUMBER.split(given), _NUMBER.split(expected)
    return len(found) == len(wanted) and all(
        f == w or (index % 2 == 1 and _same_number(f, w, tolerance))
        for index, (f, w) in enumerate(zip(found, wanted, strict=True))
    )


def _same_number(given: str, expected: str, tolerance: float) -> bool:
    """Within the tolerance where the expected text is a decimal, not an integer."""
    if not _IS_DECIMAL.fullmatch(expected) or len(given) > MAX_NUMBER_CHARACTERS:
        return False
    return _close(float(given), float(expected), tolerance)
