"""One call of a pool: jobs out, values and failures in, each in its time."""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, runtime_checkable

from gspo.verifiers.frames import FrameError, pack, unpack
from gspo.verifiers.pool_nest import Worker

CHUNK_BYTES = 2**16  # read at a time
MAX_TRIES = 2
HARDLY = 0.1  # of the limit: a job that had less of a processor was not what took the time

FailureKind = Literal["timeout", "stalled", "memory", "crash", "error", "protocol"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no value. timeout: it worked until it was killed. stalled: it was killed, but
    hardly got to run, twice. memory: it wanted more than its limit. crash: its process died.
    error: it raised. protocol: job or value is not plain JSON."""

    kind: FailureKind
    reason: str


@runtime_checkable
class Workers(Protocol):
    """What a shift needs of the pool."""

    timeout_s: float
    retry_stalled: bool

    def take(self, *, wait: bool) -> Worker | None: ...
    def give_back(self, worker: Worker) -> None: ...
    def end(self, worker: Worker) -> int: ...


@dataclass(slots=True)
class _Job:
    index: int
    frame: bytes
    num_tries: int = 0
    deadline_s: float = 0.0
    start_cpu_s: float = 0.0


class Shift:
    """The jobs of one call. Leaving it ends workers that are in the middle of a job."""

    def __init__(self, workers: Workers, jobs: Sequence[Any]) -> None:
        self._workers = workers
        self._outcomes: list[Any | Failure] = [None] * len(jobs)
        self._waiting: deque[_Job] = deque()
        self._busy: dict[Worker, _Job] = {}
        self._selector = selectors.DefaultSelector()
        for index, job in enumerate(jobs):
            try:
                self._waiting.append(_Job(index, pack({"job": job})))
            except FrameError as error:
                self._outcomes[index] = Failure("protocol", f"the job is not plain JSON: {error}")

    def __enter__(self) -> Shift:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._selector.close()
        for worker in self._busy:
            self._workers.end(worker)

    def work(self) -> list[Any | Failure]:
        """Until every job has its outcome."""
        while self._waiting or self._busy:
            self._hand_out()
            for worker in self._with_news():
                self._hear(worker)
        return self._outcomes

    def _hand_out(self) -> None:
        """Jobs to idle workers; waits for one only when this call has none at work."""
        while self._waiting:
            worker = self._workers.take(wait=not self._busy)
            if worker is None:
                return
            job = self._waiting.popleft()
            job.num_tries += 1
            job.start_cpu_s = _cpu_s(worker.pid) if self._workers.retry_stalled else 0.0
            job.deadline_s = time.monotonic() + self._workers.timeout_s
            worker.num_jobs += 1
            self._busy[worker] = job
            self._selector.register(worker.connection, selectors.EVENT_READ, worker)
            try:
                worker.connection.sendall(job.frame)
            except OSError:  # it died idle: the end of its socket is news
                continue

    def _with_news(self) -> list[Worker]:
        """Workers with something to read, or past their deadline."""
        first_s = min(job.deadline_s for job in self._busy.values())
        ready = [key.data for key, _ in self._selector.select(max(first_s - time.monotonic(), 0))]
        now_s = time.monotonic()
        late = [worker for worker, job in self._busy.items() if job.deadline_s <= now_s]
        return ready or late  # what has arrived counts, however late

    def _hear(self, worker: Worker) -> None:
        """Read from one worker, or find that its time is up."""
        job = self._busy[worker]
        try:
            late = job.deadline_s <= time.monotonic()
            replies = [] if late and not self._readable(worker) else _read(worker)
        except EOFError:
            self._died(worker, job)
        except FrameError as error:
            self._leave(worker)
            self._workers.end(worker)
            self._outcomes[job.index] = Failure("protocol", f"unreadable reply: {error}")
        else:
            if replies:
                self._answered(worker, job, replies[0])
            elif late:
                self._ran_out(worker, job)

    def _answered(self, worker: Worker, job: _Job, reply: Any) -> None:
        self._leave(worker)
        outcome = self._outcomes[job.index] = _outcome(reply)
        if isinstance(outcome, Failure) and outcome.kind == "memory":
            self._workers.end(worker)  # what was half built may still be held somewhere
        else:
            self._workers.give_back(worker)

    def _died(self, worker: Worker, job: _Job) -> None:
        """Not every death is this job's doing: one that had served before may have died idle."""
        self._leave(worker)
        status = self._workers.end(worker)
        if worker.num_jobs > 1 and job.num_tries < MAX_TRIES:
            self._waiting.appendleft(job)
            return
        self._outcomes[job.index] = Failure("crash", f"its process died ({_how(status)})")

    def _ran_out(self, worker: Worker, job: _Job) -> None:
        limit_s = self._workers.timeout_s
        stalled = (
            self._workers.retry_stalled and _cpu_s(worker.pid) - job.start_cpu_s < limit_s * HARDLY
        )
        self._leave(worker)
        self._workers.end(worker)
        if stalled and job.num_tries < MAX_TRIES:
            self._waiting.appendleft(job)
            return
        kind: FailureKind = "stalled" if stalled else "timeout"
        self._outcomes[job.index] = Failure(kind, f"killed after {limit_s:g} s")

    def _leave(self, worker: Worker) -> None:
        self._selector.unregister(worker.connection)
        del self._busy[worker]

    def _readable(self, worker: Worker) -> bool:
        return any(key.data is worker for key, _ in self._selector.select(0))


def _read(worker: Worker) -> list[Any]:
    """Replies that are whole now. EOFError: its end of the socket is closed."""
    try:
        chunk = worker.connection.recv(CHUNK_BYTES)
    except OSError as error:
        raise EOFError from error
    if not chunk:
        raise EOFError
    return [unpack(payload) for payload in worker.reader.feed(chunk)]


def _outcome(reply: Any) -> Any | Failure:
    if isinstance(reply, dict) and "value" in reply:
        return reply["value"]
    if isinstance(reply, dict) and reply.keys() == {"kind", "reason"}:
        return Failure(reply["kind"], reply["reason"])
    return Failure("protocol", "a reply with neither value nor reason")


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far, in seconds; 0 for one that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code}" if code < 0 else f"exit code {code}"
