"""Engine against trainer, by hand."""

import math

import pytest
import torch

from gspo.diagnostics.gap import gap_report
from gspo.segments import Segments

NAN = math.nan


@pytest.fixture
def report():
    # Response 0: gaps 0.1, 0.3. Response 1: -0.2, missing, 0. Response 2: nothing known.
    engine = torch.tensor([-1.0, -2.0, -0.5, NAN, -3.0, NAN])
    trainer = torch.tensor([-0.9, -1.7, -0.7, -1.0, -3.0, -1.0])
    return gap_report(engine, trainer, Segments.from_lengths([2, 3, 1]))


def test_means_and_spreads_by_hand(report):
    assert (report.num_responses, report.num_tokens, report.missing) == (2, 4, 2)
    assert report.mean == pytest.approx((0.2 - 0.1) / 2)  # responses: 0.2 and -0.1
    assert report.std == pytest.approx(0.3 / math.sqrt(2), rel=1e-6)
    assert report.token_mean == pytest.approx(0.2 / 4)
    assert report.product_mean == pytest.approx((0.4 - 0.2) / 2)
    assert report.first.mean == pytest.approx((0.1 - 0.2) / 2)
    assert report.last.mean == pytest.approx((0.3 + 0.0) / 2)


def test_buckets_by_hand(report):
    assert [(p.name, p.count) for p in report.by_length] == [("2-3", 2)]
    positions = {p.name: (p.count, p.mean) for p in report.by_position}
    assert positions["1"] == (2, pytest.approx(-0.05))
    assert positions["2-3"] == (2, pytest.approx(0.15))
    # exp(-0.9) = 0.41, exp(-1.7) = 0.18, exp(-0.7) = 0.50 are above 0.1; exp(-3) = 0.0498 is not.
    assert [(p.name, p.count) for p in report.by_probability] == [("0.1..1", 3), ("1e-2..1e-1", 1)]


def test_worst_tokens_come_first_and_equal_ones_not_at_all(report):
    assert [(w.response, w.position) for w in report.worst] == [(0, 1), (1, 0), (0, 0)]


def test_bias_and_noise_are_judged_against_the_band():
    segments = Segments.from_lengths([1] * 4)
    trainer = torch.zeros(4)
    biased = gap_report(trainer - 2e-4, trainer, segments)
    assert "bias 0.0002" in biased.unsafe(3e-4)
    assert biased.unsafe(0.01) is None
    noise = torch.tensor([1e-3, -1e-3, 1e-3, -1e-3])
    noisy = gap_report(trainer + noise, trainer, segments)
    assert noisy.mean == 0
    assert "spread" in noisy.unsafe(3e-4)
    assert noisy.unsafe(0.01) is None
    alone = gap_report(torch.zeros(1), torch.zeros(1), Segments.from_lengths([1]))
    assert alone.unsafe(3e-4) == "one response shows no spread"


def test_nothing_to_compare_is_none():
    nothing = torch.full((2,), NAN)
    assert gap_report(nothing, torch.zeros(2), Segments.from_lengths([2])) is None
