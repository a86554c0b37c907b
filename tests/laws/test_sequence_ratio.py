"""What sets GSPO apart: one weight per response."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from gspo.objectives import grpo, gspo, gspo_token
from gspo.segments import Segments
from gspo.settings import ClipRange, LengthFairClip

NARROW = ClipRange(low=3e-4, high=4e-4)
WIDE = ClipRange(low=0.2, high=0.2)
OPEN = ClipRange(low=1.0, high=1e6)

LAW = settings(deadline=None, max_examples=15, derandomize=True)

seeds = st.integers(0, 2**31)
lengths = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def gradient_of(function, logp, *arguments, clip):
    leaf = logp.clone().requires_grad_()
    out = function(leaf, *arguments, clip=clip)
    out.loss.sum().backward()
    return out, leaf.grad


@pytest.mark.parametrize("clip", [NARROW, WIDE, LengthFairClip(low=0.02, high=0.03)])
@LAW
@given(seed=seeds, lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_gspo_token_with_equal_advantages_is_gspo(random_batch, clip, seed, lengths):
    batch = random_batch(seed, lengths, 0.05)
    segments = Segments.from_lengths(lengths)
    logp, old_logp = (torch.cat(rows) for rows in (batch.logp, batch.old_logp))
    per_token = segments.spread(batch.advantage)

    one, one_gradient = gradient_of(gspo, logp, old_logp, batch.advantage, segments, clip=clip)
    two, two_gradient = gradient_of(gspo_token, logp, old_logp, per_token, segments, clip=clip)

    assert_close(two.loss, one.loss, rtol=1e-14, atol=1e-16)
    assert_close(two_gradient, one_gradient, rtol=1e-14, atol=0)
    assert_close(two.weight, one.weight, rtol=1e-14, atol=0)
    for name in ("log_ratio", "cut_low", "cut_high", "bounded"):
        assert torch.equal(getattr(two, name), getattr(one, name))


@LAW
@given(seed=seeds, lengths=lengths)
def test_on_policy_gspo_is_grpo(random_batch, seed, lengths):
    batch = random_batch(seed, lengths, 0.0)
    segments = Segments.from_lengths(lengths)
    logp = torch.cat(batch.logp)
    sequence, sequence_gradient = gradient_of(
        gspo, logp, logp, batch.advantage, segments, clip=NARROW
    )
    _, token_gradient = gradient_of(grpo, logp, logp, batch.advantage, segments, clip=WIDE)
    assert not sequence.log_ratio.any()
    assert not (sequence.cut_low | sequence.cut_high).any()
    assert_close(sequence_gradient, token_gradient, rtol=1e-14, atol=0)


@LAW
@given(seed=seeds, length=st.integers(2, 8))
def test_noise_rescales_a_kept_response_and_never_turns_it(random_batch, seed, length):
    """The article's practical claim, for a model whose token gradients are not parallel."""
    batch = random_batch(seed, [length], 0.0)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(length, 12, generator=generator, dtype=torch.float64)
    noise = 0.1 * torch.randn(length, generator=generator, dtype=torch.float64)

    def direction(function, old_logp):
        theta = torch.zeros(12, dtype=torch.float64, requires_grad=True)
        logp = batch.logp[0] + features @ theta
        segments = Segments.from_lengths([length])
        advantage = torch.ones(1, dtype=torch.float64)
        loss = function(logp, old_logp, advantage, segments, clip=OPEN).loss.sum()
        (gradient,) = torch.autograd.grad(loss, theta)
        return gradient / gradient.norm()

    quiet, noisy = batch.logp[0], batch.logp[0] + noise
    sequence_cosine = direction(gspo, quiet) @ direction(gspo, noisy)
    token_cosine = direction(grpo, quiet) @ direction(grpo, noisy)
    assert abs(float(sequence_cosine) - 1) < 1e-12
    assert float(token_cosine) < 1 - 1e-9


@LAW
@given(seed=seeds, lengths=lengths)
def test_the_length_fair_band_is_the_fixed_band_at_its_own_length(random_batch, seed, lengths):
    batch = random_batch(seed, lengths, 0.05)
    fair = LengthFairClip(low=0.05, high=0.06)
    segments = Segments.from_lengths(lengths)
    whole = gspo(
        torch.cat(batch.logp), torch.cat(batch.old_logp), batch.advantage, segments, clip=fair
    )
    for row, length in enumerate(lengths):
        low, high = 0.05 / length**0.5, 0.06 / length**0.5
        log_s = float((batch.logp[row] - batch.old_logp[row]).mean())
        advantage = float(batch.advantage[row])
        assert bool(whole.cut_low[row]) == (log_s < -low and advantage < 0)
        assert bool(whole.cut_high[row]) == (log_s > high and advantage > 0)


def test_mixed_signs_stop_only_the_tokens_on_one_side():
    logp = torch.tensor([-1.0, -1.0, -1.0], dtype=torch.float64)
    out, gradient = gradient_of(
        gspo_token,
        logp,
        logp - 0.5,
        torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64),
        Segments.from_lengths([3]),
        clip=WIDE,
    )
    s = torch.tensor(0.5, dtype=torch.float64).exp()
    assert_close(gradient, torch.stack([s * 0, s / 3, s * 0]), rtol=1e-14, atol=0)
    assert_close(out.loss, ((s - 1.2) / 3)[None], rtol=1e-14, atol=0)
    assert not out.cut_high.any()
