"""The verifier: responses in, verdicts out."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout
from gspo.verifiers.base import Verifier
from gspo.verifiers.code import CodeSettings, CodeVerifier
from gspo.verifiers.code_grade import FAULTS

RIGHT = "So:\n```python\ndef f(x):\n    return x * x\n```\n"
PROGRAMS = {
    RIGHT: None,
    "```python\ndef f(x): return x\n```": "wrong",
    "```python\ndef f(x):\n    while True: pass\n```": "timeout",
    "```python\ndef f(x): return 1 // 0\n```": "crash",
    "```python\ndef f(x): return bytes(2 ** 40)\n```": "resource",
    "```python\nimport os\ndef f(x): return os.fork()\n```": "policy",
    "It is x squared.": "format",
}


@pytest.fixture(scope="module")
def verifier():
    made = CodeVerifier(CodeSettings(sandbox="kernel", time_limit_s=0.5))
    yield made
    made.close()


def prompt(tests="assert f(3) == 9\nassert f(4) == 16", **columns):
    return Prompt("p7", "", (), answer=tests, columns=columns)


def rollout(text, finish="stop"):
    return Rollout((), (), (), (), text, finish, 0)


def test_it_is_a_verifier(verifier):
    assert isinstance(verifier, Verifier)


def test_each_fault_has_its_part(verifier):
    verdicts = verifier.judge(prompt(), [rollout(text) for text in PROGRAMS])
    for verdict, fault in zip(verdicts, PROGRAMS.values(), strict=True):
        assert verdict.reward == (fault is None)
        assert verdict.parts == {name: float(name == fault) for name in FAULTS}
        assert verdict.failure is None


def test_grades_say_why(verifier):
    texts = [text for text, fault in PROGRAMS.items() if fault == "crash"]
    (grade,) = verifier.grades(prompt(), [rollout(text) for text in texts])
    assert "ZeroDivisionError" in grade.reason


def test_a_response_that_was_cut_off_is_no_program(verifier):
    cut = RIGHT.rpartition("```")[0]
    ended, unfinished = verifier.judge(prompt(), [rollout(cut), rollout(cut, "length")])
    assert ended.reward == 1.0
    assert unfinished.parts["format"] == 1.0


def test_tests_come_from_the_column_before_the_answer(verifier):
    asked = prompt("x")
    with pytest.raises(DataError, match="prompt p7"):
        verifier.check(asked)
    asked = Prompt("p", "", (), answer="x", columns={"tests": ["assert f(2) == 4"]})
    verifier.check(asked)
    assert verifier.judge(asked, [rollout(RIGHT)])[0].reward == 1.0


def test_unreadable_tests_fail_every_response(verifier):
    for tests in ([], None, "assert True"):
        verdicts = verifier.judge(prompt(tests), [rollout(RIGHT), rollout("")])
        assert [verdict.reward for verdict in verdicts] == [None, None]
        assert "prompt p7" in verdicts[0].failure


def test_probe(verifier):
    assert verifier.probe(prompt()) is None
    assert verifier.probe(prompt(gold=RIGHT)).reward == 1.0
    assert verifier.probe(prompt(gold="def f(x): return x * x")).reward == 1.0
    assert verifier.probe(prompt(gold="def f(x): return 0")).reward == 0.0


def test_scripts_and_functions(verifier):
    script = "```python\nprint(int(input()) ** 2)\n```"
    asked = prompt({"inputs": ["3\n"], "outputs": ["9\n"]})
    assert verifier.judge(asked, [rollout(script)])[0].reward == 1.0
    asked = prompt({"inputs": [[3]], "outputs": [9]}, entry_point="f")
    assert verifier.judge(asked, [rollout(RIGHT)])[0].reward == 1.0
    asked = prompt("def check(candidate):\n    assert candidate(3) == 9", entry_point="f")
    assert verifier.judge(asked, [rollout(RIGHT)])[0].reward == 1.0


def test_share(verifier):
    settings = CodeSettings(sandbox="kernel", reward="share")
    shared = CodeVerifier(settings)
    half = rollout("```python\ndef f(x): return 9\n```")
    assert shared.judge(prompt(), [half])[0].reward == 0.5
    shared.close()


def test_from_many_threads_at_once(verifier):
    texts = [text for text, fault in PROGRAMS.items() if fault != "timeout"]

    def judge(_):
        verdicts = verifier.judge(prompt(), [rollout(text) for text in texts])
        return [verdict.reward for verdict in verdicts]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(judge, range(4))) == [[1.0] + [0.0] * (len(texts) - 1)] * 4


def test_settings_that_cannot_be():
    for wrong in ({"num_workers": 0}, {"time_limit_s": 0}, {"memory_mib": 8}):
        with pytest.raises(RecipeError, match="wanted at least 1"):
            CodeSettings(**wrong)
