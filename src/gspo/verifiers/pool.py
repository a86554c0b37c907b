"""Worker processes of our own, for work that may hang, crash or eat the memory.

A job that is not done within the limit costs its worker: the process is killed with what it
started, and another is forked. Nothing here uses signals, threads or an event loop, so it works
from any thread, from inside an event loop and from a subprocess.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from threading import Condition
from typing import Any, final

from gspo.verifiers.pool_nest import Nest, Worker, ZygoteGoneError
from gspo.verifiers.pool_shift import Failure, Shift

__all__ = ["Failure", "WorkerPool", "num_workers"]

MEBIBYTE = 2**20
MAX_WORKERS = 16  # more would wait for one another's memory
MAX_STARTS = 3  # of a zygote for one worker, before the machine is taken to be out of processes


def num_workers() -> int:
    """One a core this process may use."""
    return min(len(os.sched_getaffinity(0)), MAX_WORKERS)


@final
class WorkerPool:
    """Up to num_workers processes that run one function.

    target: "package.module:name" of a function that gets `settings` once, in the process all
    workers are forked from, and gives the function of one job. Jobs, values and settings are
    plain JSON. timeout_s: wall clock of one job. memory_mib: what a worker may map beyond what it
    starts with. recycle_after: jobs before a worker is replaced. retry_stalled: try a job again
    that was killed although it hardly ran, which is a busy machine and not the job's doing.
    """

    def __init__(
        self,
        target: str,
        settings: Any = None,
        *,
        num_workers: int,
        timeout_s: float,
        memory_mib: int,
        recycle_after: int = 500,
        retry_stalled: bool = False,
    ) -> None:
        self._make_nest = lambda: Nest(target, settings, memory_mib * MEBIBYTE)
        self._num_workers = num_workers
        self._recycle_after = recycle_after
        self.timeout_s = timeout_s
        self.retry_stalled = retry_stalled
        self._open()

    def run(self, jobs: Sequence[Any]) -> list[Any | Failure]:
        """The value or failure of each job, in order. May be called from several threads.
        VerifierError: the target does not load."""
        if os.getpid() != self._owner:  # a fork: the workers are the parent's
            self._open()
        if not jobs:
            return []
        with Shift(self, jobs) as shift:
            return shift.work()

    def close(self) -> None:
        """End every process. The pool starts anew when it is used again."""
        self._finalizer()
        self._open()

    def _open(self) -> None:
        self._owner = os.getpid()
        self._changed = Condition()
        self._idle: list[Worker] = []
        self._num_started = 0
        self._nest = self._make_nest()
        self._finalizer = weakref.finalize(self, self._nest.close)

    # -- for the shifts

    def take(self, *, wait: bool) -> Worker | None:
        """An idle or a new worker; None, or a wait, where all are at work."""
        with self._changed:
            while True:
                while self._idle:
                    worker = self._idle.pop()
                    if self._nest.owns(worker):
                        return worker
                    worker.connection.close()  # its zygote died, and it with it
                    self._num_started -= 1
                if self._num_started < self._num_workers:
                    self._num_started += 1
                    break
                if not wait:
                    return None
                self._changed.wait()
        with ExitStack() as undo:
            undo.callback(self._one_fewer)
            worker = self._start()
            undo.pop_all()
            return worker

    def give_back(self, worker: Worker) -> None:
        """A worker that has done its job; it is replaced once it has done enough of them."""
        if worker.num_jobs >= self._recycle_after:
            self.end(worker)
            return
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def end(self, worker: Worker) -> int:
        """Kill a worker and wait for its end; its wait status."""
        try:
            return self._nest.end(worker)
        finally:
            self._one_fewer()

    def _start(self) -> Worker:
        for _ in range(MAX_STARTS - 1):
            try:
                return self._nest.start()
            except ZygoteGoneError:
                continue
        return self._nest.start()

    def _one_fewer(self) -> None:
        with self._changed:
            self._num_started -= 1
            self._changed.notify()
