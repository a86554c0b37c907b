"""A weighted sum: by hand, with a part that breaks, and its probe."""

import pytest

from gspo.errors import DataError
from gspo.types import Prompt, Verdict
from gspo.verifiers.exact import ExactVerifier
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.parts import Part, WeightedParts
from gspo.verifiers.patterns import FormatVerifier
from gspo.verifiers.written import written

PROMPT = Prompt(id="p", text="?", ids=(1,), answer="42")


def by_length(completion):
    return {"reward": len(completion) / 4, "letters": len(completion)}


def breaks(completion):
    return 1 / (len(completion) - 2)


def of(*parts):
    return WeightedParts(tuple(Part(*part) for part in parts))


SUM = of(("right", ExactVerifier(), 1.0), ("length", FunctionVerifier(by_length, "length"), -0.5))


def test_the_sum_by_hand_and_every_part_on_record():
    verdicts = SUM.judge(PROMPT, [written("42"), written("4200")])
    assert verdicts == [
        Verdict(1 - 0.5 * 0.5, {"right": 1.0, "length": 0.5, "length/letters": 2.0}),
        Verdict(0 - 0.5 * 1.0, {"right": 0.0, "length": 1.0, "length/letters": 4.0}),
    ]
    assert SUM.judge(PROMPT, []) == []


def test_a_part_that_breaks_leaves_no_reward_and_names_itself():
    verifier = of(("right", ExactVerifier()), ("odd", FunctionVerifier(breaks, "odd")))
    broken, whole = verifier.judge(PROMPT, [written("42"), written("4")])
    assert (broken.reward, broken.failure) == (None, "odd: ZeroDivisionError: division by zero")
    assert whole.reward == -1


def test_the_probe_asks_every_part_that_has_a_gold_answer():
    assert of(("right", ExactVerifier(), 2.0), ("form", FormatVerifier())).probe(PROMPT) == Verdict(
        2.0
    )
    assert of(("form", FormatVerifier())).probe(PROMPT) is None


def test_the_probe_finds_the_part_that_refuses_the_gold_answer():
    """Though the sum is above 0."""
    gold = Prompt(id="p", text="?", ids=(1,), answer="42", columns={"gold": "forty-two"})
    verifier = of(
        ("right", ExactVerifier(), 1.0), ("any", FunctionVerifier(lambda completion: 5, "any"), 1.0)
    )
    assert verifier.probe(gold) == Verdict(0.0, {"right": 0.0})


def test_every_part_checks_the_prompts():
    needs_tests = FunctionVerifier(lambda completion, tests: 1, "tests")
    with pytest.raises(DataError, match="tests"):
        of(("right", ExactVerifier()), ("tests", needs_tests)).check_all([PROMPT])
