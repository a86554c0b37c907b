"""Programs that want a reward they have not earned, or more than a program should get.

The task is f(x) = x * x + 1, with the tests below; a script reads x and prints f(x). `kind` counts
the ways to cheat: 1 ends early, 2 lying objects, 3 printed verdicts, 4 forged frames, 5 late code,
6 patched modules, 7 looking for the tests, 8 looking through memory, 9 replacing the driver,
10 answers by heart, 11 answers by circumstance, 12 never ending, 13 crashes, 14 memory, 15 many
processes, 16 survivors, 17 floods, 18 filling disks, 19 links and devices, 20 network, 21 other
processes, 22 secrets, 23 numbers, 24 values that cannot be sent, 25 formats, 26 no verdict at all,
27 a grader that takes long.
"""

from dataclasses import dataclass

FUNCTION_TESTS = "assert f(3) == 10\nassert f(5) == 26\nassert f(-7) == 50\nassert f(0.5) == 1.25"
SCRIPT_TESTS = {"inputs": ["3\n", "5\n", "-7\n"], "outputs": ["10\n", "26\n", "50\n"]}

ANY = frozenset({"wrong", "timeout", "crash", "resource", "policy"})
WRONG = frozenset({"wrong"})
CRASH = frozenset({"crash"})
TIMEOUT = frozenset({"timeout"})
RESOURCE = frozenset({"resource"})
POLICY = frozenset({"policy"})


@dataclass(frozen=True)
class Hostile:
    """A program and the faults that are right for it."""

    kind: int
    name: str
    code: str
    faults: frozenset[str] = ANY
    script: bool = False
