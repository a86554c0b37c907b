"""The exponent of log s over length: recovered from noise, drift and groups; what speaks against
a length-fair band."""

import pytest
import torch

from gspo.diagnostics.bootstrap import group_draws
from gspo.diagnostics.exponent import Exponent, LengthLaw, fit_length_law

NUM_GROUPS, GROUP = 200, 8


def simulate(exponent, *, shared=0.0, shared_falls=True, mean=0.0, longest=1024, seed=0):
    """Log s of 1,600 responses of 16 tokens and more, of spread 0.02 at one token."""
    generator = torch.Generator().manual_seed(seed)
    size = NUM_GROUPS * GROUP
    group = torch.arange(NUM_GROUPS).repeat_interleave(GROUP)
    uniform = torch.rand(size, generator=generator)
    length = (16 * (longest / 16) ** uniform).long()
    sign = torch.randint(0, 2, (size,), generator=generator) * 2.0 - 1
    scale = 0.02 * length.double() ** -exponent
    common = torch.randn(NUM_GROUPS, generator=generator).double()[group]
    shared_scale = scale if shared_falls else 0.02 * 128.0**-exponent
    log_s = scale * torch.randn(size, generator=generator) + shared * shared_scale * common
    return log_s + mean * sign, sign, length, group


def fit(*args, **given):
    rows = simulate(*args, **given)
    return fit_length_law(*rows, group_draws(NUM_GROUPS, num_replicates=200))


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("shared_falls", [True, False])
def test_the_exponent_is_recovered_whatever_a_group_shares(exponent, shared_falls):
    law = fit(exponent, shared=0.7, shared_falls=shared_falls)
    assert law.noise.value == pytest.approx(exponent, abs=0.05)
    assert law.noise.low - 0.02 < exponent < law.noise.high + 0.02
    assert law.shared == pytest.approx(0.49 / 1.49, abs=0.1)


def test_noise_alone_asks_for_a_length_fair_band_and_drift_alone_does_not():
    assert fit(0.5).against_length_fair == []
    reasons = fit(0.0).against_length_fair
    assert [r.split(":")[0] for r in reasons] == [
        "the exponent of the noise may be 0",
        "the exponent of the whole spread may be 0",
    ]


def test_a_shared_drift_as_large_as_the_noise_makes_a_fixed_band_fair():
    law = fit(0.5, shared=3.0, shared_falls=False)
    assert law.noise.value == pytest.approx(0.5, abs=0.05)
    assert law.overall.value < 0.2
    assert any("whole spread" in reason for reason in law.against_length_fair)


def test_a_mean_that_does_not_shrink_is_drift():
    law = fit(0.5, mean=1e-3)  # at 1,000 tokens the spread is 6e-4
    assert law.mean_share > 1
    assert [r for r in law.against_length_fair if r.startswith("drift: the mean")]
    assert law.noise.value == pytest.approx(0.5, abs=0.05)


def test_lengths_that_are_too_much_alike_say_nothing():
    reasons = fit(0.5, longest=17).against_length_fair
    assert any(reason.startswith("lengths are too much alike") for reason in reasons)


def test_a_few_odd_responses_among_equal_lengths_leave_the_exponent_unknown():
    log_s, advantage, length, group = simulate(0.5, longest=17)
    length[:4], log_s[:4] = 4, torch.tensor([0.3, -0.3, 0.3, -0.3]).double()
    law = fit_length_law(
        log_s, advantage, length, group, group_draws(NUM_GROUPS, num_replicates=20)
    )
    assert not law.noise.is_known
    assert law.against_length_fair[0] == (
        "lengths are too much alike: the exponent of the noise is not between -0.5 and 1.5"
    )


def test_a_fall_steeper_than_averaging_is_no_reason_for_a_length_fair_band():
    reasons = fit(1.0).against_length_fair
    assert any("short responses differ in kind" in reason for reason in reasons)


def test_a_middling_exponent_and_no_full_bucket_are_named():
    middling = Exponent(0.3, 0.25, 0.35)
    law = LengthLaw(noise=middling, overall=middling, shared=0.0, mean_share=None)
    assert law.against_length_fair == [
        "the exponent of the noise is 0.30, not above 0.35",
        "the exponent of the whole spread is 0.30, not above 0.35",
        "no length bucket has 64 responses of one sign",
    ]


def test_few_responses_have_no_mean_share():
    rows = [part[:16] for part in simulate(0.5)]
    law = fit_length_law(*rows, group_draws(2, num_replicates=5))
    assert law.mean_share is None


def test_responses_that_never_moved_break_nothing():
    log_s, advantage, length, group = simulate(0.5)
    law = fit_length_law(
        torch.zeros_like(log_s), advantage, length, group, group_draws(NUM_GROUPS, num_replicates=5)
    )
    assert law.against_length_fair != []
