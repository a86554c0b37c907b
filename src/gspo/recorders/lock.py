"""One writer a run folder.

The lock is the kernel's (`flock`), so it ends with its process, however that ends. The file names
the holder: for the message, for readers, and for file systems without locks.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from gspo.errors import DataError

LOCK_FILE = "run.lock"
NUM_TRIES = 10  # a reader that probes holds the lock for microseconds
TRY_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that no other is mistaken for: a pid alone is given out again after a while.

    boot_id and pid_namespace are empty where there is no /proc; start_ticks: clock ticks from
    boot to the start of the process.
    """

    pid: int
    host: str
    boot_id: str
    pid_namespace: str
    start_ticks: int | None
    since: str

    @classmethod
    def this_process(cls) -> Holder:
        pid = os.getpid()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(pid, socket.gethostname(), *_machine(), _start_ticks(pid), now)

    def seen_from_here(self) -> bool:
        """Its pid means something to this process."""
        return bool(self.boot_id) and (self.boot_id, self.pid_namespace) == _machine()

    def alive(self) -> bool:
        """Only for a holder seen from here."""
        return self.start_ticks is not None and _start_ticks(self.pid) == self.start_ticks


def _machine() -> tuple[str, str]:
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return boot_id, os.readlink("/proc/self/ns/pid")
    except OSError:
        return "", ""


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()  # the name may hold blanks and brackets
    return None if state in "ZX" else int(rest[18])


def read_holder(folder: Path) -> Holder | None:
    """Who wrote the lock file last; None when it was released, is damaged or never was."""
    try:
        return Holder(**json.loads((folder / LOCK_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def is_held(folder: Path) -> bool:
    """A live process writes this run folder."""
    holder = read_holder(folder)
    if holder is None:
        return False
    if holder.seen_from_here():
        return holder.alive()
    descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class RunLock:
    """Held from construction to `release`. taken_over_from: the dead holder it replaced, if any."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        locked = _lock(self._descriptor)
        holder = read_holder(folder)
        mine = holder is not None and holder.pid == os.getpid()
        if not locked or (holder and holder.seen_from_here() and holder.alive() and not mine):
            os.close(self._descriptor)
            who = (
                f"process {holder.pid} on {holder.host} since {holder.since}"
                if holder
                else "another process"
            )
            raise DataError(
                f"run folder {folder} is being written by {who}: wait for it, stop it, or choose "
                "another name"
            )
        self.taken_over_from = holder
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(asdict(Holder.this_process())).encode(), 0)
        os.fsync(self._descriptor)
        _held.add(self._descriptor)

    def release(self) -> None:
        """Let others write. The empty file stays: removing it would race with who waits for it."""
        _held.discard(self._descriptor)
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def _lock(descriptor: int) -> bool:
    for _ in range(NUM_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(TRY_EVERY_S)
        except OSError:  # a file system without locks: the holder's name decides
            return True
        else:
            return True
    return False


_held: set[int] = set()


def _close_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


# A forked worker that outlives the trainer would keep the kernel's lock alive.
os.register_at_fork(after_in_child=_close_in_child)
