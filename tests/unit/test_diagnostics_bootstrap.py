"""Resampled groups: quantiles equal those of the repeated values, ends are those of Student's t."""

import math

import pytest
import torch

from gspo.diagnostics import bootstrap
from gspo.diagnostics.bootstrap import group_draws, interval, quantile_replicates


def test_a_replicate_draws_as_many_groups_as_there_are_and_follows_from_its_number():
    draws = group_draws(5, num_replicates=20, seed=3)
    assert draws.sum(1).tolist() == [5] * 20
    assert group_draws(5, num_replicates=7, seed=3).tolist() == draws[:7].tolist()
    assert group_draws(5, num_replicates=20, seed=4).tolist() != draws.tolist()


def test_quantiles_by_hand():
    values, group = torch.tensor([4.0, 1.0, 2.0]), torch.tensor([1, 0, 0])
    # Group 0 twice: 1 1 2 2. Both once: 1 2 4. Group 1 twice: 4 4.
    draws = torch.tensor([[2, 0], [1, 1], [0, 2]])
    assert quantile_replicates(values, group, 0.5, draws).tolist() == [1.5, 2.0, 4.0]
    assert quantile_replicates(values, group, 0.75, draws).tolist() == [2.0, 3.0, 4.0]


def test_quantiles_are_those_of_the_values_repeated(monkeypatch):
    monkeypatch.setattr(bootstrap, "CHUNK_ELEMENTS", 150)  # two replicates at once
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(60, generator=generator)
    group = torch.randint(0, 12, (60,), generator=generator)
    draws = group_draws(12, num_replicates=25)
    for q in (0.0, 0.15, 0.85, 1.0):
        want = [values.double().repeat_interleave(row[group].int()).quantile(q) for row in draws]
        torch.testing.assert_close(quantile_replicates(values, group, q, draws), torch.stack(want))


def test_a_replicate_without_a_value_says_nothing():
    got = quantile_replicates(
        torch.tensor([7.0]), torch.tensor([1]), 0.5, torch.tensor([[2, 0], [1, 1]])
    )
    assert math.isnan(got[0])
    assert got[1] == 7
    assert interval(got, 2) == (7, 7)
    assert all(math.isnan(end) for end in interval(got[:1], 2))


def test_the_interval_is_the_middle_and_wider_for_few_groups():
    replicates = torch.arange(10_001) / 10_000
    low, high = interval(replicates, 1_000_000)
    assert (low, high) == pytest.approx((0.025, 0.975), abs=1e-4)
    # Student's t with 15 degrees, 2.1314, times sqrt(16/15): a normal tail of 0.01384.
    low, high = interval(replicates, 16)
    assert (low, high) == pytest.approx((0.01384, 1 - 0.01384), abs=6e-4)
    assert interval(replicates, 1)[0] < 1e-3
