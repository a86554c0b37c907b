"""The pool's hold on its zygote: starting workers, ending them, and leaving nothing behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from gspo.errors import VerifierError
from gspo.verifiers.frames import FrameReader
from gspo.verifiers.pool_zygote import CONTROL_BYTES

START_S = 120.0  # a user's module may import torch on a slow disk
CLOSE_S = 5.0
BOOT = "import sys; sys.path[:] = {path!r}; from gspo.verifiers.pool_zygote import main; main({fd})"


@dataclass(slots=True, eq=False)
class Worker:
    """One process and the pool's end of its socket."""

    pid: int
    connection: socket.socket
    zygote_pid: int
    reader: FrameReader = field(default_factory=FrameReader)
    num_jobs: int = 0


class ZygoteGoneError(VerifierError):
    """The zygote ended without being asked to; its workers ended with it."""

    def __init__(self) -> None:
        super().__init__(
            "the process that a verifier's workers are forked from died; is the machine short of memory, or was it killed?"
        )


class Nest:
    """One zygote. Starts with the first worker; `close` may come at any time, and twice."""

    def __init__(self, target: str, settings: Any, memory_bytes: int) -> None:
        self._hello = {"target": target, "settings": settings, "memory_bytes": memory_bytes}
        self._lock = Lock()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._connections: set[socket.socket] = set()

    def start(self) -> Worker:
        """A new worker. VerifierError: the target does not load."""
        ours, theirs = socket.socketpair()
        with closing(theirs), ExitStack() as undo:
            undo.callback(ours.close)
            reply = self._ask({"do": "start"}, theirs)
            undo.pop_all()
        self._connections.add(ours)
        return Worker(reply["pid"], ours, reply["zygote_pid"])

    def owns(self, worker: Worker) -> bool:
        """Its zygote is the one that runs now, as far as is known."""
        process = self._process
        return process is not None and process.pid == worker.zygote_pid

    def end(self, worker: Worker) -> int:
        """Kill a worker and wait for its end. Its wait status; 0 if the zygote is gone too."""
        worker.connection.close()
        self._connections.discard(worker.connection)
        try:
            return int(self._ask({"do": "end", "pid": worker.pid})["status"])
        except ZygoteGoneError:
            return 0

    def close(self) -> None:
        """End the zygote and every worker, and wait for it."""
        with self._lock:
            self._close()
        while self._connections:
            self._connections.pop().close()

    def _ask(self, request: dict[str, Any], passed: socket.socket | None = None) -> dict[str, Any]:
        with self._lock:
            if self._control is None:
                if passed is None:
                    raise ZygoteGoneError
                self._open()
            control = self._control
            assert control is not None  # noqa: S101  for the type checker: _open made it
            try:
                if passed is None:
                    control.send(json.dumps(request).encode())
                else:
                    socket.send_fds(control, [json.dumps(request).encode()], [passed.fileno()])
                body = control.recv(CONTROL_BYTES)
            except OSError as error:
                self._close()
                raise ZygoteGoneError from error
            if not body:
                self._close()
                raise ZygoteGoneError
            return json.loads(body) | {"zygote_pid": self._process.pid if self._process else 0}

    def _open(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with closing(theirs):
            boot = BOOT.format(
                path=[os.path.abspath(entry) for entry in sys.path], fd=theirs.fileno()
            )
            # Its output goes where errors go: standard output is the command's own.
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and our own words
                [sys.executable, "-c", boot],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
                start_new_session=True,
            )
        self._control = ours
        ours.settimeout(START_S)
        try:
            ours.send(json.dumps(self._hello).encode())
            answer = json.loads(ours.recv(CONTROL_BYTES) or b"{}")
        except OSError as error:
            self._close()
            raise VerifierError(
                f"the verifier's worker process did not start within {START_S:g} s ({error}); is the machine short of memory?"
            ) from error
        if "ready" not in answer:
            self._close()
            raise VerifierError(
                f"the verifier's worker process cannot load {self._hello['target']}: {answer.get('error', 'it ended without a word')}"
            )
        ours.settimeout(None)

    def _close(self) -> None:
        control, process = self._control, self._process
        self._control = self._process = None
        if control is not None:
            control.close()
        if process is None or os.getpid() != self._owner:  # a fork's copy: not ours to end
            return
        try:
            process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
