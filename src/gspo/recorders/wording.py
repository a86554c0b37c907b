"""Numbers as people read them in a terminal. Never imports torch."""

from __future__ import annotations

import math

ABSENT = "-"


def duration(seconds: float) -> str:
    """Two units at most.

    >>> [duration(s) for s in (7.24, 65.0, 7380.0)]
    ['7.2 s', '1 min 5 s', '2 h 3 min']
    """
    if not math.isfinite(seconds):
        return ABSENT
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s"
    return f"{minutes // 60} h {minutes % 60} min"


def number(value: float | int | None) -> str:
    """Three digits; thousands whole.

    >>> [number(x) for x in (None, 0.0012345, 1420.4)]
    ['-', '0.00123', '1,420']
    """
    if value is None:
        return ABSENT
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
