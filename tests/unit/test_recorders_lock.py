"""One writer a run folder; a dead one's lock is taken over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gspo.errors import DataError
from gspo.recorders.lock import LOCK_FILE, Holder, RunLock, is_held, read_holder

HOLD = """
import sys, time
from pathlib import Path
from gspo.recorders.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_until_the_first_dies(
    tmp_path: Path, other_process: subprocess.Popen[str]
) -> None:
    assert is_held(tmp_path)
    with pytest.raises(DataError, match=f"written by process {other_process.pid} on"):
        RunLock(tmp_path)
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    assert not is_held(tmp_path)
    lock = RunLock(tmp_path)
    assert lock.taken_over_from is not None
    assert lock.taken_over_from.pid == other_process.pid
    holder = read_holder(tmp_path)
    assert holder is not None
    assert holder.pid == os.getpid()
    lock.release()


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with pytest.raises(DataError, match="being written"):
        RunLock(tmp_path)
    lock.release()
    assert not is_held(tmp_path)
    again = RunLock(tmp_path)
    assert again.taken_over_from is None
    again.release()


def write_holder(folder: Path, holder: Holder) -> None:
    (folder / LOCK_FILE).write_text(json.dumps(asdict(holder)))


PARENT = {
    "pid": os.getppid(),
    "start_ticks": int(
        Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
    ),
}


def test_a_live_holder_counts_on_file_systems_without_locks(tmp_path: Path) -> None:
    write_holder(tmp_path, replace(Holder.this_process(), **PARENT))
    assert is_held(tmp_path)
    with pytest.raises(DataError, match=f"process {os.getppid()}"):
        RunLock(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {**PARENT, "start_ticks": 1},  # the pid was given out again
        {"pid": 2**22 + 5},  # no such process
        {**PARENT, "boot_id": "before the reboot"},
        {**PARENT, "pid_namespace": "pid:[1]", "host": "another"},
    ],
)
def test_a_stale_holder_is_recognised(tmp_path: Path, change: dict[str, object]) -> None:
    write_holder(tmp_path, replace(Holder.this_process(), **change))
    assert not is_held(tmp_path)
    lock = RunLock(tmp_path)
    assert lock.taken_over_from is not None
    lock.release()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "\0\0"])
def test_a_damaged_lock_file_is_no_lock(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK_FILE).write_text(content)
    assert not is_held(tmp_path)
    RunLock(tmp_path).release()


def test_a_forked_worker_does_not_keep_the_lock(tmp_path: Path) -> None:
    hold_and_fork = HOLD.replace(
        'print("held", flush=True)',
        "import os\nchild = os.fork()\nif child: print(child, flush=True)",
    )
    process = subprocess.Popen(
        [sys.executable, "-c", hold_and_fork, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    child = int(process.stdout.readline())
    process.kill()
    process.wait()
    try:
        assert not is_held(tmp_path)
        RunLock(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)
