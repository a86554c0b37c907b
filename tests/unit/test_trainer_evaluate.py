"""Pass rates by hand."""

import pytest

from gspo.errors import DataError
from gspo.trainer.evaluate import pass_at_k, prompt_interval, summarise
from gspo.types import Group, Prompt, Rollout, Verdict


def group(name: str, *rewards: float | None) -> Group:
    rollouts = [
        Rollout([1], [2], [True], [0.0], "", "stop", 0, verdict=Verdict(reward))
        for reward in rewards
    ]
    return Group(Prompt(id=name, text="", ids=[1]), rollouts)


def test_pass_at_k_by_hand():
    assert pass_at_k(4, 1, 1) == 0.25
    assert pass_at_k(4, 1, 2) == 0.5  # 3 of the 6 pairs hold the one that passes
    assert pass_at_k(4, 0, 4) == 0.0
    assert pass_at_k(4, 2, 4) == 1.0


def test_prompts_weigh_the_same_and_unscored_responses_leave():
    sampled = [group("a", 1.0, 0.0, 0.0, 0.0), group("b", 1.0, 1.0, None, None)]
    greedy = [group("a", 0.0), group("b", 1.0)]
    result = summarise(sampled, greedy)
    assert result.pass_at_1 == (0.25 + 1.0) / 2
    assert result.greedy == 0.5
    assert result.unscored == 2
    # Prompt b has two scored answers, so nothing is said about more than two.
    assert result.pass_at_k == {2: (0.5 + 1.0) / 2}
    assert result.numbers()["eval/pass@2"] == 0.75


def test_no_scored_answer_is_an_error_not_a_zero():
    with pytest.raises(DataError, match="none of the answers to 1 held-out"):
        summarise([group("a", None)], [group("a", None)])


def test_interval_is_wilsons_for_one_sample_a_prompt():
    # 80 of 100, Wilson by hand: centre 0.7889, half width 0.0780; n - 1 instead of n makes the
    # effective number of trials 99.
    low, high = prompt_interval([1.0] * 80 + [0.0] * 20)
    assert low == pytest.approx(0.7111, abs=2e-3)
    assert high == pytest.approx(0.8666, abs=2e-3)


def test_interval_is_narrower_where_samples_agree_with_their_mean():
    wide = prompt_interval([1.0, 0.0] * 50)
    narrow = prompt_interval([0.5, 0.5, 0.6, 0.4] * 25)
    assert narrow[1] - narrow[0] < (wide[1] - wide[0]) / 3


def test_interval_has_a_width_at_the_ends_and_without_data():
    low, high = prompt_interval([1.0] * 256)
    assert 0.98 < low < 1.0
    assert high == pytest.approx(1.0)
    assert prompt_interval([]) == (0.0, 1.0)
