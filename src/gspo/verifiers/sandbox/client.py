"""The grader's end of one fork server: starts it, hands it jobs, reads what they send.

Not thread-safe, and to be used by the one thread that started it: the kernel ends a fork server
(and bubblewrap) when the thread that started it ends.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, final

from gspo.verifiers.frames import FrameError, FrameReader, pack, unpack
from gspo.verifiers.sandbox.job import Job, Limits
from gspo.verifiers.sandbox.layers import ENVIRONMENT

START_S = 20.0  # an interpreter, a hundred imports and an outer layer, on a busy machine
GRACE_S = 5.0  # beyond the longest that a job may take, until its server counts as broken
_CHUNK = 1 << 16


class ServerBroken(Exception):  # noqa: N818 - caught beside it, never shown alone
    """The fork server did not start, died, or spoke nonsense: ours, not the program's."""


@dataclass(slots=True)
class Transcript:
    """What came of a job: the server's report, the job's own frames, its stdout, whether cut."""

    report: Mapping[str, Any] = field(default_factory=dict)
    frames: list[Any] = field(default_factory=list)
    stdout: bytearray = field(default_factory=bytearray)
    nonsense: str | None = None
    flooded: bool = False


_live: weakref.WeakSet[ForkServer] = weakref.WeakSet()


def _forget_after_fork() -> None:
    """A forked copy of the trainer must not keep fork servers alive by holding their sockets."""
    for server in list(_live):
        server.forget()


os.register_at_fork(after_in_child=_forget_after_fork)


@final
class ForkServer:
    """A running fork server. `close` ends it and everything below it."""

    def __init__(self, command: Sequence[str], uid: int | None) -> None:
        """uid: of its jobs, None where they keep the server's."""
        self._uid = uid
        self._control, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - layers.command made it, of no input
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,  # a Ctrl-C at the trainer is not for it
            )
        except OSError as error:
            self._control.close()
            raise ServerBroken(f"cannot start {command[0]}: {error}") from error
        finally:
            theirs.close()
        self._reader = FrameReader()
        try:
            self.ready: Mapping[str, Any] = self._next_message(time.monotonic() + START_S)["ready"]
        except (ServerBroken, KeyError, TypeError) as error:
            raise ServerBroken(f"{error}; it said {self._last_words()!r}") from error
        self._stop_listening()
        _live.add(self)

    def forget(self) -> None:
        """Close this process's copy of the control socket, and nothing else."""
        self._control.close()

    def run(self, job: Job, limits: Limits) -> Transcript:
        """Run one job to its end. ServerBroken when the server fails; it is closed then."""
        try:
            with closing(_Conversation(job, limits, self._control, self._uid)) as talk:
                return talk.hold(self._reader)
        except (OSError, FrameError) as error:
            raise ServerBroken(f"fork server failed: {error}") from error

    def close(self) -> None:
        """End the server, its job and its layer; returns when they are gone."""
        self._control.close()
        try:
            self._process.wait(1.0)  # it ends by itself when its socket does
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _stop_listening(self) -> None:
        """Nobody reads what it writes to stderr from here on."""
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _next_message(self, deadline: float) -> Any:
        while True:
            self._control.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                data = self._control.recv(_CHUNK)
            except OSError as error:
                raise ServerBroken(f"fork server did not start: {error}") from error
            if not data:
                raise ServerBroken("fork server ended before it was ready")
            for payload in self._reader.feed(data):
                self._control.settimeout(None)
                return unpack(payload)

    def _last_words(self) -> str:
        """End it; the end of what it wrote to stderr."""
        self._process.kill()
        _, said = self._process.communicate()
        self._control.close()
        return said.decode("utf-8", "replace").strip()[-300:]


class _Conversation:
    """One job's pipes, polled together with the control socket until the server reports the end."""

    def __init__(self, job: Job, limits: Limits, control: socket.socket, uid: int | None) -> None:
        self._limits, self._control = limits, control
        self._heard = Transcript()
        self._frames = FrameReader(limits.max_reply_bytes)
        self._reading: dict[int, bool] = {}  # descriptor: is it stdout
        self._writing: dict[int, memoryview] = {}
        self._asked_to_end = False
        self._is_script = job.stdin is not None
        theirs: list[int] = []
        try:
            theirs.append(self._give(pack(job.content())))
            theirs.append(self._take(is_stdout=False))
            if job.stdin is not None:
                theirs += [self._give(job.stdin), self._take(is_stdout=True)]
                if uid is not None:
                    os.fchown(theirs[2], uid, uid)  # a script may open /dev/stdin
            request = {
                "cpu_s": limits.cpu_s,
                "wall_s": limits.wall_s,
                "memory_mib": limits.memory_mib,
                "max_reply_bytes": limits.max_reply_bytes,
            }
            socket.send_fds(control, [pack(request)], theirs)
        except BaseException:
            self.close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    def hold(self, reader: FrameReader) -> Transcript:
        """Feed and drain the pipes until the server's report, then what is left in them."""
        longest_s = 2 * self._limits.wall_s + GRACE_S  # where it waits for a CPU that long
        deadline = time.monotonic() + longest_s
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise OSError(f"no report within {longest_s:g} s")
            ready = self._poll(left_s)
            for descriptor in ready:
                if descriptor in self._writing:
                    self._feed(descriptor)
                elif descriptor in self._reading:
                    self._drain(descriptor)
            if self._control.fileno() in ready:
                data = self._control.recv(_CHUNK)
                if not data:
                    raise OSError("the fork server ended")
                for payload in reader.feed(data):
                    self._heard.report = unpack(payload)
                    for descriptor in list(self._reading):
                        self._drain_rest(descriptor)
                    return self._heard

    def close(self) -> None:
        """Close this end of every pipe."""
        for descriptor in [*self._reading, *self._writing]:
            os.close(descriptor)
        self._reading.clear()
        self._writing.clear()

    def _poll(self, timeout_s: float) -> list[int]:
        """Descriptors with something to do. Not select(): a trainer may hold more than 1024."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), *self._reading):
            poll.register(descriptor, select.POLLIN)
        for descriptor in self._writing:
            poll.register(descriptor, select.POLLOUT)
        return [descriptor for descriptor, _ in poll.poll(timeout_s * 1000)]

    def _give(self, data: bytes) -> int:
        theirs, ours = os.pipe()
        os.set_blocking(ours, False)
        self._writing[ours] = memoryview(data)
        return theirs

    def _take(self, is_stdout: bool) -> int:
        ours, theirs = os.pipe()
        os.fchmod(theirs, 0o200)  # a job of our own uid could read back what we wait for
        os.set_blocking(ours, False)
        self._reading[ours] = is_stdout
        return theirs

    def _feed(self, descriptor: int) -> None:
        view = self._writing[descriptor]
        try:
            view = view[os.write(descriptor, view) :] if view else view
        except BlockingIOError:
            return
        except BrokenPipeError:  # a program need not read its input
            view = view[:0]
        self._writing[descriptor] = view
        if not view:
            del self._writing[descriptor]
            os.close(descriptor)

    def _drain_rest(self, descriptor: int) -> None:
        while descriptor in self._reading and self._drain(descriptor):
            pass

    def _drain(self, descriptor: int) -> bool:
        """Read once; False when nothing was there."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._forget(descriptor)
        elif self._reading[descriptor]:
            self._hear_stdout(data)
        else:
            self._hear_frames(descriptor, data)
        return bool(data)

    def _hear_stdout(self, data: bytes) -> None:
        heard, room = self._heard, self._limits.max_stdout_bytes - len(self._heard.stdout)
        heard.stdout += data[:room]
        if len(data) > room:
            heard.flooded = True
            self._ask_to_end()

    def _forget(self, descriptor: int) -> None:
        del self._reading[descriptor]
        os.close(descriptor)

    def _hear_frames(self, descriptor: int, data: bytes) -> None:
        """The first frame says that the job is confined; the second is all it may say."""
        heard = self._heard
        try:
            for payload in self._frames.feed(data):
                heard.frames.append(unpack(payload))
                if len(heard.frames) == 2:
                    break
        except FrameError as error:
            heard.nonsense = str(error)
        if heard.nonsense is not None or len(heard.frames) == 2:
            self._forget(descriptor)
            if not self._is_script or heard.nonsense is not None:
                self._ask_to_end()

    def _ask_to_end(self) -> None:
        if not self._asked_to_end:
            self._asked_to_end = True
            self._control.sendall(pack("kill"))
