"""Closed forms against tables and numbers worked by hand."""

import math

import pytest

from gspo.lab.normal import below, mean_interval, outside, students_t


def test_the_normal_distribution():
    assert below(0.0) == 0.5
    assert below(-1.959964) == pytest.approx(0.025, rel=1e-6)
    assert below(1.0) == pytest.approx(0.8413447, rel=1e-7)


def test_a_far_tail_keeps_its_digits():
    """1 - P would give 0 here."""
    assert below(-10.0) == pytest.approx(7.619853e-24, rel=1e-6)


def test_what_lies_outside_a_band():
    assert outside(0.0, 1.0, -1.959964, 1.959964) == pytest.approx(0.05, rel=1e-6)
    assert outside(1.0, 1.0, -math.inf, 1.0) == 0.5
    assert outside(0.5, 2.0, -0.5, 4.5) == pytest.approx(below(-0.5) + below(-2.0), rel=1e-12)


@pytest.mark.parametrize(("mean", "share"), [(0.0, 0.0), (0.1, 0.0), (0.2, 1.0), (-0.2, 1.0)])
def test_without_spread_all_or_none_is_outside(mean, share):
    assert outside(mean, 0.0, -0.1, 0.1) == share


@pytest.mark.parametrize(
    ("degrees", "table"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (19, 2.093), (200, 1.972)],
)
def test_students_t(degrees, table):
    assert students_t(degrees) == pytest.approx(table, abs=0.01)


def test_an_interval_worked_by_hand():
    """Mean 2, standard deviation 1: 4.303 / sqrt(3) either way."""
    mean, interval = mean_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert interval == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-3)


def test_one_value_has_no_interval():
    assert mean_interval([0.3]) == (0.3, None)
