"""Which groups a step trains on, by hand."""

import pytest

from gspo.errors import DataError
from gspo.trainer.dynamic_sampling import Harvest
from gspo.types import Group, Prompt, Rollout, Verdict


def group(name, *rewards, tokens=1):
    ids = [1] * tokens
    rollouts = [
        Rollout([1], ids, [True] * tokens, [0.0] * tokens, "", "stop", 0).judged(
            Verdict.failed("broke") if reward is None else Verdict(reward)
        )
        for reward in rewards
    ]
    return Group(Prompt(name, name, [1]), rollouts)


def names(groups):
    return [g.prompt.id for g in groups]


def test_as_many_new_prompts_as_groups_without_signal():
    harvest = Harvest(wanted=3, at_most=6)
    assert harvest.next_round() == 3
    harvest.add([group("a", 0, 0), group("b", 0, 1), group("c", 1, 1)])
    assert harvest.next_round() == 2
    harvest.add([group("d", 0, 1), group("e", 0, 0)])
    assert harvest.next_round() == 1
    harvest.add([group("f", 1, 0)])
    assert harvest.next_round() == 0
    assert names(harvest.chosen(step=1)) == ["b", "d", "f"]


def test_the_bound_fills_up_with_idle_groups_in_data_order():
    harvest = Harvest(wanted=3, at_most=4)
    harvest.add([group("a", 0, 0), group("b", 1, 1), group("c", 0, 1)])
    assert harvest.next_round() == 1
    harvest.add([group("d", 0, 0)])
    assert harvest.next_round() == 0
    assert names(harvest.chosen(step=1)) == ["a", "b", "c"]


@pytest.mark.parametrize("idle", [[0.5] * 4, [1, 1, 1, 1 + 1e-9], [None, None], [None, 1]])
def test_equal_rewards_of_every_kind_are_no_signal(idle):
    harvest = Harvest(wanted=1, at_most=2)
    harvest.add([group("a", *idle)])
    assert harvest.next_round() == 1


def test_a_group_with_signal_is_kept_whole():
    harvest = Harvest(wanted=1, at_most=9)
    harvest.add([group("a", 0, *[0.95] * 7)])
    assert harvest.next_round() == 0
    assert len(harvest.chosen(step=1)[0].rollouts) == 8


def test_a_step_without_any_signal_says_what_it_saw_and_what_to_do():
    harvest = Harvest(wanted=2, at_most=4)
    harvest.add([group(name, 0, 0) for name in "abcd"])
    with pytest.raises(DataError, match=r"step 7 sampled 4 prompts .* equal \(0\): nothing to le"):
        harvest.chosen(step=7)


def test_the_cost_is_told():
    harvest = Harvest(wanted=2, at_most=4)
    harvest.add([group("a", 0, 0, tokens=5), group("b", 0, 1, tokens=2)])
    harvest.add([group("c", 1, 1, tokens=3)])
    harvest.add([group("d", 1, 1, tokens=4)])
    assert {name: stat.value() for name, stat in harvest.stats().items()} == {
        "dynamic/sampled_groups": 4,
        "dynamic/replaced_groups": 2,
        "dynamic/filled_groups": 1,
        "dynamic/rounds": 3,
        "dynamic/idle_tokens_share": pytest.approx(24 / 28),
        "dynamic/reward_mean": 5 / 8,
        "dynamic/pass_rate": 5 / 8,
    }
