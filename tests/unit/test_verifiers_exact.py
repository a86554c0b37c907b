"""The final answer as text or number."""

import pytest

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.exact import ExactVerifier, same_answer


def rollout(text):
    return Rollout((), (), (), (), text, "stop", 0)


def prompt(answer, **columns):
    return Prompt(
        id="p",
        text="What is 6*7? End with #### and the answer.",
        ids=(),
        answer=answer,
        columns=columns,
    )


def rewards(verifier, answer, *texts):
    return [v.reward for v in verifier.judge(prompt(answer), [rollout(text) for text in texts])]


@pytest.mark.parametrize(
    ("given", "gold", "same"),
    [
        ("42", "42", True),
        (" 42\t", "42", True),
        ("42.0", "42", True),
        ("+42", "42.", True),
        ("0042", "42", True),
        (".5", "0.50", True),
        ("-0", "0", True),
        ("-42", "42", False),
        ("42.01", "42", False),
        ("4 2", "42", False),
        ("42%", "42", False),
        ("42e0", "42", False),
        ("٤٢", "42", False),
        ("0.1", "0.1000000000000000055511151231257827", False),
        ("nan", "nan", True),
        ("Paris", " Paris", True),
        ("paris", "Paris", False),
        ("", "0", False),
    ],
)
def test_same_answer_by_hand(given, gold, same):
    assert same_answer(given, gold) is same


def test_the_answer_is_what_follows_the_last_marker_on_its_line():
    texts = (
        "#### 42",
        "so #### 41\n#### 42",
        "#### 42\nQuestion: 1+1?",
        "#### 41",
        "42",
        "####",
        "",
    )
    assert rewards(ExactVerifier(marker="####"), "42", *texts) == [1, 1, 1, 0, 0, 0, 0]


def test_without_a_marker_the_whole_response_is_the_answer():
    assert rewards(ExactVerifier(), 42, " 42\n", "it is 42", "42\n43") == [1, 0, 0]
    assert rewards(ExactVerifier(), "a\nb", "a\nb") == [1]


@pytest.mark.parametrize("answer", [None, "", " ", ["42"], {"a": 1}])
def test_a_prompt_without_an_answer_to_compare(answer):
    verifier = ExactVerifier(marker="####")
    (verdict,) = verifier.judge(prompt(answer), [rollout("#### ")])
    assert verdict.reward is None
    assert verdict.failure is not None
    assert "wanted text or a number" in verdict.failure
    with pytest.raises(DataError, match="prompt p has the answer"):
        verifier.probe(prompt(answer))


def test_the_gold_answer_is_tried_as_a_response():
    assert ExactVerifier(marker="####").probe(prompt(42)) == Verdict(1.0)
    assert ExactVerifier().probe(prompt(42)) == Verdict(1.0)
    assert ExactVerifier(marker="####").probe(prompt(42, gold="so #### 42")) == Verdict(1.0)
    assert ExactVerifier(marker="####").probe(prompt(42, gold="so 42")) == Verdict(0.0)
    assert ExactVerifier(marker="####").probe(prompt("4#### 2")) == Verdict(0.0)


def test_a_blank_marker_is_refused():
    for marker in ("", " "):
        with pytest.raises(RecipeError, match="exact.marker is "):
            ExactVerifier(marker=marker)
