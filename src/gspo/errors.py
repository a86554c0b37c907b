"""Every error a user can cause, and the exit code the command line gives it.

GspoError                     1
├── RecipeError               2  a setting is unknown, of the wrong type or impossible
├── DataError                 3  the data, a model folder or a run folder is not what was expected
├── VerifierError             3  a verifier broke too often to go on
├── NumericsError             4  a number is not finite, or too coarse for the range in use
└── ResourceError             5  memory or disk is too small

A message says what was given, what was wanted, and what to do.
"""

import difflib
from collections.abc import Iterable


class GspoError(Exception):
    """Root of the tree; catch it to catch everything this library raises on purpose."""

    exit_code = 1


class GspoWarning(UserWarning):
    """Something was put right that the caller should know of, such as log-probs upcast."""


class RecipeError(GspoError):
    """A setting is unknown, of the wrong type, or impossible beside the others."""

    exit_code = 2


class DataError(GspoError):
    """Data, a model folder or a run folder is not what was expected."""

    exit_code = 3


class VerifierError(GspoError):
    """A verifier broke too often to go on. A wrong answer is never one of these."""

    exit_code = 3


class NumericsError(GspoError):
    """A number is not finite, or its precision is too coarse for the clip range in use."""

    exit_code = 4


class ResourceError(GspoError):
    """Memory or disk is too small for what was asked."""

    exit_code = 5


def nearest(given: str, known: Iterable[str]) -> str:
    """Ending for an "unknown name" message: names the closest known one, or lists them all.

    >>> nearest("gpso", ["gspo", "grpo"])
    "did you mean 'gspo'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(names)}"
