"""Running code that may raise anything, and saying what it raised in one line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MAX_REASON_CHARACTERS = 500  # an exception may carry a whole document


@dataclass(slots=True)
class Contained:
    """What a block raised, if anything."""

    error: BaseException | None = None

    @property
    def reason(self) -> str:
        """As "ExceptionType: message"; written by `traceback`, which survives a broken __str__."""
        lines = traceback.format_exception_only(self.error)
        return "".join(lines).strip()[:MAX_REASON_CHARACTERS]


@contextmanager
def contained() -> Iterator[Contained]:
    """Run a user's code: what it raises is kept, so that one bad response costs one verdict.

    The one place that catches everything: a user's function may raise anything, SystemExit too,
    and none of it may become a reward or end the run. KeyboardInterrupt passes.
    """
    caught = Contained()
    try:
        yield caught
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — see above
        caught.error = error
