"""Rescales, never rotates."""

import math

import pytest
import torch

from gspo.errors import RecipeError
from gspo.lab.gradient import compare, gradient_rows, grpo_cosine
from gspo.segments import Segments
from gspo.settings import GRPO, GSPO, ClipRange

WIDE = ClipRange(low=1.0, high=1e6)


def test_the_angle_of_two_tokens_worked_by_hand():
    """Ratios 1 and 2 against 1 and 1: cosine 3 / sqrt(10), length sqrt(5 / 2)."""
    segments = Segments.from_lengths([2])
    logp = torch.tensor([0.5, 0.5]).log()
    old = torch.tensor([0.5, 0.25]).log()
    advantage = torch.tensor([1.0])

    def angle(objective):
        noisy = objective(logp, old, advantage, segments)
        cosine, scale = compare(noisy, objective(logp, logp, advantage, segments), torch.ones(2))
        return cosine.item(), scale.item()

    assert angle(GRPO(clip=WIDE)) == pytest.approx((3 / math.sqrt(10), math.sqrt(2.5)), rel=1e-6)
    assert angle(GRPO(clip=ClipRange(low=0.2, high=0.2))) == pytest.approx(
        (1 / math.sqrt(2), 1 / math.sqrt(2)), rel=1e-6
    )
    assert angle(GSPO(clip=WIDE)) == pytest.approx((1.0, math.sqrt(2)), rel=1e-6)
    assert angle(GSPO(clip=ClipRange(low=0.2, high=0.2))) == (0.0, 0.0)


def test_gspo_never_rotates_and_grpo_does():
    found = gradient_rows(
        64, [0.05, 0.5], ["gspo", "gspo_token", "grpo", "sapo"], num_responses=200
    )
    for row in found:
        if row.arm.name in {"gspo", "gspo_token"} and row.cosine is not None:
            assert row.lowest == pytest.approx(1.0, abs=1e-12)
        else:
            assert row.cosine is None or row.cosine < 0.9995
    # The low end of the range cuts off a part of the wider one.
    rescaled = [r for r in found if r.arm.label == "gspo 0.0225, 0.03" and r.advantage == -1]
    assert [row.scale_spread for row in rescaled] == pytest.approx([0.05 / 8, 0.04], rel=0.3)


def test_without_noise_nothing_changes():
    for row in gradient_rows(8, [0.0], ["gspo", "grpo", "gmpo", "cispo"], num_responses=20):
        assert (row.cosine, row.scale) == pytest.approx((1.0, 1.0), abs=1e-12)
        assert (row.cut_share, row.scale_spread) == (0.0, pytest.approx(0.0, abs=1e-12))
        assert row.limit in {None, 1.0}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("sigma", [0.1, 0.3])
def test_grpo_follows_its_closed_form(sign, sigma):
    found = gradient_rows(1024, [sigma], ["grpo"], num_responses=100)
    (row,) = (row for row in found if row.advantage == sign)
    assert row.cosine == pytest.approx(row.limit, abs=0.004)


def test_the_closed_form_worked_by_hand():
    assert grpo_cosine(0.3, WIDE, 1) == pytest.approx(math.exp(-0.045))
    assert grpo_cosine(0.3, WIDE, -1) == pytest.approx(math.exp(-0.045))
    # A band whose edge is the median of the noise keeps half: e^(s^2/2) P(z < -s) and so on.
    half = ClipRange(low=0.0, high=0.0)
    first = math.exp(0.005) * 0.460172
    second = math.exp(0.02) * 0.420740
    assert grpo_cosine(0.1, half, 1) == pytest.approx(first / math.sqrt(second), rel=1e-5)


def test_a_response_that_is_cut_has_no_direction():
    (cut, kept) = gradient_rows(1, [0.5], ["grpo"], num_responses=500)
    assert cut.cosine == pytest.approx(1.0)  # one token alone cannot turn
    assert 0.1 < cut.cut_share < 0.5
    paper = [r for r in gradient_rows(4, [50.0], ["gspo"], num_responses=2) if r.advantage == 1]
    assert {(r.cosine, r.scale) for r in paper if r.cut_share == 1.0} <= {(None, None)}
    assert kept.arm.name == "grpo"


@pytest.mark.parametrize(
    ("length", "sigma", "objective", "message"),
    [
        (0, 0.1, "gspo", "length is 0"),
        (8389, 0.1, "gspo", "length is 8389; wanted 1 to 8,388 tokens"),
        (4, -1.0, "gspo", "sigma is -1.0"),
        (4, math.nan, "gspo", "sigma is nan"),
        (4, 0.1, "gspoo", "objective is 'gspoo'"),
    ],
)
def test_what_is_impossible_is_named(length, sigma, objective, message):
    with pytest.raises(RecipeError, match=message):
        gradient_rows(length, [sigma], [objective])
