"""The worker pool: results in order, workers that hang, crash or overeat, and nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gspo.errors import VerifierError
from gspo.verifiers.pool import Failure, WorkerPool
from tests import loops
from tests.hostile.core import left_behind

HERE = "tests.unit.pool_target"


def made(**settings):
    defaults = {"num_workers": 2, "timeout_s": 20.0, "memory_mib": 256}
    return WorkerPool(f"{HERE}:prepare", {"offset": 0}, **{**defaults, **settings})


@pytest.fixture(scope="module")
def pool():
    shared = made()
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def impatient():
    shared = made(timeout_s=0.5)
    yield shared
    shared.close()


def children(pid):
    """Processes below one, at any depth, that are no zombies and no test runner of ours."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *children(int(child))]
    return found


def kinds(outcomes):
    return [o.kind if isinstance(o, Failure) else o for o in outcomes]


# -- values


def test_values_in_the_order_of_the_jobs(pool):
    jobs = [{"do": "sleep", "s": 0.05 if k % 3 else 0.0, "value": k} for k in range(20)]
    assert pool.run(jobs) == list(range(20))
    assert pool.run([]) == []


def test_values_are_plain_json_and_none_is_one(pool):
    values = [None, {"a": [1, 2.5, "\ud800é"]}, "", 10**30, False]
    assert pool.run([{"do": "echo", "value": value} for value in values]) == values


def test_settings_reach_the_workers():
    with_settings = WorkerPool(
        f"{HERE}:prepare", {"offset": 7}, num_workers=1, timeout_s=20, memory_mib=256
    )
    assert with_settings.run([{"do": "offset"}]) == [7]
    with_settings.close()


def test_long_jobs_and_values(pool):
    text = "x" * 3_000_000
    assert pool.run([{"do": "echo", "value": text}] * 3) == [text] * 3


# -- failures


def test_what_a_job_raises_is_its_failure(pool):
    outcomes = pool.run(
        [{"do": "raise"}, {"do": "exit"}, {"do": "echo", "value": 1}, {"do": "deep"}]
    )
    assert kinds(outcomes) == ["error", "error", 1, "error"]
    assert outcomes[0].reason == "ValueError: no such luck"


def test_what_is_no_json_is_a_failure_of_its_own_job(pool):
    jobs = [
        {"do": "echo", "value": float("nan")},
        {"do": "nan"},
        {"do": "echo", "value": {1}},
        {"do": "set"},
    ]
    assert kinds(pool.run(jobs)) == ["protocol"] * 4


def test_a_job_that_hangs_is_killed_and_its_worker_replaced(impatient):
    jobs = [
        {"do": "spin"},
        {"do": "echo", "value": 1},
        {"do": "ignore"},
        {"do": "echo", "value": 2},
    ]
    outcomes = impatient.run([*jobs, {"do": "sleep", "s": 1000, "value": 0}])
    assert kinds(outcomes) == ["timeout", 1, "timeout", 2, "timeout"]
    assert outcomes[0].reason == "killed after 0.5 s"
    assert impatient.run([{"do": "echo", "value": 3}] * 4) == [3] * 4


def test_a_job_that_hardly_ran_is_tried_again_and_then_stalled():
    busy_machine = made(timeout_s=0.5, retry_stalled=True)
    jobs = [{"do": "sleep", "s": 1000, "value": 0}, {"do": "spin"}]
    assert kinds(busy_machine.run(jobs)) == ["stalled", "timeout"]
    busy_machine.close()


def test_a_job_that_dies(pool):
    jobs = [{"do": "kill"}, {"do": "echo", "value": 1}, {"do": "_exit"}, {"do": "segfault"}]
    assert kinds(pool.run(jobs)) == ["crash", 1, "crash", "crash"]


def test_a_job_that_overeats_and_the_next_one(pool):
    assert kinds(pool.run([{"do": "eat"}, {"do": "echo", "value": 1}])) == ["memory", 1]


def test_a_worker_killed_while_idle_costs_nothing(pool):
    pids = set(pool.run([{"do": "pid"}] * 4))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert pool.run([{"do": "echo", "value": k} for k in range(4)]) == [0, 1, 2, 3]


def test_a_dead_zygote_is_started_again():
    pool = made()
    parent = pool.run([{"do": "parent"}])[0]
    os.kill(parent, signal.SIGKILL)
    assert kinds(pool.run([{"do": "echo", "value": k} for k in range(6)])) == list(range(6))
    assert pool.run([{"do": "parent"}])[0] != parent
    pool.close()


def test_workers_are_replaced_after_enough_jobs():
    pool = made(num_workers=1, recycle_after=3)
    pids = pool.run([{"do": "pid"}] * 7)
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]
    pool.close()


@pytest.mark.parametrize("target", [f"{HERE}:nothing", "no.such.module:f", f"{HERE}:broken"])
def test_a_target_that_does_not_load(target):
    pool = WorkerPool(target, None, num_workers=1, timeout_s=5, memory_mib=256)
    with pytest.raises(VerifierError, match="cannot load"):
        pool.run([1])


# -- wherever it is used


def test_from_threads_and_an_event_loop(pool):
    def squares(_):
        return pool.run([{"do": "echo", "value": k} for k in range(10)])

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(squares, range(12))) == [list(range(10))] * 12

    async def in_a_loop():
        return squares(0), await asyncio.to_thread(squares, 0)

    assert loops.run(in_a_loop()) == (list(range(10)), list(range(10)))


def test_from_a_fork_of_the_process(pool):
    """The fork has workers of its own, and leaves the parent's alone."""
    ours = set(pool.run([{"do": "pid"}] * 4))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            outcomes = pool.run([{"do": "echo", "value": 5}])
            os.write(writing, str(outcomes).encode())
            pool.close()
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 100) == b"[5]"
    os.close(reading)
    assert set(pool.run([{"do": "pid"}] * 4)) & ours


# -- nothing is left


def test_no_process_and_no_descriptor_is_left():
    before = left_behind()
    pool = made(timeout_s=0.3)
    pool.run([{"do": "echo", "value": 1}, {"do": "spin"}, {"do": "kill"}, {"do": "spawn"}] * 5)
    pool.close()
    assert left_behind() == before
    assert pool.run([{"do": "echo", "value": 1}]) == [1]  # and it starts again
    pool.close()


@pytest.mark.parametrize("end", ["leave", "kill", "collect"])
def test_no_process_outlives_the_pools(end, tmp_path):
    """However its process ends. The pids are written by a process of its own."""
    script = f"""
import gc, os, signal, sys, time
from gspo.verifiers.pool import WorkerPool
pool = WorkerPool("{HERE}:prepare", {{"offset": 0}}, num_workers=2, timeout_s=50, memory_mib=256)
print(*pool.run([{{"do": "pid"}}] * 4), *pool.run([{{"do": "parent"}}]), flush=True)
if {end!r} == "kill": os.kill(os.getpid(), signal.SIGKILL)
if {end!r} == "collect":
    del pool
    gc.collect()
    print("collected", flush=True)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
    )
    pids = [int(pid) for pid in run.stdout.split() if pid.isdigit()]
    assert len(pids) == 5, run.stderr
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)  # the orphans' end is nobody's event
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert "Warning" not in run.stderr
