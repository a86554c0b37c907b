"""The fitted clip range: quantiles by hand, its limits, and whether it cuts what it promises."""

import math
from dataclasses import asdict

import pytest
import torch

from gspo.diagnostics.calibration import (
    CEILING,
    MIN_RESPONSES,
    PROVISIONAL_CLIP,
    fit_range,
    noise_floor,
)
from gspo.errors import NumericsError, RecipeError

STEPS_OF_001 = [0.0, 0.01, 0.02, 0.03, 0.04]


def fit(positive, negative, **given):
    """Fit on these log s, in nats, with a floor of 1e-5 and no evidence demanded."""
    log_s = torch.tensor([*positive, *negative], dtype=torch.float64)
    advantage = torch.tensor([1.0] * len(positive) + [-0.5] * len(negative))
    return fit_range(log_s, advantage, **{"floor": 1e-5, "min_responses": 1, **given})


def test_bounds_are_the_quantiles_of_each_sign_as_distances_from_ratio_1():
    # A quarter is to be cut. Positive: of 0 .. 0.04 the 75 % quantile is 0.03. Negative: of
    # -0.08 .. 0 the 25 % quantile is -0.06.
    got = fit(STEPS_OF_001, [-2 * x for x in STEPS_OF_001], cut_share=0.25)
    assert got.high_quantile == pytest.approx(0.03)
    assert got.low_quantile == pytest.approx(-0.06)
    assert got.high == pytest.approx(0.030454534, rel=1e-7)  # e^0.03 - 1
    assert got.low == pytest.approx(0.058235466, rel=1e-7)  # 1 - e^-0.06
    assert (got.low_held, got.high_held) == ("measured", "measured")
    assert (got.num_positive, got.num_negative, got.cut_share) == (5, 5, 0.25)
    assert not got.at_ceiling
    assert not got.against_advantage
    assert (got.clip.low, got.clip.high) == (got.low, got.high)


def test_quantiles_between_two_values_are_interpolated():
    # 0.85 of the way along 4 intervals is 3.4: 0.03 + 0.4 x 0.01.
    assert fit(STEPS_OF_001, [-1e-3], cut_share=0.15).high_quantile == pytest.approx(0.034)


def test_the_floor_and_the_ceiling_hold_and_say_so():
    got = fit([1e-9] * 3, [-5.0] * 3, floor=1e-4)
    assert (got.high, got.high_held) == (1e-4, "floor")
    assert (got.low, got.low_held) == (CEILING, "ceiling")
    assert got.at_ceiling
    assert got.low_quantile == -5.0
    assert fit([-math.log1p(-0.05)], [-1e-3], ceiling=0.01).high_held == "ceiling"


def test_ratios_beyond_every_float_still_end_at_the_ceiling():
    got = fit([2000.0], [2000.0])
    assert (got.high, got.low) == (CEILING, 1e-5)


def test_a_quantile_on_the_wrong_side_of_zero_is_flagged_and_gets_the_floor():
    got = fit([-0.02] * 4, [-0.02] * 4)
    assert (got.high, got.high_held, got.high_against_advantage) == (1e-5, "floor", True)
    assert (got.low_held, got.low_against_advantage) == ("measured", False)
    assert got.against_advantage
    mirrored = fit([0.02] * 4, [0.02] * 4)
    assert (mirrored.low, mirrored.low_held, mirrored.low_against_advantage) == (
        *(1e-5, "floor"),
        True,
    )
    unmoved = fit([0.0] * 4, [0.0] * 4)
    assert (unmoved.low_held, unmoved.high_held) == ("floor", "floor")
    assert not unmoved.against_advantage


def test_both_signs_need_enough_responses():
    enough, short = [0.01] * MIN_RESPONSES, [-0.01] * (MIN_RESPONSES - 1)
    assert fit(enough, short, min_responses=MIN_RESPONSES) is None
    assert fit(enough, [*short, -0.01], min_responses=MIN_RESPONSES) is not None
    assert fit_range(torch.zeros(0), torch.zeros(0), floor=1e-5, min_responses=0) is None


def test_zero_advantage_and_unmeasured_responses_are_no_evidence():
    log_s = torch.tensor([0.01, 5.0, math.nan, math.inf, -0.01, -5.0])
    advantage = torch.tensor([1.0, 0.0, 1.0, 1.0, -1.0, 0.0])
    got = fit_range(log_s, advantage, floor=1e-5, min_responses=1)
    assert (got.num_positive, got.num_negative) == (1, 1)
    assert got.high == pytest.approx(math.expm1(0.01))


@pytest.mark.parametrize("cut_share", [0.05, 0.15, 0.3])
def test_new_draws_from_the_measured_distribution_are_cut_at_the_wanted_share(cut_share):
    generator = torch.Generator().manual_seed(7)

    def draw(num):
        sign = torch.randint(0, 2, (num,), generator=generator) * 2.0 - 1
        return 3e-4 * torch.randn(num, generator=generator) + 1e-4 * sign, sign

    fitted = fit_range(*draw(2048), floor=noise_floor(), cut_share=cut_share)
    low, high = fitted.clip.band(torch.zeros(0))
    log_s, sign = draw(20_000)
    cut = ((sign > 0) & (log_s > high)) | ((sign < 0) & (log_s < low))
    assert float(cut.double().mean()) == pytest.approx(cut_share, abs=0.03)


def test_the_noise_floor_covers_float_noise_and_the_engine_gap():
    assert noise_floor() == pytest.approx(1e-5)
    assert noise_floor(noise=1e-4) == pytest.approx(1e-3)
    assert noise_floor(engine_gap_mean=-2e-3) == pytest.approx(6e-3)
    assert noise_floor(engine_gap_mean=1e-7) == pytest.approx(1e-5)


def test_the_provisional_band_is_a_tenth_of_a_nat_on_both_sides():
    assert PROVISIONAL_CLIP.band(torch.zeros(0)) == pytest.approx((-0.1, 0.1))


def test_a_calibration_is_plain_numbers():
    assert {type(value) for value in asdict(fit([0.01], [-0.01])).values()} == {
        *(float, str),
        *(bool, int),
    }


def test_messages_name_what_was_given():
    with pytest.raises(RecipeError, match=r"cut share is 0\.5; wanted .* below 0\.5"):
        fit([0.1], [-0.1], cut_share=0.5)
    with pytest.raises(RecipeError, match=r"ceiling is 1\.5; wanted a distance"):
        fit([0.1], [-0.1], ceiling=1.5)
    with pytest.raises(
        NumericsError, match=r"noise floor .* is 0\.15, the widest .* 0\.1;.*float32"
    ):
        fit([0.1], [-0.1], floor=0.15)
    with pytest.raises(NumericsError, match="noise floor of the ratio is nan"):
        fit([0.1], [-0.1], floor=math.nan)
