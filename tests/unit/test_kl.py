"""KL penalties: values by hand, gradients that stay finite, the objective's own denominator."""

import math

import pytest
import torch
from torch.testing import assert_close

from gspo.errors import NumericsError, RecipeError
from gspo.objectives import gspo, k1_reward, kl_penalty
from gspo.objectives.kl import k2, k3
from gspo.segments import Segments
from gspo.settings import ClipRange, KLPenalty


def test_estimators_by_hand():
    logp, ref_logp = torch.tensor([-1.0, -1.0]), torch.tensor([-1.5, -0.5])
    assert_close(k2(logp, ref_logp), torch.tensor([0.125, 0.125]))
    expected = torch.tensor([math.exp(-0.5) + 0.5 - 1, math.exp(0.5) - 0.5 - 1])
    assert_close(k3(logp, ref_logp), expected)


@pytest.mark.parametrize("estimator", [k2, k3])
@pytest.mark.parametrize(("policy", "reference"), [(-200.0, 0.0), (0.0, -200.0)])
def test_a_difference_of_200_keeps_value_gradient_and_weights_finite(estimator, policy, reference):
    """Field failure 10: holding after exp leaves a finite value and a NaN gradient."""
    logp = torch.tensor([policy], requires_grad=True)
    optimizer = torch.optim.AdamW([logp], lr=0.1)
    value = estimator(logp, torch.tensor([reference])).sum()
    value.backward()
    assert value.isfinite()
    assert logp.grad is not None
    assert logp.grad.isfinite().all()
    optimizer.step()
    assert logp.isfinite().all()


def test_k3_still_pulls_down_a_token_that_the_reference_finds_impossible():
    """Only the side that overflows is held."""
    logp = torch.tensor([0.0, -200.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(k3(logp, torch.tensor([-200.0, 0.0])).sum(), logp)
    assert gradient.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_refused(dtype):
    coarse = torch.zeros(1, dtype=dtype)
    for estimator in (k2, k3):
        with pytest.raises(NumericsError, match=r"logits.float\(\)"):
            estimator(coarse, coarse)


def test_float32_equals_float64_within_5_nats():
    gap = torch.linspace(-5, 5, 101, dtype=torch.float64)
    for estimator in (k2, k3):
        results = []
        for dtype in (torch.float32, torch.float64):
            logp = torch.full((101,), -6.0, dtype=dtype, requires_grad=True)
            value = estimator(logp, (gap - 6.0).to(dtype))
            (gradient,) = torch.autograd.grad(value.sum(), logp)
            results.append((value.detach().double(), gradient.double()))
        (value32, grad32), (value64, grad64) = results
        assert_close(value32, value64, rtol=1e-5, atol=1e-6)
        assert_close(grad32, grad64, rtol=1e-5, atol=1e-6)


def test_the_penalty_uses_the_objectives_denominator():
    """Trap 28: a mean over a response's own tokens, never over padding; 0 for an empty one."""
    segments = Segments.from_lengths([2, 0, 1])
    logp, ref_logp = torch.tensor([-1.0, -1.0, -1.0]), torch.tensor([-2.0, -1.0, -4.0])
    kl = KLPenalty(coefficient=0.1, estimator="k2")
    mean = kl_penalty(logp, ref_logp, segments, kl=kl, denominator="responses")
    total = kl_penalty(logp, ref_logp, segments, kl=kl, denominator="tokens")
    assert_close(mean, torch.tensor([0.025, 0.0, 0.45]))
    assert_close(total, torch.tensor([0.05, 0.0, 0.45]))
    constant = kl_penalty(
        logp, ref_logp, segments, kl=KLPenalty(coefficient=0.1), denominator="constant"
    )
    assert_close(constant, 0.1 * segments.sum(k3(logp, ref_logp)))


def test_the_penalty_does_not_touch_the_policy_ratio():
    """Trap 27: both are log-ratios, of different policies."""
    segments, clip = Segments.from_lengths([2]), ClipRange(low=0.2, high=0.2)
    logp, old_logp = torch.tensor([-1.0, -1.0]), torch.tensor([-1.1, -1.1])
    before = gspo(logp, old_logp, torch.ones(1), segments, clip=clip)
    kl_penalty(
        logp,
        torch.tensor([-5.0, -5.0]),
        segments,
        kl=KLPenalty(coefficient=1.0),
        denominator="responses",
    )
    after = gspo(logp, old_logp, torch.ones(1), segments, clip=clip)
    assert torch.equal(before.log_ratio, after.log_ratio)
    assert_close(after.log_ratio, torch.tensor([0.1]), rtol=1e-5, atol=0)


def test_k1_belongs_to_the_reward():
    segments = Segments.from_lengths([2, 0])
    logp = torch.tensor([-1.0, -2.0], requires_grad=True)
    reward = k1_reward(logp, torch.tensor([-1.5, -1.5]), segments, coefficient=0.5)
    assert reward.tolist() == [0.0, 0.0]
    reward = k1_reward(logp, torch.tensor([-2.0, -2.0]), segments, coefficient=0.5)
    assert reward.tolist() == [-0.25, 0.0]
    assert not reward.requires_grad
    with pytest.raises(RecipeError, match="k1_reward"):
        kl_penalty(
            logp,
            logp,
            segments,
            kl=KLPenalty(coefficient=0.5, estimator="k1"),
            denominator="responses",
        )
