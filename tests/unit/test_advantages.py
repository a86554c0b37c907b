"""Group advantages by hand."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from gspo import group_advantage
from gspo.errors import GspoError, NumericsError, RecipeError


def test_mean_and_std_by_hand():
    out = group_advantage([1, 0, 0, 1], ["a"] * 4)
    std = math.sqrt(1 / 3)
    assert_close(out, torch.tensor([0.5, -0.5, -0.5, 0.5]) / (std + 1e-6))
    assert out.dtype == torch.float32
    plain = group_advantage([1, 0, 0, 1], ["a"] * 4, scale="none")
    assert plain.tolist() == [0.5, -0.5, -0.5, 0.5]


def test_an_unscored_response_is_no_reward_of_zero():
    """Field failure 7."""
    out = group_advantage([1, 0, None, 1], ["a"] * 4)
    assert_close(out, torch.tensor([0.577349, -1.154699, 0.0, 0.577349]), rtol=1e-5, atol=0)
    negative = group_advantage([-1, -0.5, None, -1], ["a"] * 4)
    assert negative[2] == 0
    assert_close(negative[[0, 1, 3]], torch.tensor([-0.577, 1.154, -0.577]), rtol=1e-3, atol=0)
    assert group_advantage([None, None], ["a", "a"]).tolist() == [0.0, 0.0]


def test_leave_one_out_by_hand():
    """Field failure 5, trap 25: the lone loser gets -0.35, and with std nothing explodes."""
    rewards = torch.tensor([0.0] + [0.35] * 7)
    out = group_advantage(rewards, torch.zeros(8, dtype=torch.int64), baseline="loo", scale="none")
    assert_close(out, torch.tensor([-0.35] + [0.05] * 7))
    scaled = group_advantage(rewards, ["a"] * 8, baseline="loo")
    std = float(rewards.double().std())
    assert_close(scaled, torch.tensor([-0.35] + [0.05] * 7) / (std + 1e-6))


@pytest.mark.parametrize("baseline", ["mean", "loo"])
@pytest.mark.parametrize("scale", ["std", "none"])
def test_zero_spread_is_decided_on_the_whole_group(baseline, scale):
    """Field failures 5 and 14, trap 25: rounding is no spread, one loser among seven is."""
    for equal in ([0.35] * 7, [0.5] * 4, [1, 1, 1, 1 + 1e-9], torch.full((7,), 0.35)):
        out = group_advantage(equal, ["a"] * len(equal), baseline=baseline, scale=scale)
        assert not out.any()
    kept = group_advantage([0] + [0.95] * 7, ["a"] * 8, baseline=baseline, scale=scale)
    assert (kept != 0).all()
    assert kept[0] < 0 < kept[1]


def test_groups_are_named_and_not_counted():
    """Trap 24: interleaved, partial, of any size, with strings or numbers as names."""
    out = group_advantage([1, 10, 0, 20, 7], ["a", "b", "a", "b", "c"], scale="none")
    assert out.tolist() == [0.5, -5.0, -0.5, 5.0, 0.0]
    ids = torch.tensor([4, 9, 4, 9, 2])
    assert group_advantage([1, 10, 0, 20, 7], ids, scale="none").tolist() == out.tolist()
    assert group_advantage([], []).shape == (0,)


def test_a_group_with_one_scored_member_has_no_baseline():
    assert group_advantage([3, None, None], ["a"] * 3, baseline="loo").tolist() == [0, 0, 0]


@given(
    rewards=st.lists(st.one_of(st.none(), st.integers(-4, 4)), min_size=1, max_size=9),
    seed=st.integers(0, 9),
    baseline=st.sampled_from(["mean", "loo"]),
    scale=st.sampled_from(["std", "none"]),
)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_order_does_not_matter_and_a_group_sums_to_zero(rewards, seed, baseline, scale):
    group = [index % 3 for index in range(len(rewards))]
    out = group_advantage(rewards, group, baseline=baseline, scale=scale)
    order = torch.randperm(len(rewards), generator=torch.Generator().manual_seed(seed)).tolist()
    shuffled = group_advantage(
        [rewards[i] for i in order], [group[i] for i in order], baseline=baseline, scale=scale
    )
    assert_close(shuffled, out[order])
    for name in set(group):
        assert abs(float(out[[g == name for g in group]].sum())) < 1e-5
    assert all(out[i] == 0 for i, reward in enumerate(rewards) if reward is None)


def test_normalised_once_and_declared():
    """Trap 26: normalising normalised advantages again is the identity, so once is enough."""
    once = group_advantage([3, 1, 4, 1, 5], ["a"] * 5)
    assert_close(group_advantage(once, ["a"] * 5), once, rtol=1e-5, atol=0)
    assert float(once.std()) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_reward_that_is_not_finite_is_named(bad):
    with pytest.raises(NumericsError, match=rf"reward 2 is {bad}.*None for a response"):
        group_advantage(torch.tensor([0.0, 1.0, bad]), ["a"] * 3)


def test_messages_name_what_was_given():
    with pytest.raises(GspoError, match="2 rewards and 3 group ids"):
        group_advantage([0, 1], ["a", "b", "c"])
    unchecked = inspect.unwrap(group_advantage)  # past the annotation check that only tests have
    with pytest.raises(RecipeError, match="advantage baseline is 'lo'; did you mean 'loo'"):
        unchecked([0, 1], ["a", "a"], baseline="lo")
    with pytest.raises(RecipeError, match="advantage scale is 'var'; known are none, std"):
        unchecked([0, 1], ["a", "a"], scale="var")


def test_a_small_difference_on_a_large_reward_is_a_difference():
    half = 0.5**0.5
    for rewards in ([1e6, 1e6 + 1], [1000.001, 1000.002]):
        advantage = group_advantage(rewards, ["a", "a"])
        assert advantage.tolist() == pytest.approx([-half, half], rel=5e-3)


def test_rewards_whose_squares_overflow_are_refused():
    with pytest.raises(NumericsError, match=r"reward 1 is 1e\+200; wanted at most 1e\+100"):
        group_advantage([0.0, 1e200], ["a", "a"])
