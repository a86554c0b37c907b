"""Rewards, groups, lengths and the engine gap by hand."""

import math

import pytest
import torch

from gspo.diagnostics.rollouts import engine_gap_stats, rollout_stats
from gspo.segments import Segments
from gspo.stats import merge

NONE = math.nan


def stats_of(reward, group, lengths=None, truncated=None):
    return rollout_stats(
        torch.tensor(reward),
        torch.tensor(group, dtype=torch.int64),
        torch.tensor(lengths or [5] * len(reward), dtype=torch.int64),
        torch.tensor(truncated or [False] * len(reward), dtype=torch.bool),
    )


def values(*columns) -> dict[str, float | None]:
    return {name: stat.value() for name, stat in stats_of(*columns).items()}


def test_unscored_responses_are_counted_and_leave_the_mean():
    got = values([1.0, 0.0, NONE, 1.0], [0, 0, 0, 0])
    assert got["reward/mean"] == pytest.approx(2 / 3)
    assert got["reward/std"] == pytest.approx(math.sqrt((2 * (1 / 3) ** 2 + (2 / 3) ** 2) / 2))
    assert (got["reward/min"], got["reward/max"]) == (0.0, 1.0)
    assert got["reward/pass_rate"] == pytest.approx(2 / 3)
    assert got["verifier/failed_share"] == 0.25


def test_groups_are_mixed_solved_failed_or_unscored():
    got = values(
        [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, NONE, NONE, 1.0, NONE],
        [7, 7, 3, 3, 9, 9, 4, 4, 5, 5],
    )
    assert got["groups/mixed"] == 1 / 5
    assert got["groups/zero_variance"] == 4 / 5
    assert got["groups/all_solved"] == 2 / 5
    assert got["groups/all_failed"] == 1 / 5
    assert got["groups/unscored"] == 1 / 5


def test_tokens_of_groups_without_a_signal_are_counted():
    # Group 7 is mixed and has 2 + 3 tokens; group 3 is solved and has 10 + 5.
    got = values([1.0, 0.0, 1.0, 1.0], [7, 7, 3, 3], [2, 3, 10, 5])
    assert got["groups/idle_tokens_share"] == 15 / 20


def test_members_of_a_group_need_not_lie_side_by_side():
    assert values([1.0, 0.0, 0.0, 0.0], [2, 8, 2, 8])["groups/mixed"] == 1 / 2


def test_equal_means_equal_and_not_a_small_standard_deviation():
    seven = [0.35] * 7
    assert values(seven, [0] * 7)["groups/zero_variance"] == 1.0
    assert values([*seven, 0.35000002], [0] * 8)["groups/mixed"] == 1.0


def test_graded_rewards_that_differ_are_mixed_even_where_all_pass():
    got = values([0.6, 0.9], [0, 0])
    assert (got["groups/mixed"], got["groups/all_solved"]) == (1.0, 0.0)


def test_lengths_by_outcome_leave_empty_responses_out():
    got = values(
        [1.0, 0.0, 1.0, NONE, 0.0, 1.0, 0.0, 0.0],
        [0, 0, 1, 1, 1, 0, 0, 0],
        [10, 40, 20, 30, 0, 0, 40, 40],
        [False, True, False, False, False, False, True, False],
    )
    assert got["length/mean"] == 30.0
    assert got["length/max"] == 40
    assert got["length/mean_correct"] == 15.0
    assert got["length/mean_wrong"] == 40.0
    assert got["length/truncated_share"] == 0.25
    assert got["length/empty_share"] == 0.25


def test_nothing_scored_and_nothing_sampled_are_no_data():
    got = values([NONE, NONE], [0, 0])
    for name in ("reward/mean", "reward/min", "reward/max", "reward/pass_rate"):
        assert got[name] is None, name
    assert (got["length/mean_correct"], got["groups/all_failed"]) == (None, 0.0)
    nothing = values([], [])
    assert set(nothing.values()) == {None}


def test_two_parts_of_a_step_add_up_to_the_whole():
    parts = merge([stats_of([1.0, 0.0], [0, 0]), stats_of([NONE, 1.0, 1.0], [1, 1, 1])])
    whole = stats_of([1.0, 0.0, NONE, 1.0, 1.0], [0, 0, 1, 1, 1])
    assert {n: s.value() for n, s in parts.items()} == pytest.approx(
        {n: s.value() for n, s in whole.items()}
    )


def gap(engine, old, lengths) -> dict[str, float | None]:
    stats = engine_gap_stats(
        torch.tensor(engine), torch.tensor(old), Segments.from_lengths(lengths)
    )
    return {name: stat.value() for name, stat in stats.items()}


def test_the_gap_is_trainer_less_engine_averaged_within_each_response():
    got = gap([-1.0, -1.0, -2.0], [-1.5, -1.25, -1.75], [2, 1])
    assert got["gap/log_s_mean"] == pytest.approx((-0.375 + 0.25) / 2)
    assert got["gap/log_s_std"] == pytest.approx(0.625 / math.sqrt(2))
    assert got["gap/token_std"] == pytest.approx(
        torch.tensor([-0.5, -0.25, 0.25]).double().std().item()
    )
    assert got["gap/token_max_abs"] == 0.5
    assert got["gap/missing"] == 0


def test_tokens_without_an_engine_log_prob_are_counted_and_left_out():
    got = gap([NONE, -1.0, NONE, -3.0], [-1.0, -1.5, -9.0, -3.25], [2, 1, 1])
    assert got["gap/missing"] == 2
    assert got["gap/log_s_mean"] == pytest.approx((-0.5 - 0.25) / 2)
    assert got["gap/token_max_abs"] == 0.5
    none = gap([NONE], [-1.0], [1])
    assert (none["gap/log_s_mean"], none["gap/token_max_abs"], none["gap/token_std"]) == (
        *(None, None),
        None,
    )


def test_an_infinite_engine_log_prob_shows():
    assert gap([-math.inf], [-1.0], [1])["gap/token_max_abs"] == math.inf


def test_a_small_gap_is_not_lost_beside_large_log_probs():
    engine = torch.full((1000,), -8.0)
    old = engine + 2.0**-20  # one step of float32 at 8 is 2^-20
    stats = engine_gap_stats(engine, old, Segments.from_lengths([1000]))
    assert stats["gap/log_s_mean"].value() == 2.0**-20
