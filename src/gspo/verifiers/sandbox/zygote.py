"""The fork server: a fresh interpreter that never held an answer, and forks once a job.

It is single-threaded and reads nothing a model wrote: a job's descriptors come to it through its
control socket (descriptor 0), the job's text goes straight from the grader to the fork. So no job
finds another's program or values in the memory it was copied from.

    grader -> server   {"cpu_s", "wall_s", "memory_mib", "max_reply_bytes"} with 2 or 4 descriptors,
                       or "kill" for the running job
    server -> grader   {"ready": ...} once, then for each job {"status", "cpu_s", "wall_s", "end"}

The control socket's end is the server's end, and the end of its job.
"""

from __future__ import annotations

import fcntl
import gc
import math
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import time
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from gspo.verifiers.frames import FrameReader, pack, unpack, write_all
from gspo.verifiers.sandbox import landlock, modules, runner, seccomp
from gspo.verifiers.sandbox.confine import MAX_TASKS, Confinement, confine
from gspo.verifiers.sandbox.syscalls import machine

CONFINED = "confined"  # a job's first frame: nothing of the program ran before it
_NOT_LIBRARY = {"site-packages", "dist-packages", "test", "__pycache__"}
_MAX_DESCRIPTORS = 256  # of the server: a fork closes all that might be open
_TICK_S = 0.02  # between looks at a job: within one, a job makes some thousand threads
_FIRST_FREE = 10  # descriptors are gathered here before they take the places 0 to 4


@dataclass(frozen=True, slots=True)
class _Request:
    cpu_s: float
    wall_s: float
    memory_mib: int
    max_reply_bytes: int


def main() -> None:
    """Serve until the control socket ends. Arguments: the uid for jobs or "-", "full" or "limits"."""
    uid, confinement = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MAX_DESCRIPTORS, _MAX_DESCRIPTORS))
    control = socket.socket(fileno=0)
    missing = modules.import_all()
    how = _confinement(None if uid == "-" else int(uid), confinement == "full")
    wakeup = _wake_on_child()
    gc.collect()
    gc.freeze()  # a job's collector then leaves these pages shared
    ready = {"landlock": landlock.version(), "missing": missing, "python": sys.version.split()[0]}
    control.sendall(pack({"ready": ready}))
    _Server(control, wakeup, how).serve()


def _confinement(uid: int | None, full: bool) -> Confinement:
    if not full:
        return Confinement(uid, None, None)
    may_read = landlock.version() > 0
    ruleset = landlock.ruleset(_library()) if may_read else None
    return Confinement(uid, ruleset, seccomp.program(machine(), may_read))


def _library() -> list[str]:
    """The standard library's files and folders, without what was installed beside them."""
    root = sysconfig.get_path("stdlib")
    paths = [os.path.join(root, name) for name in os.listdir(root) if name not in _NOT_LIBRARY]
    return [path for path in paths if os.path.exists(path)]  # Debian links to files elsewhere


def _wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # whatever the thread that started it blocked
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


class _Server:
    def __init__(self, control: socket.socket, wakeup: int, how: Confinement) -> None:
        self._control, self._wakeup, self._how = control, wakeup, how
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)

    def serve(self) -> None:
        """One job after another."""
        while (received := self._receive()) is not None:
            request, descriptors = received
            started = time.monotonic()
            child = os.fork()
            if child == 0:
                self._become_job(request, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            self._control.sendall(pack(self._await(child, request, started)))

    def _receive(self) -> tuple[_Request, list[int]] | None:
        """The next request; a "kill" that came too late is dropped."""
        reader, descriptors = FrameReader(), list[int]()
        while True:
            data, received, _, _ = socket.recv_fds(self._control, 65536, 4)
            if not data:
                return None
            descriptors += received
            for payload in reader.feed(data):
                message = unpack(payload)
                if message != "kill":
                    return _Request(**message), descriptors

    def _await(self, child: int, request: _Request, started: float) -> dict[str, Any]:
        """Wait for the job's end, and bring it about when its time is over."""
        end = "own"
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                cpu_s = usage.ru_utime + usage.ru_stime
                wall_s = time.monotonic() - started
                return {"status": status, "cpu_s": cpu_s, "wall_s": wall_s, "end": end}
            wait_s = _TICK_S if end == "own" else None
            ready, _, _ = select.select([self._control, self._wakeup], [], [], wait_s)
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
            elif self._control in ready:
                end = end if end != "own" else "asked"
                self._kill(child)
                if not self._control.recv(65536):
                    os._exit(0)
            elif end == "own":
                end = _overstepped(child, request, started)
                if end != "own":
                    self._kill(child)

    def _kill(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)  # it cannot have been reaped by anyone else

    def _become_job(self, request: _Request, descriptors: list[int]) -> NoReturn:
        """In the fork: take the descriptors' places, confine, run. Never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            ruleset = _place(descriptors, self._null, self._how.ruleset)
            how = replace(self._how, ruleset=ruleset)
            confine(how, math.ceil(request.cpu_s) + 1, request.memory_mib * 2**20)
        except BaseException as error:  # noqa: BLE001 - it must not fall back into the server
            write_all(4, pack({"unconfined": f"{type(error).__name__}: {error}"}))
            os._exit(1)
        write_all(4, pack(CONFINED))
        try:
            runner.run(3, 4, request.max_reply_bytes)
        finally:
            os._exit(1)


def _place(descriptors: list[int], null: int, ruleset: int | None) -> int | None:
    """stdin, stdout, stderr, job and reply on 0 to 4, the rule set on 5, everything else closed."""
    job, reply = descriptors[:2]
    stdin, stdout = descriptors[2:] or (null, null)
    wanted = [stdin, stdout, null, job, reply] + ([] if ruleset is None else [ruleset])
    gathered = [fcntl.fcntl(d, fcntl.F_DUPFD, _FIRST_FREE) for d in wanted]
    for place, descriptor in enumerate(gathered):
        os.dup2(descriptor, place, inheritable=False)
    os.closerange(len(wanted), _MAX_DESCRIPTORS)
    return None if ruleset is None else len(wanted) - 1


def _overstepped(child: int, request: _Request, started: float) -> str:
    """Which limit a running job is beyond; "own" while it is within all.

    CPU time decides. Time in which it wanted a CPU and got none is no wall time, so "wall" is a job
    that slept, and "starved" one that the machine gave no CPU for all of the wall limit.
    """
    if _cpu_seconds(child) >= request.cpu_s:
        return "cpu"
    if _num_threads(child) > MAX_TASKS:
        return "threads"
    late_s = time.monotonic() - started - request.wall_s
    if late_s < 0:
        return "own"
    waited_s = _waited_seconds(child)
    if late_s < min(waited_s, request.wall_s):
        return "own"
    return "starved" if waited_s >= request.wall_s else "wall"


def _cpu_seconds(pid: int) -> float:
    """CPU time of a whole process: the clock id is the kernel's, as clock_getcpuclockid makes it.
    0 where there is no such clock: wall time and RLIMIT_CPU then end the job."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _num_threads(pid: int) -> int:
    """0 where /proc does not tell; address space then bounds them."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def _waited_seconds(pid: int) -> float:
    """The longest that one of its threads was ready and waited for a CPU: not their sum, as threads
    also wait for one another. 0 where /proc does not tell."""
    longest = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                longest = max(longest, int(file.read().split()[1]))
    except OSError:
        return 0.0
    return longest / 1e9
