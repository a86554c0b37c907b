"""Log-ratios by hand: their mean, their bound, and what is too coarse for them."""

import math

import pytest
import torch
from torch.testing import assert_close

from gspo.errors import GspoError, NumericsError
from gspo.ratios import (
    MAX_LOG_RATIO,
    check_logp,
    cut_gain,
    hold,
    response_log_ratio,
    token_log_ratio,
)
from gspo.segments import Segments


def test_token_and_response_log_ratios_by_hand():
    logp, old_logp = torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([-1.5, -2.0, -1.0])
    segments = Segments.from_lengths([2, 0, 1])
    assert token_log_ratio(logp, old_logp).raw.tolist() == [0.5, 0.0, -2.0]
    assert response_log_ratio(logp, old_logp, segments).raw.tolist() == [0.25, 0.0, -2.0]


def test_the_mean_is_held_and_never_single_tokens():
    """Trap 2, field failure 2: [100, -100] has ratio exactly 1 and its ordinary gradient."""
    logp = torch.tensor([0.0, -200.0], requires_grad=True)
    out = response_log_ratio(logp, torch.tensor([-100.0, -100.0]), Segments.from_lengths([2]))
    (gradient,) = torch.autograd.grad(out.held.exp().sum(), logp)
    assert out.held.exp().tolist() == [1.0]
    assert not out.bounded.any()
    assert gradient.tolist() == [0.5, 0.5]


def test_beyond_the_bound_the_value_is_the_bound_and_the_gradient_exactly_zero():
    """Trap 3: on both sides, for infinite log-ratios too."""
    log_ratio = torch.tensor([math.inf, 11.0, 10.0, 0.0, -10.0, -11.0, -math.inf])
    log_ratio.requires_grad_()
    out = hold(log_ratio)
    out.held.exp().sum().backward()
    assert out.held.tolist() == [10, 10, 10, 0, -10, -10, -10]
    assert out.bounded.tolist() == [True, True, False, False, False, True, True]
    assert torch.equal(out.raw, log_ratio.detach())
    kept = torch.tensor([10.0, 0.0, -10.0]).exp()
    assert_close(log_ratio.grad, torch.cat([torch.zeros(2), kept, torch.zeros(2)]))
    assert MAX_LOG_RATIO == 10.0


def test_a_nan_stays_visible():
    out = hold(torch.tensor([math.nan]))
    assert out.held.isnan().all()


def test_the_clip_acts_only_where_leaving_the_band_gains():
    log_ratio = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0, 0.1])
    advantage = torch.tensor([1.0, -1.0, 1.0, -1.0, 0.0, 1.0])
    out = cut_gain(log_ratio, advantage, -0.5, 0.25)
    assert out.high.tolist() == [True, False, False, False, False, False]
    assert out.low.tolist() == [False, False, False, True, False, False]
    assert_close(out.log_ratio, torch.tensor([0.25, 1.0, -1.0, -0.5, 1.0, 0.1]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_refused(dtype):
    """Trap 5: in bfloat16 a ratio of 1.0004 is 1.0, and the clip never fires."""
    assert torch.tensor(1.0004).to(dtype) == 1.0
    coarse = torch.zeros(2, dtype=dtype)
    segments = Segments.from_lengths([2])
    with pytest.raises(NumericsError, match=r"steps of .* at -1\).*0.0003.*logits.float\(\)"):
        token_log_ratio(torch.zeros(2), coarse)
    with pytest.raises(NumericsError, match=str(dtype).removeprefix("torch.")):
        response_log_ratio(coarse, torch.zeros(2), segments)


def test_log_probs_of_other_shapes_or_types_are_refused():
    with pytest.raises(GspoError, match=r"shapes \(2,\) and \(3,\).*Segments.take"):
        check_logp(torch.zeros(2), torch.zeros(3))
    with pytest.raises(GspoError, match=r"shapes \(1, 2\)"):
        check_logp(torch.zeros(1, 2), torch.zeros(1, 2))
    with pytest.raises(NumericsError, match="log-probs are int64, and"):
        check_logp(torch.zeros(2, dtype=torch.int64), torch.zeros(2))


def test_float32_keeps_the_papers_range():
    """4e-4 on log-probs around -20 is far above float32's rounding."""
    old_logp = torch.full((100,), -20.0)
    out = response_log_ratio(old_logp + 4e-4, old_logp, Segments.from_lengths([100]))
    assert float(out.raw) == pytest.approx(4e-4, rel=5e-3)
