"""Inside a job: read what to do, run the program, send back a plain value.

Jobs, as JSON:

    {"mode": "program", "code": ...}                     a script; stdin and stdout are pipes
    {"mode": "expression", "code": ..., "setup": ..., "expression": ..., "candidate": ...}
    {"mode": "call", "code": ..., "name": ..., "arguments": [...]}

No expected value is ever among them. The reply is one frame: {"value": plain} or {"raised": name
of the exception, "message": ...} or {"unsendable": why}. Whoever reads it trusts none of it: a
program may send what it likes, and all it can say is a value.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
import threading
import traceback
from _sitebuiltins import Quitter
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from gspo.verifiers.frames import FrameError, pack, read_frame, write_all
from gspo.verifiers.sandbox.values import NotPlain, decode, encode

MAX_MESSAGE_CHARACTERS = 300
#: What an interpreter does at a script's end, before it flushes its streams.
_CLOSING = (threading._shutdown, atexit._run_exitfuncs)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def run(job_descriptor: int, reply_descriptor: int, max_reply_bytes: int) -> NoReturn:
    """Do the one job and end the process."""
    job = read_frame(job_descriptor)
    os.close(job_descriptor)
    _open_streams()
    module = ModuleType("__main__" if job["mode"] == "program" else "solution")
    module.__file__ = "solution.py"
    sys.modules[module.__name__] = module  # dataclasses and enum look their module up
    sys.argv = ["solution.py"]
    for name in ("exit", "quit"):  # `site` makes them, which the fork server does without
        setattr(builtins, name, Quitter(name, "end of file"))
    if job["mode"] == "program":
        _finish_program(job, module, reply_descriptor)
    try:
        value = _evaluate(job, module.__dict__)
        frame = pack({"value": encode(value)}, max_reply_bytes)
    except (NotPlain, FrameError) as error:
        frame = pack({"unsendable": str(error)})
    except BaseException as error:  # noqa: BLE001 - SystemExit and all: it is the program's
        frame = pack(_raised(error))
    write_all(reply_descriptor, frame)
    os._exit(0)


def _evaluate(job: dict[str, Any], namespace: dict[str, Any]) -> Any:
    if job["mode"] == "expression":
        exec(_compiled(job["setup"], "setup"), namespace)  # noqa: S102
    exec(_compiled(job["code"], "solution.py"), namespace)  # noqa: S102
    if job["mode"] == "call":
        return _target(namespace, job["name"])(*decode(job["arguments"]))
    if job["candidate"] is not None:
        namespace["candidate"] = _target(namespace, job["candidate"])
    return eval(compile(job["expression"], "<test>", "eval", dont_inherit=True), namespace)  # noqa: S307


def _target(namespace: dict[str, Any], name: str) -> Any:
    """A function of that name, else a method of a class Solution."""
    if name not in namespace and hasattr(namespace.get("Solution"), name):
        return getattr(namespace["Solution"](), name)
    if name not in namespace:
        raise NameError(f"the program defines no {name!r}")
    return namespace[name]


def _finish_program(job: dict[str, Any], module: ModuleType, reply_descriptor: int) -> NoReturn:
    """Run a script to its end as the interpreter would: threads joined, exit handlers, streams, and
    what its variables hold: a file over descriptor 1, say."""

    def script() -> None:
        exec(_compiled(job["code"], "solution.py"), module.__dict__)  # noqa: S102

    def forget() -> None:
        sys.stdout = sys.__stdout__
        module.__dict__.clear()
        gc.collect()
        _flush()

    status = 0
    for step in (script, *_CLOSING, _flush, forget):
        status = _quietly(step, reply_descriptor) or status
    os._exit(status)


def _quietly(step: Callable[[], object], reply_descriptor: int) -> int:
    """The exit status of a step; what it raised is sent as the reason."""
    try:
        step()
    except SystemExit as error:
        return _exit_status(error.code)
    except BaseException as error:  # noqa: BLE001 - the program's own
        write_all(reply_descriptor, pack(_raised(error)))
        return 1
    return 0


def _flush() -> None:
    """What is stdout now, and what was when the script began."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def _compiled(source: str, name: str) -> Any:
    return compile(source, name, "exec", dont_inherit=True)


def _raised(error: BaseException) -> dict[str, str]:
    """Written by `traceback`, which survives an exception that lies about its text."""
    lines = traceback.format_exception_only(error)
    if isinstance(error, SyntaxError):
        del lines[:-1]  # the place in the source
    message = "".join(lines).strip()[:MAX_MESSAGE_CHARACTERS]
    return {"raised": type(error).__name__, "message": message}


def _open_streams() -> None:
    """Fresh text streams on descriptors 0 to 2: the fork server's own belong to other files."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        raw = io.FileIO(descriptor, "r" if descriptor == 0 else "w", closefd=False)
        buffered = io.BufferedReader(raw) if descriptor == 0 else io.BufferedWriter(raw)
        raw.name = f"<{name}>"
        stream = io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape")
        stream.mode = "r" if descriptor == 0 else "w"  # pyright: ignore[reportAttributeAccessIssue] - fast-input templates look for it
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
