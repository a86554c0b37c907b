"""The article's worked example, number by number."""

import json
import math

import pytest

from gspo.errors import RecipeError
from gspo.lab.worked import worked_example
from gspo.settings import ClipRange, LengthFairClip


def test_the_articles_numbers():
    result = worked_example()
    assert result["token_ratios"] == pytest.approx([1.16, 0.75, 1.00, 1.25], rel=1e-12)
    assert result["s"] == pytest.approx(1.0212, abs=5e-5)
    assert math.log(result["s"]) == pytest.approx(0.02097, abs=5e-6)


def test_a_positive_advantage_loses_one_token_under_grpo_and_the_response_under_gspo():
    result = worked_example()
    assert result["grpo"]["positive"]["cut"] == [4]
    weights = result["grpo"]["positive"]["weights"]
    assert weights == pytest.approx([1.16 / 4, 0.75 / 4, 1.00 / 4, 0.0], rel=1e-12)
    assert weights[3] == 0.0
    assert result["gspo"]["positive"] == {"cut": True, "weights": [0.0] * 4}


def test_a_negative_advantage_loses_one_token_under_grpo_and_none_under_gspo():
    result = worked_example()
    assert result["grpo"]["negative"]["cut"] == [2]
    weights = result["grpo"]["negative"]["weights"]
    assert weights == pytest.approx([-1.16 / 4, 0.0, -1.00 / 4, -1.25 / 4], rel=1e-12)
    assert result["gspo"]["negative"]["cut"] is False
    assert result["gspo"]["negative"]["weights"] == pytest.approx([-0.2553] * 4, abs=5e-5)


def test_other_numbers_and_ranges():
    result = worked_example([0.5], [0.5], gspo_clip=LengthFairClip(low=0.1, high=0.1))
    assert result["s"] == 1.0
    assert result["gspo"]["positive"] == {"cut": False, "weights": [1.0]}
    wide = worked_example(gspo_clip=ClipRange(low=0.2, high=0.2), grpo_eps=0.5)
    assert wide["gspo"]["positive"]["cut"] is False
    assert wide["grpo"]["positive"]["cut"] == []
    assert json.loads(json.dumps(wide)) == wide


@pytest.mark.parametrize(
    ("sampling", "current", "message"),
    [
        ([0.5, 1.5], [0.5, 0.5], "sampling probability of token 2 is 1.5; wanted"),
        ([0.5], [0.0], "current probability of token 1 is 0.0; wanted"),
        ([0.5], [math.nan], "current probability of token 1 is nan"),
        ([], [], "no sampling probabilities"),
        ([0.5, 0.5], [0.5], "2 sampling and 1 current"),
    ],
)
def test_impossible_probabilities_are_named(sampling, current, message):
    with pytest.raises(RecipeError, match=message):
        worked_example(sampling, current)


def test_an_impossible_range_is_named():
    with pytest.raises(RecipeError, match=r"ClipRange.low is 1.5"):
        worked_example(grpo_eps=1.5)
