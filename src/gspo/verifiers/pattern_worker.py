"""The worker side of the regex verifier."""

from __future__ import annotations

import re
from collections.abc import Callable


def prepare(pattern: str) -> Callable[[str], bool]:
    """The function of one job, a response's text."""
    compiled = re.compile(pattern, re.DOTALL)
    return lambda text: compiled.search(text) is not None
