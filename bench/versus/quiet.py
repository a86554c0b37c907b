"""How busy the machine was with other things while something was measured.

Other work = the machine's busy time less that of the measured process and of the driver. Time the
host took away (steal) counts as other work: it disturbs in the same way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

MAX_FOREIGN_CORES = 0.1
MAX_TRIES = 4  # of one repetition; then the quietest is kept and the row says so
BUSY_FIELDS = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal in /proc/stat

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Sample:
    """A moment: seconds, and processor seconds spent so far by all and by our own processes."""

    time_s: float
    busy_s: float
    own_s: float


def busy_ticks(stat: str) -> int:
    """Ticks that all cores have been busy, from the text of /proc/stat."""
    fields = stat.splitlines()[0].split()[1:]
    return sum(int(fields[index]) for index in BUSY_FIELDS)


def process_ticks(stat: str) -> int:
    """Ticks a process has used, its ended children too, from the text of /proc/PID/stat."""
    after_name = stat.rpartition(")")[2].split()  # a name may hold spaces and brackets
    return sum(int(field) for field in after_name[11:15])


def sample(pids: Iterable[int]) -> Sample:
    """Now, with these processes as our own."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    own = sum(process_ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in pids)
    busy = busy_ticks(Path("/proc/stat").read_text())
    return Sample(time.perf_counter(), busy / ticks_per_s, own / ticks_per_s)


def foreign_cores(before: Sample, after: Sample) -> float:
    """Cores that something else kept busy between two samples; never below 0."""
    elapsed_s = max(after.time_s - before.time_s, 1e-9)
    foreign_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return max(foreign_s, 0.0) / elapsed_s


def quietly(
    measure: Callable[[], Answer],
    watch: Callable[[], Sample],
    limit: float = MAX_FOREIGN_CORES,
    tries: int = MAX_TRIES,
    disturbed: Callable[[float], None] = lambda foreign: None,
) -> tuple[Answer, float]:
    """What `measure` gives while other work stays within `limit` cores, and that other work.

    A disturbed measurement is thrown away and repeated, at most `tries` times in all; then the
    quietest is given. disturbed: called with the other work of each that was.
    """
    best: tuple[Answer, float] | None = None
    for _ in range(tries):
        before = watch()
        answer = measure()
        foreign = foreign_cores(before, watch())
        if best is None or foreign < best[1]:
            best = answer, foreign
        if foreign <= limit:
            break
        disturbed(foreign)
    if best is None:
        raise ValueError(f"tries is {tries}; wanted at least 1")
    return best
