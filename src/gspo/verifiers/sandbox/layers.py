"""The command that starts a fork server, bare or inside an outer layer."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

LayerName = Literal["gvisor", "bubblewrap", "kernel", "none"]

#: The server's whole environment. A fixed hash seed: a verdict must not change with set order.
#: One malloc arena: each further one takes 64 MiB of address space from a job with threads.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "1",
    "LANG": "C.UTF-8",
    "PATH": "/nonexistent",
}
#: Like -I, but the environment above is read; no site, no user site, no unsafe path.
_ISOLATED = ("-s", "-S", "-P")
_START = Path(__file__).with_name("start.py")
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")


def available() -> list[LayerName]:
    """The layers this machine may have, strongest first; a probe says whether they work."""
    found: list[LayerName] = []
    if shutil.which("runsc"):
        found.append("gvisor")
    if shutil.which("bwrap"):
        found.append("bubblewrap")
    return [*found, "kernel"]


def command(layer: LayerName, uid: int | None) -> list[str]:
    """The whole command line of a fork server; FileNotFoundError when the layer is not installed."""
    confinement = "limits" if layer == "none" else "full"
    server = [interpreter(), *_ISOLATED, str(_START), "-" if uid is None else str(uid), confinement]
    if layer == "bubblewrap":
        return [*_bubblewrap(_found("bwrap")), "--", *server]
    if layer == "gvisor":
        return [*_gvisor(_found("runsc")), *server]
    return server


def interpreter() -> str:
    """The interpreter itself, not a virtual environment's link to it."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.realpath(base)


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise FileNotFoundError(f"{program} is not installed")
    return path


def _bubblewrap(program: str) -> list[str]:
    """Own pid, network, mount, IPC and host-name spaces; only the interpreter's files, read-only.

    As root there is no user namespace: the server must be able to give its jobs an unused uid,
    and keeps the three capabilities that takes. Jobs can make no namespace, by seccomp.
    """
    root = os.geteuid() == 0
    spaces = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    spaces += [] if root else ["--unshare-user", "--disable-userns"]
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL") if root else ()
    places = [path for path in _SYSTEM if os.path.exists(path)]
    places += [sys.base_prefix, sysconfig.get_path("stdlib"), str(_START.parent.parent)]
    return [
        *(program, *spaces, "--die-with-parent", "--new-session"),
        *(word for capability in kept for word in ("--cap-add", capability)),
        *(word for path in dict.fromkeys(places) for word in ("--ro-bind", path, path)),
        *("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/", "--chdir", "/"),
    ]


def _gvisor(program: str) -> Sequence[str]:
    """A kernel of its own, without network."""
    rootless = () if os.geteuid() == 0 else ("--rootless",)
    return (program, *rootless, "--network=none", "--ignore-cgroups", "do", "--cwd=/")
