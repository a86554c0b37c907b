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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

#: In the RuntimeError of torch's CPU allocator; on a GPU the error has a class of its own.
CPU_OUT_OF_MEMORY = "can't allocate memory"
GPU_OUT_OF_MEMORY = "OutOfMemoryError"


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


@contextmanager
def memory_errors(doing: str, setting: str, size: int) -> Iterator[None]:
    """An allocation that fails inside becomes a ResourceError that names the setting that sized it.

    >>> with memory_errors("sampling", "engine.max_batch", 512):
    ...     raise MemoryError
    Traceback (most recent call last):
    gspo.errors.ResourceError: memory ended while sampling with engine.max_batch 512: set it lower...
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _out_of_memory(error):
            raise
        raise ResourceError(
            f"memory ended while {doing} with {setting} {size}: set it lower (half of it is "
            f"{max(size // 2, 1)}), or lower rollout.max_tokens, the most tokens of a response"
        ) from error


def _out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Told by name and text: this module knows no torch."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", GPU_OUT_OF_MEMORY}) or CPU_OUT_OF_MEMORY in str(error)


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
