"""From logits and a uniform to a token: numbers worked by hand, then what can never happen. Each
holds for one cumulative sum and for blocks."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from gspo.engines import sampling
from gspo.engines.sampling import draw, keep_likeliest, pick
from gspo.errors import NumericsError

ALMOST_ONE = 1 - 2.0**-53  # the largest uniform there is


@pytest.fixture(autouse=True, params=["one level", "blocks"])
def levels(request, monkeypatch):
    if request.param == "blocks":
        monkeypatch.setattr(sampling, "ONE_LEVEL_WEIGHTS", 0)


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values])


def uniform(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor([probabilities]).log()


def test_inverse_of_the_cumulative_distribution() -> None:
    """Probabilities 0.2, 0.5, 0.3: borders at 0.2 and 0.7."""
    cases = uniform(0.0, 0.19, 0.21, 0.69, 0.71, ALMOST_ONE)
    drawn = draw(logits_of(0.2, 0.5, 0.3).expand(6, 3), cases, temperature=1.0)
    assert drawn.ids.tolist() == [0, 0, 1, 1, 2, 2]
    assert_close(drawn.logp.exp(), torch.tensor([0.2, 0.2, 0.5, 0.5, 0.3, 0.3]))
    assert drawn.kept_mass is None


def test_temperature_scales_logits_not_log_probs() -> None:
    """Logits 2, 1, 0 at T = 0.5, token 0: -0.14293; unscaled -0.40761, log-prob / T -0.81521."""
    drawn = draw(row(2.0, 1.0, 0.0), uniform(0.0), temperature=0.5)
    assert drawn.ids.tolist() == [0]
    assert_close(drawn.logp, torch.tensor([-0.1429324]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0, 1.5])
def test_log_prob_equals_a_float64_softmax(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(64, 5000, generator=generator)
    u = torch.rand(64, generator=generator, dtype=torch.float64)
    drawn = draw(logits, u, temperature=temperature)
    exact = (logits.double() / temperature).log_softmax(-1)
    assert_close(
        drawn.logp.double(), exact.gather(-1, drawn.ids[:, None]).squeeze(-1), rtol=0, atol=5e-6
    )


def test_frequencies_are_the_probabilities() -> None:
    probabilities = torch.tensor([0.1, 0.4, 0.05, 0.45])
    num_draws = 20_000
    u = (torch.arange(num_draws, dtype=torch.float64) + 0.5) / num_draws
    drawn = draw(probabilities.log().expand(num_draws, 4), u, temperature=1.0)
    assert_close(drawn.ids.bincount() / num_draws, probabilities, rtol=0, atol=1e-4)


def test_greedy_ignores_the_uniform_and_reports_temperature_one() -> None:
    drawn = draw(row(1.0, 3.0, 2.0).expand(2, 3), uniform(0.0, 0.999), temperature=0.0, top_k=1)
    assert drawn.ids.tolist() == [1, 1]
    assert_close(drawn.logp, row(1.0, 3.0, 2.0).log_softmax(-1)[0, 1].expand(2))
    assert drawn.kept_mass is None


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    never = float("-inf")
    logits = row(never, 0.0, never, never, 0.0, never)
    for u, expected in ((0.0, 1), (0.5, 4), (ALMOST_ONE, 4)):
        assert draw(logits, uniform(u), temperature=1.0).ids.tolist() == [expected]


def test_uniform_that_rounds_up_to_the_total() -> None:
    """In float32 the target is the total itself; the last token with weight is the answer."""
    logits = torch.cat([torch.zeros(1, 1000), torch.full((1, 3), float("-inf"))], dim=1)
    assert draw(logits, uniform(ALMOST_ONE), temperature=1.0).ids.tolist() == [999]


def test_the_first_token_with_weight_behind_a_border() -> None:
    """Blocks of two: 0.5, 0 | 0, 0.5. Below 0.5 the first token, from 0.5 on the last."""
    weights = row(0.5, 0.0, 0.0, 0.5).expand(4, 4)
    ids, total = pick(weights, uniform(0.0, 0.5 - 2.0**-54, 0.5, ALMOST_ONE))
    assert ids.tolist() == [0, 0, 3, 3]
    assert total.tolist() == [1.0] * 4


def test_the_last_block_may_be_short() -> None:
    """Five tokens of 0.2 in blocks of two."""
    ids, _ = pick(torch.full((6, 5), 0.2), uniform(0.0, 0.39, 0.41, 0.79, 0.81, ALMOST_ONE))
    assert ids.tolist() == [0, 1, 2, 3, 4, 4]


def test_a_block_whose_float32_sum_is_more_than_its_tokens() -> None:
    """In blocks of four: 1 + 0.75 steps of float32 is 1 + one step as the sum of a block. A target
    in between is the block's last token with weight, not a zero that follows."""
    step = 2.0**-23
    weights = torch.zeros(1, 16)
    weights[0, [0, 1, 4]] = torch.tensor([1.0, 0.75 * step, 1.0])
    ids, _ = pick(weights, uniform((1 + 0.9 * step) / (2 + step)))
    assert float(weights[0, ids]) > 0
    assert ids.tolist() in ([1], [4])  # the exact border is between the two


def test_a_block_so_heavy_that_what_precedes_it_is_lost() -> None:
    """1.25 roundings of 1 before a block of 0, 1: the target lies behind them, before the block's
    sum less its weight, and its first token must not come."""
    weights = row(1.25 * 2.0**-53, 0.0, 0.0, 1.0)
    assert pick(weights, uniform(1.5 * 2.0**-53))[0].tolist() == [3]


@pytest.mark.parametrize("num_tokens", [17, 1000, 1024, 5000, 49153])
def test_blocks_draw_what_one_exact_sum_draws(num_tokens: int) -> None:
    """Against float64 throughout; only a uniform within float rounding of a border may differ."""
    generator = torch.Generator().manual_seed(num_tokens)
    logits = 3 * torch.randn(32, num_tokens, generator=generator)
    u = torch.rand(32, generator=generator, dtype=torch.float64)
    exact = logits.double().softmax(-1).cumsum(-1)
    drawn = draw(logits, u, temperature=1.0).ids[:, None]
    above = exact.gather(-1, drawn)
    below = torch.where(drawn > 0, exact.gather(-1, (drawn - 1).clamp(min=0)), 0.0)
    assert (u[:, None] < above + 1e-6).all()
    assert (u[:, None] >= below - 1e-6).all()


def test_a_scan_that_steps_up_at_weight_zero(monkeypatch) -> None:
    """What a parallel scan may give at a border: the likeliest token comes instead."""
    wrong = (torch.tensor([1, 2]), torch.ones(2, dtype=torch.float64))
    monkeypatch.setattr(sampling, "pick", lambda weights, uniform: wrong)
    drawn = draw(logits_of(0.6, 0.0, 0.4).expand(2, 3), uniform(0.5, 0.5), temperature=1.0)
    assert drawn.ids.tolist() == [0, 2]
    assert_close(drawn.logp.exp(), torch.tensor([0.6, 0.4]))


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_the_callers_logits_stay_as_they_are(temperature: float) -> None:
    logits = row(2.0, 1.0, 0.0, -1.0)
    draw(logits, uniform(0.5), temperature=temperature, top_k=3, top_p=0.9)
    assert logits.tolist() == [[2.0, 1.0, 0.0, -1.0]]


def test_top_k_keeps_the_full_distributions_log_prob() -> None:
    """Of 0.1, 0.4, 0.2, 0.3 the two likeliest are 1 and 3: mass 0.7, border at 4/7."""
    logits = logits_of(0.1, 0.4, 0.2, 0.3).expand(3, 4)
    drawn = draw(logits, uniform(0.0, 0.56, 0.58), temperature=1.0, top_k=2)
    assert drawn.ids.tolist() == [1, 1, 3]
    assert drawn.kept_mass is not None
    assert_close(drawn.kept_mass, torch.full((3,), 0.7))
    assert_close(drawn.logp.exp(), torch.tensor([0.4, 0.4, 0.3]))
    assert_close((drawn.logp - drawn.kept_mass.log()).exp(), torch.tensor([4, 4, 3]) / 7)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.35, [1]), (0.41, [1, 3]), (0.69, [1, 3]), (0.71, [1, 2, 3]), (0.95, [0, 1, 2, 3])],
)
def test_top_p_keeps_the_token_that_crosses(top_p: float, kept: list[int]) -> None:
    left = keep_likeliest(row(0.1, 0.4, 0.2, 0.3), top_k=0, top_p=top_p)
    assert left[0].nonzero().flatten().tolist() == kept


def test_top_p_of_a_row_that_few_tokens_do_not_reach(monkeypatch) -> None:
    """The two likeliest are 0.9 of the first row and 0.5 of the second, which is sorted whole."""
    monkeypatch.setattr(sampling, "NUCLEUS_TOKENS", 2)
    weights = torch.tensor([[0.04, 0.6, 0.3, 0.06], [0.22, 0.2, 0.28, 0.3]])
    left = keep_likeliest(weights, top_k=0, top_p=0.75)
    assert (left > 0).tolist() == [[False, True, True, False], [True, False, True, True]]


def test_top_p_counts_within_what_top_k_left() -> None:
    """0.4 of the 0.7 that top-k 2 leaves is 0.571: it alone reaches 0.55, not 0.6."""
    weights = row(0.1, 0.4, 0.2, 0.3)
    assert (keep_likeliest(weights, top_k=2, top_p=0.55) > 0).tolist() == [
        [False, True, False, False]
    ]
    assert (keep_likeliest(weights, top_k=2, top_p=0.6) > 0).tolist() == [
        [False, True, False, True]
    ]


def test_ties_with_the_last_one_kept_stay() -> None:
    weights = row(0.25, 0.25, 0.25, 0.25)
    assert keep_likeliest(weights, top_k=2, top_p=1.0).tolist() == weights.tolist()
    assert keep_likeliest(weights, top_k=0, top_p=0.3).tolist() == weights.tolist()


def test_everything_kept_is_mass_one() -> None:
    drawn = draw(logits_of(0.2, 0.5, 0.3), uniform(0.1), temperature=1.0, top_p=0.9999)
    assert drawn.kept_mass is not None
    assert drawn.kept_mass.tolist() == [1.0]
    assert draw(logits_of(0.2, 0.8), uniform(0.1), temperature=1.0, top_k=2).kept_mass is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite(bad: float) -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, bad]])
    with pytest.raises(NumericsError, match="1 of 2 rows"):
        draw(logits, uniform(0.5, 0.5), temperature=1.0)
    with pytest.raises(NumericsError, match="1 of 1 rows"):
        draw(torch.tensor([[0.0, 1.0, 2.0, 3.0, bad]]), uniform(0.5), temperature=0.7)
    with pytest.raises(NumericsError):
        draw(torch.full((1, 2), -math.inf), uniform(0.5), temperature=0.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_every_precision_of_logits_gives_float32(dtype: torch.dtype) -> None:
    drawn = draw(row(2.0, 1.0, 0.0).to(dtype), uniform(0.0), temperature=1.0)
    assert drawn.logp.dtype == torch.float32
    assert_close(drawn.logp, torch.tensor([-0.4076060]), rtol=0, atol=1e-6)
