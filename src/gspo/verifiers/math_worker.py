"""The worker side of the maths verifier: compares two answers, and can run nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gspo.verifiers.contained import contained
from gspo.verifiers.math_algebra import Sympy, expression
from gspo.verifiers.math_equal import texts_equal
from gspo.verifiers.math_reading import Formula, formulas, read

#: What a process may do that compares numbers ends here.
FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "socket.bind",
    "ctypes.dlopen", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "shutil.", "pty.spawn",
)  # fmt: skip
#: Trees of each kind that answers have; the parser builds its tables as it meets them.
WARM_UP = (
    r"\frac{x+2}{7}-3y^2",
    r"2\sqrt{3}+\pi",
    r"\sin(x)\cdot\ln(2)",
    r"e^{2}",
    r"\binom{5}{2}",
    r"(n+1)!",
)


def prepare(settings: None) -> Callable[[Any], Any]:
    """The function of a job: {gold, answer, strict} is a comparison, {parse} a gold answer to read;
    all texts are tidied."""
    for text in WARM_UP:
        with contained():
            Sympy(strict=False).same(Formula(text), Formula("x"))
    sys.addaudithook(_forbid)
    return lambda job: _parse(job["parse"]) if "parse" in job else _judge(job)


def _parse(text: str) -> str | None:
    """Why a gold answer cannot be read; None when it can. What is compared as text only can."""
    for formula in formulas(read(text)):
        with contained() as caught:
            expression(formula)
        if isinstance(caught.error, MemoryError):
            raise caught.error
        if caught.error is not None:
            return caught.reason.splitlines()[0]
    return None


def _judge(job: dict[str, Any]) -> dict[str, Any]:
    """{equal}, with the reason where a formula could not be read."""
    with contained() as caught:
        algebra = Sympy(strict=job["strict"])
        return {"equal": texts_equal(job["gold"], job["answer"], algebra, strict=job["strict"])}
    if isinstance(caught.error, MemoryError):
        raise caught.error
    return {"equal": False, "unread": caught.reason}


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    """Text is never compiled here, nothing is started, written or connected."""
    if event == "compile" and str(arguments[1]).startswith("<"):
        raise PermissionError(f"text was about to be compiled: {event}")
    if event.startswith(FORBIDDEN):
        raise PermissionError(f"{event} is not for a worker that compares answers")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise PermissionError("writing is not for a worker that compares answers")
