"""The process that workers are forked from, and the worker's own loop.

It is started clean, loads the target once and then forks, so a new worker costs milliseconds. It
ends when the pool's process ends, however that comes about, and takes the workers with it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gspo.verifiers.contained import contained
from gspo.verifiers.frames import FrameError, pack, read_frame, write_all

CONTROL_BYTES = 2**17  # a request is a few words; the first one holds the module path
PARENT_CHECK_S = 1.0  # only where someone else still holds the pool's end of the control socket
PR_SET_PDEATHSIG = 1

Handler = Callable[[Any], Any]


def main(control_fd: int) -> None:
    """Serve one pool until it closes its end."""
    control = socket.socket(fileno=control_fd)
    parent = os.getppid()
    # Ctrl-C is the trainer's: it ends its step first, and needs verdicts for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hello = json.loads(control.recv(CONTROL_BYTES) or b"null")
    if hello is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    handler: Handler | None = None
    with contained() as caught:
        module, _, name = hello["target"].partition(":")
        handler = getattr(importlib.import_module(module), name)(hello["settings"])
    if handler is None:
        control.send(json.dumps({"error": caught.reason}).encode())
        return
    gc.freeze()  # what is loaded stays shared with the workers
    control.send(b'{"ready": true}')
    _Zygote(control, parent, handler, hello["memory_bytes"], libc).serve()


class _Zygote:
    """Answers the requests `start` (with a socket) and `end`."""

    def __init__(
        self,
        control: socket.socket,
        parent: int,
        handler: Handler,
        memory_bytes: int,
        libc: ctypes.CDLL,
    ) -> None:
        self._control = control
        self._parent = parent
        self._handler = handler
        self._memory_bytes = memory_bytes
        self._libc = libc
        self._children: set[int] = set()

    def serve(self) -> None:
        """Until the pool is gone."""
        while os.getppid() == self._parent:
            if not select.select([self._control], [], [], PARENT_CHECK_S)[0]:
                continue
            body, fds, _, _ = socket.recv_fds(self._control, CONTROL_BYTES, 1)
            if not body:
                break
            request = json.loads(body)
            reply = (
                {"pid": self._start(fds[0])}
                if request["do"] == "start"
                else {"status": self._end(request["pid"])}
            )
            self._control.send(json.dumps(reply).encode())
        for pid in tuple(self._children):
            self._end(pid)

    def _start(self, fd: int) -> int:
        pid = os.fork()
        if pid == 0:
            self._become_worker(fd)
        os.close(fd)
        self._children.add(pid)
        return pid

    def _become_worker(self, fd: int) -> None:
        code = 1
        try:
            zygote = os.getppid()
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == zygote:  # else it died before the line above
                os.setpgid(0, 0)
                self._control.close()
                _limit_memory(self._memory_bytes)
                code = _work(socket.socket(fileno=fd), self._handler)
        finally:
            os._exit(code)

    def _end(self, pid: int) -> int:
        """Kill a worker and what it started, and wait. Its wait status, 0 for one ended before."""
        if pid not in self._children:
            return 0
        for kill in (os.killpg, os.kill):  # the group too: there is none in its first microseconds
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._children.discard(pid)
        return os.waitpid(pid, 0)[1]


def _limit_memory(memory_bytes: int) -> None:
    """What a job may add to what is mapped now: an absolute limit would punish a large start."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(connection: socket.socket, handler: Handler) -> int:
    """Answer jobs until the pool closes its end."""
    fd = connection.fileno()
    while (frame := read_frame(fd)) is not None:
        reply = _reply(handler, frame["job"])
        write_all(fd, reply)
    return 0


def _reply(handler: Handler, job: Any) -> bytes:
    with contained() as caught:
        return pack({"value": handler(job)})
    kind = "error"
    if isinstance(caught.error, MemoryError):
        kind = "memory"
    elif isinstance(caught.error, FrameError):
        kind = "protocol"
    return pack({"kind": kind, "reason": caught.reason})
