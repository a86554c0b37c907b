"""A strict grader beside the training grader: recorded, never trained on, never fatal."""

import pytest

from gspo.errors import RecipeError
from gspo.recipes.load import load_recipe
from gspo.trainer.strict import strict_stats
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.strict import StrictlyWatched
from tests.recorder_rows import row

PROMPT = Prompt(id="p", text="1+1=", ids=[1], answer="2")


def rollout(text):
    return Rollout([1], [2], [True], [0.0], text, "stop", 0)


def lenient(completion):
    if completion == "breaks":
        raise ValueError("lenient")
    return {"reward": float(len(completion) > 0), "length": len(completion), "strict": 7}


def strict(completion, answer):
    if completion == "odd":
        raise ValueError("strict")
    return float(completion == answer)


WATCHED = StrictlyWatched(FunctionVerifier(lenient, "lenient"), FunctionVerifier(strict, "strict"))


def test_the_reward_is_the_training_graders_and_the_strict_one_a_part():
    verdicts = WATCHED.judge(PROMPT, [rollout(text) for text in ("2", "3", "odd", "breaks")])
    assert verdicts[:3] == [
        Verdict(1.0, {"length": 1.0, "strict": 1.0}),
        Verdict(1.0, {"length": 1.0, "strict": 0.0}),
        Verdict(1.0, {"length": 3.0}),
    ]
    assert (verdicts[3].reward, verdicts[3].parts) == (None, {"strict": 0.0})
    assert verdicts[3].failure == "ValueError: lenient"


def test_the_gold_answer_is_tried_with_the_training_grader():
    assert WATCHED.probe(PROMPT) is None
    gold = Prompt(id="p", text="1+1=", ids=[1], answer="2", columns={"gold": "3"})
    assert WATCHED.probe(gold) == Verdict(1.0, {"length": 1.0, "strict": 7.0})


def test_means_are_over_responses_that_both_scored():
    """Rewards 1 and 0.5 against 0 and 0.5; one broke here, one there."""
    rows = [
        row(reward=1.0, parts={"strict": 0.0}),
        row(reward=0.5, parts={"strict": 0.5}),
        row(reward=1.0, parts={}),
        row(reward=None, parts={"strict": 1.0}),
    ]
    values = {name: stat.value() for name, stat in strict_stats(rows).items()}
    assert values == {
        "reward/strict_mean": 0.25,
        "reward/strict_gap": 0.5,
        "verifier/strict_failed_share": 0.25,
    }
    assert strict_stats(rows[2:3])["reward/strict_mean"].value() is None


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["verifier.strict=strictly"],
            "verifier.strict is 'strictly'; wanted exact, math, file.py:name",
        ),
        (["verifier.marker='#'"], "verifier.marker goes with verifier.kind: exact"),
        (
            [
                "data={path: a.jsonl, columns: {answer: null}}",
                "model.path=/m",
                "coldstart=null",
                "verifier={kind: function, function: 'a.py:f', strict: exact}",
            ],
            "data.columns.answer is null, but verifier.strict: exact compares with it",
        ),
    ],
)
def test_what_does_not_go_together(overrides, words):
    with pytest.raises(RecipeError, match=words.replace("(", r"\(")):
        load_recipe("demo", overrides)


def test_the_marker_is_for_either():
    assert load_recipe("demo", ["verifier.strict=exact", "verifier.marker='>'"])
    assert load_recipe("demo", ["verifier.strict=a/b.py:grade"])
