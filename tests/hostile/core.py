"""All hostile and honest programs against one layer; also to be run alone, as another user:

    python -m tests.hostile.core kernel

prints a JSON list of what went wrong. It needs no library but the standard one.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gspo.verifiers.code_data import read_tests
from gspo.verifiers.code_grade import Grade, grade
from gspo.verifiers.sandbox.box import Choice, Sandbox
from gspo.verifiers.sandbox.job import Limits
from tests.hostile import honest, idioms
from tests.hostile.breaking import BREAKING
from tests.hostile.cheating import CHEATING
from tests.hostile.evading import EVADING
from tests.hostile.scripts import SCRIPTS
from tests.hostile.table import FUNCTION_TESTS, SCRIPT_TESTS

HOSTILE = (*CHEATING, *BREAKING, *EVADING, *SCRIPTS)
FUNCTIONS = (*honest.FUNCTIONS, *idioms.FUNCTIONS)
HONEST_SCRIPTS = (*honest.SCRIPTS, *idioms.SCRIPTS)

SHORT = Limits(cpu_s=0.4, wall_s=2.0, memory_mib=512)
AMPLE = Limits(cpu_s=5.0, wall_s=20.0, memory_mib=1024)


def graded(sandbox: Sandbox, pairs: Sequence[tuple[str, object]], limits: Limits) -> list[Grade]:
    """Grades of programs on their tests, in order."""
    read = [(code, read_tests(tests, None, "lines")) for code, tests in pairs]
    return sandbox.map(
        [
            lambda run, code=code, tests=tests: grade(code, tests, run, limits, "all", 1e-6)
            for code, tests in read
        ]
    )


def refused(sandbox: Sandbox) -> Iterator[str]:
    """Honest programs that were not accepted."""
    functions = [(one.code, one.tests) for one in FUNCTIONS]
    scripts = [
        (one.code, {"inputs": [one.input], "outputs": [one.output]}) for one in HONEST_SCRIPTS
    ]
    every = [*FUNCTIONS, *HONEST_SCRIPTS]
    for one, given in zip(every, graded(sandbox, functions + scripts, AMPLE), strict=True):
        if given.reward != 1.0:
            yield f"honest, {one.name}: {given}"


def fooled(sandbox: Sandbox) -> Iterator[str]:
    """Hostile programs that got a reward, no verdict, or a fault that is not theirs."""
    pairs = [(one.code, SCRIPT_TESTS if one.script else FUNCTION_TESTS) for one in HOSTILE]
    for one, given in zip(HOSTILE, graded(sandbox, pairs, SHORT), strict=True):
        if given.reward != 0.0 or given.fault not in one.faults:
            yield f"hostile {one.kind}, {one.name}: wanted {sorted(one.faults)}, {given}"


def children() -> list[int]:
    """Pids below this process, without the browser that other tests may have opened in it: its
    processes come and go, and are not ours to kill."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"/playwright/" in command:
                continue
            parents[int(entry.name)] = int(fields[1])
    found, known = list[int](), {os.getpid()}
    while new := [pid for pid, parent in parents.items() if parent in known - {pid}]:
        found += new
        known = set(new)
        parents = {pid: parent for pid, parent in parents.items() if pid not in new}
    return found


def left_behind() -> dict[str, object]:
    """What must be the same before and after: descriptors, processes, files."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": sorted(children()),
        "files": [str(p) for d in ("/tmp", "/dev/shm", "/") for p in Path(d).glob("gspo-hostile*")],
    }


def failures(layer: Choice) -> list[str]:
    """Everything that is not as it should be on one layer."""
    before = left_behind()
    with Sandbox(2, layer) as sandbox:
        found = [*refused(sandbox), *fooled(sandbox)]
    after = left_behind()
    return found if after == before else [*found, f"left behind: {before} became {after}"]


if __name__ == "__main__":
    print(json.dumps({"uid": os.getuid(), "failures": failures(sys.argv[1])}))  # noqa: T201
