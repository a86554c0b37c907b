"""Speed and cleanness of the code sandbox: `python -m bench.code_jobs [layer] [jobs]`.

Prints the median time of a job, jobs a second with two workers, and what is left afterwards.
"""

import statistics
import sys
import time

from gspo.verifiers.sandbox.box import Sandbox
from gspo.verifiers.sandbox.job import Call, Limits, Program
from tests.hostile.core import left_behind

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=1024)
JOBS = (
    Call("def f(x): return sorted(x)", "f", [[3, 1, 2]]),
    Program("print(sum(map(int, input().split())))", b"1 2 3\n"),
)


def main(layer: str = "auto", num_jobs: str = "2000") -> None:
    """Half functions, half scripts."""
    before = left_behind()
    started = time.perf_counter()
    with Sandbox(2, layer) as sandbox:
        print(f"{sandbox.layer}: {len(sandbox.probes)} probes, {_since(started):.2f} s to start")
        sandbox.map([lambda run: run(JOBS[0], LIMITS)] * 4)
        started = time.perf_counter()
        tasks = [lambda run, job=JOBS[i % 2]: run(job, LIMITS) for i in range(int(num_jobs))]
        ended = sandbox.map(tasks)
        total_s = _since(started)
        walls = [outcome.wall_s for outcome in ended]
    print(f"median job {statistics.median(walls) * 1000:.1f} ms, {len(ended) / total_s:.0f} jobs/s")
    print(f"ends: { ({str(o.end) for o in ended}) }")
    after = left_behind()
    print(f"left behind: {'nothing' if after == before else (before, after)}")


def _since(start: float) -> float:
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*sys.argv[1:])
