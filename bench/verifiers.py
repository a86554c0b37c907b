"""Speed of the maths verifier, what hostile answers cost it, and what it leaves behind.

    python -m bench.verifiers [--pairs 1800] [--hostile 200] [--seed 0]

Honest pairs are groups of 8 answers to one gold answer, as a rollout brings them: half of the
golds are numbers, half formulas; half of the answers are right. No pair comes twice, so nothing is
remembered. The hostile answers are those of the tests, shuffled into the same groups. Prints pairs
a second, the ratio of the times, and processes and descriptors before and after 2,000 jobs of the
workers, of which each tenth hangs or dies.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

from gspo.types import Prompt
from gspo.verifiers.math import MathVerifier
from gspo.verifiers.pool import WorkerPool
from gspo.verifiers.written import written
from tests.unit.test_verifiers_math import HOSTILE

GROUP = 8
LEAK_JOBS = 2000
Pair = tuple[str, str]


def numbers(draw: random.Random) -> tuple[str, list[str]]:
    """A gold number, and right and wrong ways to write it."""
    top, bottom = draw.randrange(1, 10_000), draw.choice((2, 4, 5, 8, 20, 25))
    value = top / bottom
    gold = rf"\frac{{{top}}}{{{bottom}}}"
    right = [
        rf"\dfrac{{{2 * top}}}{{{2 * bottom}}}",
        f"{value:.4f}",
        f"{top}/{bottom}",
        rf"${gold}$",
    ]
    wrong = [rf"\frac{{{top + 1}}}{{{bottom}}}", f"{value + 1:.4f}", str(top), rf"{gold}x"]
    return gold, right + wrong


def formulas(draw: random.Random) -> tuple[str, list[str]]:
    """A gold formula, and right and wrong ways to write it."""
    a, b, c = (draw.randrange(2, 1000) for _ in range(3))
    gold = f"{a}x^2+{b}x+{c}"
    right = [f"{c}+{b}x+{a}x^2", rf"x({a}x+{b})+{c}", rf"{a}x^{{2}} + {b}x + {c}", f"y={gold}"]
    wrong = [
        f"{a}x^2-{b}x+{c}",
        f"{a}x^3+{b}x+{c}",
        rf"\frac{{{a}}}{{x}}+{b}",
        f"{a}x^2+{b}x+{c + 1}",
    ]
    return gold, right + wrong


def honest(num_pairs: int, draw: random.Random) -> list[tuple[str, list[str]]]:
    """Groups of answers."""
    groups: list[tuple[str, list[str]]] = []
    for number in range(num_pairs // GROUP):
        gold, answers = (numbers if number % 2 else formulas)(draw)
        draw.shuffle(answers)
        groups.append((gold, [rf"So it is \boxed{{{answer}}}." for answer in answers]))
    return groups


def seconds(verifier: MathVerifier, groups: list[tuple[str, list[str]]]) -> tuple[float, float]:
    """Wall clock, and the longest of one group."""
    start, longest = time.perf_counter(), 0.0
    for gold, answers in groups:
        began = time.perf_counter()
        prompt = Prompt(id="p", text="?", ids=(), answer=gold)
        verifier.judge(prompt, [written(answer) for answer in answers])
        longest = max(longest, time.perf_counter() - began)
    return time.perf_counter() - start, longest


def mixed(
    groups: list[tuple[str, list[str]]], num_hostile: int, draw: random.Random
) -> list[tuple[str, list[str]]]:
    """The same groups with hostile answers among theirs."""
    mixture = [(gold, list(answers)) for gold, answers in groups]
    texts = list(HOSTILE.values())
    for number in range(num_hostile):
        draw.choice(mixture)[1].append(f"{number} {texts[number % len(texts)]}")
    return mixture


def warm() -> MathVerifier:
    """A verifier whose workers run."""
    verifier = MathVerifier()
    prompt = Prompt(id="p", text="?", ids=(), answer="x(x+1)")
    verifier.judge(prompt, [written(rf"\boxed{{x^2+x+0\cdot {k}}}") for k in range(GROUP)])
    return verifier


def processes(pid: int) -> int:
    """Below one."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return len(found) + sum(processes(int(child)) for child in found)


def leaks() -> tuple[tuple[int, int], tuple[int, int]]:
    """(processes, descriptors) before and after."""

    def now() -> tuple[int, int]:
        return processes(os.getpid()), len(os.listdir("/proc/self/fd"))

    before = now()
    pool = WorkerPool(
        "tests.unit.pool_target:prepare",
        {"offset": 0},
        num_workers=2,
        timeout_s=0.1,
        memory_mib=256,
    )
    odd = [{"do": "spin"}, {"do": "kill"}, {"do": "eat"}, {"do": "spawn"}]
    jobs = [
        odd[k // 10 % 4] if k % 10 == 0 else {"do": "echo", "value": k} for k in range(LEAK_JOBS)
    ]
    pool.run(jobs)
    pool.close()
    return before, now()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1800)
    parser.add_argument("--hostile", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    groups = honest(given.pairs, draw)
    kinds = {"numbers": groups[1::2], "formulas": groups[::2], "both": groups}
    for name, some in kinds.items():
        verifier = warm()
        taken_s, _ = seconds(verifier, some)
        verifier.close()
        count = sum(len(answers) for _, answers in some)
        print(f"{name:9} {count} pairs in {taken_s:.2f} s: {count / taken_s:.0f} a second")
    verifier = warm()
    mixed_s, longest_s = seconds(verifier, mixed(groups, given.hostile, draw))
    verifier.close()
    print(
        f"with {given.hostile} hostile answers {mixed_s:.2f} s, {mixed_s / taken_s:.2f} times the honest time"
    )
    print(f"longest group {longest_s:.2f} s")
    before, after = leaks()
    print(f"processes, descriptors before {LEAK_JOBS} jobs {before}, after {after}")


if __name__ == "__main__":
    main()
