"""The article's figures, the 1/sqrt(L) law, and simulation against closed form."""

import dataclasses
import math

import pytest
import torch

from gspo.errors import RecipeError
from gspo.lab import clip_range as lab
from gspo.lab.clip_range import Bands, Noise, clip_range_rows, exact_figures, outlier_shift
from gspo.settings import ClipRange, LengthFairClip


def rows(lengths, noise=Noise(), bands=Bands(), **more):  # noqa: B008 - frozen
    return clip_range_rows(lengths, [noise], bands, **more)


@pytest.mark.parametrize(("length", "spread"), [(16, 0.0250), (1024, 0.0031), (4096, 0.0016)])
def test_the_articles_figures(length, spread):
    exact = exact_figures(length, Noise(sigma=0.1), Bands())
    assert exact.token_spread == 0.1
    assert exact.log_s_spread == pytest.approx(spread, abs=5e-5)
    assert exact.token_outside == pytest.approx(0.021, abs=5e-4)
    assert exact.response_outside > 0.8


def test_shares_worked_by_hand():
    """sigma 0.1, 10,000 tokens: spread 0.001, so 3e-4 and 4e-4 lie 0.30 and 0.40 spreads away."""
    exact = exact_figures(10_000, Noise(sigma=0.1), Bands())
    assert exact.response_outside == pytest.approx(0.3821 + 0.3446, abs=1e-3)
    assert exact.response_outside_length_fair == pytest.approx(2 * 0.07493, abs=1e-4)


def test_one_outlier_of_a_hundred_tokens():
    assert outlier_shift(100) == pytest.approx(0.046, abs=1e-4)
    exact = exact_figures(100, Noise(sigma=0.0, outliers=1), Bands())
    assert exact.log_s_mean == pytest.approx(math.log(100) / 100)
    assert exact.token_outside == pytest.approx(0.01)
    assert exact.token_spread == pytest.approx(math.sqrt(0.01 * 0.99) * math.log(100))
    assert (exact.response_outside, exact.response_outside_length_fair) == (1.0, 1.0)


@pytest.mark.parametrize(
    "noise",
    [
        Noise(sigma=0.1),
        Noise(sigma=0.01, bias=5e-4),
        Noise(sigma=0.02, bias=-1e-3, outliers=1),
        Noise(sigma=1.0),
    ],
    ids=str,
)
def test_the_simulation_agrees_with_the_closed_form(noise):
    """Within four standard errors of a spread, of a mean and of a share."""
    count = 4000
    for row in rows([4, 64], noise, num_responses=count):
        simulated, exact = row.simulated, row.exact
        tokens = count * row.length
        assert simulated.token_spread == pytest.approx(exact.token_spread, rel=4 / tokens**0.5)
        error = exact.log_s_spread / count**0.5
        assert simulated.log_s_mean == pytest.approx(exact.log_s_mean, abs=4 * error)
        assert simulated.log_s_spread == pytest.approx(exact.log_s_spread, abs=3 * error)
        assert_share(simulated.token_outside, exact.token_outside, tokens)
        assert_share(simulated.response_outside, exact.response_outside, count)
        fair = exact.response_outside_length_fair
        assert_share(simulated.response_outside_length_fair, fair, count)


def assert_share(share, expected, count):
    error = math.sqrt(expected * (1 - expected) / count)
    assert share == pytest.approx(expected, abs=4 * error + 1 / count)


def test_the_spread_falls_as_the_square_root_and_a_bias_does_not():
    short, long = rows([16, 1024], Noise(sigma=0.1, bias=0.01), num_responses=2000)
    ratio = short.simulated.log_s_spread / long.simulated.log_s_spread
    assert ratio == pytest.approx(8.0, rel=0.1)
    assert short.simulated.log_s_mean == pytest.approx(0.01, abs=3e-3)
    assert long.simulated.log_s_mean == pytest.approx(0.01, abs=3e-4)


def test_a_length_fair_band_leaves_the_same_share_outside_at_every_length():
    shares = [
        row.exact.response_outside_length_fair for row in rows([1, 16, 4096], num_responses=2)
    ]
    assert shares == pytest.approx([shares[0]] * 3, rel=1e-9)
    fixed = [row.exact.response_outside for row in rows([1, 16, 4096], num_responses=2)]
    assert fixed[0] > fixed[1] > fixed[2]


def test_many_pieces_are_one_whole(monkeypatch):
    monkeypatch.setattr(lab, "PIECE", 64)
    (row,) = rows([16], num_responses=999)
    assert row.simulated.log_s_spread == pytest.approx(0.025, rel=0.1)
    assert row.simulated.token_outside * 999 * 16 == pytest.approx(0.0213 * 999 * 16, rel=0.3)


def test_moments_of_pieces_worked_by_hand():
    total = lab._Total()
    total.add(torch.tensor([1.0, 2.0]))
    total.add(torch.tensor([6.0]))
    assert total.mean == pytest.approx(3.0)
    assert total.spread == pytest.approx(math.sqrt(7.0))


def test_the_same_seed_gives_the_same_numbers():
    assert rows([16], num_responses=50) == rows([16], num_responses=50)
    assert rows([16], num_responses=50) != rows([16], num_responses=50, seed=1)


def test_other_ranges_and_every_noise():
    bands = Bands(fixed=ClipRange(low=1.0, high=1.0), length_fair=LengthFairClip(low=0.0, high=0.0))
    noises = [Noise(sigma=0.1), Noise(sigma=0.2)]
    found = clip_range_rows([4, 8], noises, bands, num_responses=100)
    assert [(row.noise.sigma, row.length) for row in found] == [
        (0.1, 4),
        (0.1, 8),
        (0.2, 4),
        (0.2, 8),
    ]
    assert {row.simulated.response_outside for row in found} == {0.0}
    assert {row.simulated.response_outside_length_fair for row in found} == {1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigma": -0.1}, "sigma is -0.1; wanted"),
        ({"sigma": math.nan}, "sigma is nan"),
        ({"bias": math.inf}, "bias is inf"),
        ({"bias": -101.0}, "bias is 101.0; wanted 0 to 100 nats"),
        ({"outliers": -1}, "outliers is -1"),
    ],
)
def test_impossible_noise_is_named(changes, message):
    with pytest.raises(RecipeError, match=message):
        dataclasses.replace(Noise(), **changes)


@pytest.mark.parametrize(
    ("length", "outliers", "responses", "message"),
    [
        (0, 0, 10, "length is 0"),
        (2**20 + 1, 0, 10, "length is 1048577"),
        (4, 5, 10, "5 outliers in a response of 4 tokens"),
        (4, 0, 1, "1 responses have no spread"),
    ],
)
def test_impossible_responses_are_named(length, outliers, responses, message):
    with pytest.raises(RecipeError, match=message):
        rows([length], Noise(outliers=outliers), num_responses=responses)
