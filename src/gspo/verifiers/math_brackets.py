"""What stands in no bracket of a text."""

from __future__ import annotations

import re

_OPENING, _CLOSING = "([{", ")]}"


def split_top(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Parts between matches that stand in no bracket."""
    parts: list[str] = []
    end = 0
    for start, stop, _ in top_level(text, pattern):
        parts.append(text[end:start].strip())
        end = stop
    return [*parts, text[end:].strip()]


def top_level(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int, str]]:
    depths = _depths(text)
    return [
        (found.start(), found.end(), found[0].strip())
        for found in pattern.finditer(text)
        if depths[found.start()] == 0
    ]


def _depths(text: str) -> list[int]:
    """How many brackets each position stands in; any kind closes any, as in [0,1)."""
    depths: list[int] = []
    depth = 0
    for character in text:
        depths.append(depth)
        depth += (character in _OPENING) - (character in _CLOSING)
    return [*depths, depth]


def balanced(inner: str) -> bool:
    depths = _depths(inner)
    return min(depths) == 0 == depths[-1]
