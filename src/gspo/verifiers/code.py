"""The code verifier: a program from a response, run in a sandbox, judged by values.

The tests' expected values never leave this process. A program gets inputs and sends back a plain
value; whatever it prints, patches or forges, it can only say a value, and a value is compared
here. See docs/code-verifier.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.code_compare import OutputRule
from gspo.verifiers.code_data import read_tests
from gspo.verifiers.code_extract import extract_code
from gspo.verifiers.code_grade import FAULTS, Grade, Rule, grade
from gspo.verifiers.code_tests import Test
from gspo.verifiers.sandbox.box import Choice, Sandbox
from gspo.verifiers.sandbox.job import Job, Limits, Outcome

Run = Callable[[Job, Limits], Outcome]


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """How programs are run and judged.

    sandbox: "auto" is the strongest layer whose canaries pass; "none" runs unconfined, by name.
    time_limit_s: CPU time of one test; a sleeping program gets `wall_s`. memory_mib: address space
    of one test: honest programs ask for stacks of 256 MiB. reward: 1 when all tests pass, or the
    share that does. output: how a script's stdout is compared. tolerance: of expected floats,
    relative or absolute. tests: the column; without it the answer holds the tests.
    """

    sandbox: Choice = "auto"
    num_workers: int = 2
    time_limit_s: float = 5.0
    memory_mib: int = 1024
    reward: Rule = "all"
    output: OutputRule = "lines"
    tolerance: float = 1e-6
    tests: str = "tests"

    def __post_init__(self) -> None:
        if self.num_workers < 1 or self.time_limit_s <= 0 or self.memory_mib < 128:
            raise RecipeError(
                f"code verifier has num_workers {self.num_workers}, time_limit_s {self.time_limit_s:g}, "
                f"memory_mib {self.memory_mib}; wanted at least 1, more than 0, at least 128"
            )

    @property
    def limits(self) -> Limits:
        """Of one test. The wall limit is a backstop: CPU time decides, on a busy machine too."""
        wall_s = 2 * self.time_limit_s + 1
        return Limits(cpu_s=self.time_limit_s, wall_s=wall_s, memory_mib=self.memory_mib)


@final
@dataclass(frozen=True)
class CodeVerifier:
    """Judges programs. Making one proves the sandbox first: VerifierError where none holds.

    A wrong program has the reward 0 and a part of 1 among wrong, timeout, crash, resource, policy
    (it tried what is forbidden) and format (no program in the response). A verdict fails only by
    our doing: broken sandbox, starved machine, unreadable tests. Thread-safe.
    """

    settings: CodeSettings = field(default_factory=CodeSettings)
    sandbox: Sandbox = field(init=False, compare=False)

    def __post_init__(self) -> None:
        made = Sandbox(self.settings.num_workers, self.settings.sandbox)
        object.__setattr__(self, "sandbox", made)

    def judge(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Verdict]:
        """One verdict a rollout, in order."""
        try:
            return [_verdict(grade) for grade in self.grades(prompt, rollouts)]
        except DataError as error:
            return [Verdict.failed(str(error)) for _ in rollouts]

    def grades(self, prompt: Prompt, rollouts: Sequence[Rollout]) -> list[Grade]:
        """The verdicts with their reasons; DataError where the prompt's tests cannot be read."""
        tests = self._tests(prompt)
        programs = [extract_code(r.text, ended=r.finish == "stop") for r in rollouts]
        return self._graded(programs, tests)

    def explained(self, prompt: Prompt, rollout: Rollout) -> tuple[Verdict, str | None]:
        """The verdict and, where there is a fault, what it is: for people."""
        (grade,) = self.grades(prompt, [rollout])
        return _verdict(grade), f"{grade.fault}: {grade.reason}" if grade.fault else None

    def check(self, prompt: Prompt) -> None:
        """DataError when the prompt's tests cannot be read. To be called before generating."""
        self._tests(prompt)

    def probe(self, prompt: Prompt) -> Verdict | None:
        """The verdict on the column "gold", a response or a bare program; None without one."""
        tests = self._tests(prompt)
        if "gold" not in prompt.columns:
            return None
        gold = str(prompt.columns["gold"])
        program = extract_code(gold, ended=True)
        return _verdict(self._graded([gold if program is None else program], tests)[0])

    def close(self) -> None:
        """End the sandbox; returns when no process of it is left."""
        self.sandbox.close()

    def _tests(self, prompt: Prompt) -> list[Test]:
        data = prompt.columns.get(self.settings.tests, prompt.answer)
        named = prompt.columns.get("entry_point")
        try:
            entry_point = None if named is None else str(named)
            return read_tests(data, entry_point, self.settings.output)
        except DataError as error:
            raise DataError(f"prompt {prompt.id}: {error}") from error

    def _graded(self, programs: Sequence[str | None], tests: Sequence[Test]) -> list[Grade]:
        return self.sandbox.map([self._grader(program, tests) for program in programs])

    def _grader(self, program: str | None, tests: Sequence[Test]) -> Callable[[Run], Grade]:
        settings = self.settings

        def judge(run: Run) -> Grade:
            if program is None:
                return Grade(0.0, "format", "no program in the response", 0, 0, len(tests))
            return grade(program, tests, run, settings.limits, settings.reward, settings.tolerance)

        return judge


def _verdict(grade: Grade) -> Verdict:
    if grade.reward is None:
        return Verdict.failed(grade.reason)
    return Verdict(grade.reward, {fault: float(fault == grade.fault) for fault in FAULTS})
