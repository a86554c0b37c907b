"""Rows, intervals and paired differences of the toy."""

from dataclasses import replace

import pytest
import torch

from gspo.errors import RecipeError
from gspo.lab import noise as lab
from gspo.lab.noise import noise_parts, noise_rows, run_part
from gspo.lab.toy import Toy

SMALL = Toy(length=4, steps=3)


def rows(sigmas, objectives, num_seeds=3, toys=(SMALL,)):
    return noise_rows(noise_parts(toys, sigmas, objectives, num_seeds))


def test_a_row_for_every_arm_and_sigma():
    found = rows([0.0, 0.3], ["gspo", "grpo"])
    assert [(row.arm.label, row.sigma) for row in found] == [
        (label, sigma)
        for sigma in (0.0, 0.3)
        for label in ("gspo 0.0225, 0.03", "gspo 0.0003, 0.0004", "grpo 0.2, 0.27")
    ]
    for row in found:
        assert row.interval is not None
        assert row.interval[0] < row.accuracy < row.interval[1]
        assert (row.length, row.seeds) == (4, 3)


def test_differences_are_to_grpo_at_the_same_sigma():
    found = rows([0.0, 0.3], ["gspo", "grpo"])
    grpo = {row.sigma: row.accuracy for row in found if row.arm.name == "grpo"}
    for row in found:
        if row.arm.name == "grpo":
            assert row.minus_grpo is None
        else:
            assert row.minus_grpo is not None
            mean, interval = row.minus_grpo
            assert mean == pytest.approx(row.accuracy - grpo[row.sigma], abs=1e-12)
            assert interval is not None


def test_without_grpo_there_is_no_difference_and_one_seed_has_no_interval():
    (row,) = rows([0.1], ["sapo"], num_seeds=1)
    assert (row.minus_grpo, row.interval, row.arm.clip) == (None, None, None)


def test_seeds_in_parts_are_the_seeds_in_one(monkeypatch):
    """And lengths come back in the order asked for, though long parts go first."""
    toys = (SMALL, replace(SMALL, length=8))
    whole = rows([0.1], ["gspo", "grpo"], num_seeds=5, toys=toys)
    monkeypatch.setattr(lab, "SEEDS_A_PART", 2)
    parts = noise_parts(toys, [0.1], ["gspo", "grpo"], 5)
    assert [part.seeds for part in parts[:3]] == [(0, 1), (2, 3), (4,)]
    done = []
    found = noise_rows(parts, lambda: done.append(1))
    assert len(done) == len(parts) == 6
    assert [row.length for row in found] == [4, 4, 4, 8, 8, 8]
    for row, one in zip(found, whole, strict=True):
        assert row.accuracy == pytest.approx(one.accuracy, abs=1e-6)
        assert row.interval == pytest.approx(one.interval, abs=1e-6)
        assert (row.seeds, row.cut_share) == (5, pytest.approx(one.cut_share, abs=1e-3))


def test_processes_find_what_one_finds(monkeypatch):
    parts = noise_parts([SMALL], [0.0, 0.3], ["sapo"], 2)
    alone = [run_part(part) for part in parts]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert [outcomes for _, outcomes in lab._computed(parts)] == alone


@pytest.mark.parametrize(
    ("toy", "sigma", "objective", "seeds", "message"),
    [
        (Toy(length=0), 0.1, "gspo", 1, "length is 0; wanted 1 to 4096"),
        (Toy(length=4097), 0.1, "gspo", 1, "length is 4097"),
        (SMALL, 0.1, "gspo", 0, "seeds is 0"),
        (Toy(length=4, initial=-1.0), 0.1, "gspo", 1, "initial is -1.0"),
        (SMALL, float("nan"), "gspo", 1, "sigma is nan"),
        (SMALL, 0.1, "gpso", 1, "objective is 'gpso'"),
    ],
)
def test_what_is_impossible_is_named(toy, sigma, objective, seeds, message):
    with pytest.raises(RecipeError, match=message):
        noise_parts([toy], [sigma], [objective], seeds)
