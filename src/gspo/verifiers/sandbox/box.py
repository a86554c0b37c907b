"""The sandbox: worker threads, each with its own fork server, and the layer that probes chose."""

from __future__ import annotations

import itertools
import os
import pwd
import queue
import random
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal, TypeVar, final

from gspo.errors import GspoWarning, VerifierError
from gspo.verifiers.sandbox import layers
from gspo.verifiers.sandbox.canaries import Probe, described, probe
from gspo.verifiers.sandbox.client import ForkServer, ServerBroken
from gspo.verifiers.sandbox.ending import outcome
from gspo.verifiers.sandbox.job import End, Job, Limits, Outcome

Result = TypeVar("Result")
Run = Callable[[Job, Limits], Outcome]
Choice = Literal["auto"] | layers.LayerName

#: systemd's range for users that exist only while something runs: nobody else's files or processes.
_UIDS = range(61184, 65520)
TRIES = 2  # of a job that we, not the program, caused to fail


@final
class Sandbox:
    """Runs jobs, `num_workers` at a time, from any thread. Nothing is left after `close`.

    layer "auto" takes the strongest that its canaries prove: gVisor, bubblewrap, or the kernel's
    own Landlock and seccomp, which are on in all three. VerifierError, with the probe table, when
    none holds. "none" leaves limits and a uid of its own, and warns.
    """

    def __init__(self, num_workers: int, layer: Choice = "auto") -> None:
        self.layer, self.probes = _none() if layer == "none" else _choose(layer)
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        closing = threading.Event()
        workers = [_Worker(self.layer, uid, closing) for uid in _unused_uids(num_workers)]
        threads = [
            threading.Thread(target=_work, args=(self._tasks, worker), name="sandbox", daemon=True)
            for worker in workers
        ]
        for thread in threads:
            thread.start()
        self._finalizer = weakref.finalize(self, _end, self._tasks, threads, closing)

    def map(self, tasks: Sequence[Callable[[Run], Result]]) -> list[Result]:
        """Call each with a function that runs jobs, in a worker's thread; results in order."""
        if not self._finalizer.alive:
            raise VerifierError("the sandbox is closed; make a new one")
        made = [_Task(task) for task in tasks]
        for task in made:
            self._tasks.put(task)
        try:
            return [task.future.result() for task in made]
        except BaseException:
            for task in made:
                task.future.cancel()
            raise

    def run(self, job: Job, limits: Limits) -> Outcome:
        """One job."""
        return self.map([lambda run: run(job, limits)])[0]

    def close(self) -> None:
        """End every worker and fork server; returns when they are gone, after the running jobs."""
        self._finalizer()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Task:
    def __init__(self, task: Callable[[Run], Any]) -> None:
        self.task, self.future = task, Future[Any]()

    def do(self, run: Run) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.task(run))
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the result
            self.future.set_exception(error)


def _end(
    tasks: queue.SimpleQueue[_Task | None],
    threads: list[threading.Thread],
    closing: threading.Event,
) -> None:
    closing.set()
    try:
        while (task := tasks.get_nowait()) is not None:
            task.future.cancel()
    except queue.Empty:
        pass
    for _ in threads:
        tasks.put(None)
    for thread in threads:
        thread.join()


def _work(tasks: queue.SimpleQueue[_Task | None], worker: _Worker) -> None:
    try:
        while (task := tasks.get()) is not None:
            task.do(worker.run)
    finally:
        worker.close()


class _Worker:
    """One fork server, started when first needed and again when it broke."""

    def __init__(self, layer: layers.LayerName, uid: int | None, closing: threading.Event) -> None:
        self._layer: layers.LayerName = layer
        self._uid, self._closing = uid, closing
        self._server: ForkServer | None = None

    def run(self, job: Job, limits: Limits) -> Outcome:
        """A job that failed by our doing is tried once more, with twice the wall time."""
        ended = Outcome(End.broken)
        for attempt in range(TRIES):
            ended = self._try(job, replace(limits, wall_s=limits.wall_s * (attempt + 1)))
            if ended.end is not End.broken:
                break
        return ended

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _try(self, job: Job, limits: Limits) -> Outcome:
        if self._closing.is_set():
            return Outcome(End.broken, reason="the sandbox was closed meanwhile")
        try:
            if self._server is None:
                self._server = ForkServer(layers.command(self._layer, self._uid), self._uid)
            return outcome(job, self._server.run(job, limits), limits)
        except (ServerBroken, FileNotFoundError) as error:
            self.close()
            return Outcome(End.broken, reason=str(error))


def _choose(choice: Choice) -> tuple[layers.LayerName, list[Probe]]:
    wanted: list[layers.LayerName] = layers.available() if choice == "auto" else [choice]
    tables: dict[str, list[Probe]] = {}
    for layer in wanted:
        worker = _Worker(layer, _unused_uids(1)[0], threading.Event())
        try:
            tables[layer] = probe(worker.run)
        finally:
            worker.close()
        if all(line.passed for line in tables[layer]):
            return layer, tables[layer]
    raise VerifierError(
        f"no sandbox holds on this machine, so programs from a model are not run.\n{described(tables)}\n"
        "Install bubblewrap, use a kernel from 5.13 on with Landlock, or, if the model's programs "
        "may do what they like on this machine, set verifier.sandbox: none"
    )


def _none() -> tuple[layers.LayerName, list[Probe]]:
    warnings.warn(
        "sandbox is none: programs from a model may read, write, send and kill whatever their user "
        "may; only their time and memory are limited",
        GspoWarning,
        stacklevel=4,
    )
    return "none", []


def _unused_uids(how_many: int) -> list[int | None]:
    """One for each worker, at random so that two runs seldom meet; None for all but root."""
    if os.geteuid() != 0:
        return [None] * how_many
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    free = [uid for uid in _UIDS if uid not in taken]
    start = random.SystemRandom().randrange(len(free))
    return list(itertools.islice(itertools.cycle(free[start:] + free[:start]), how_many))
