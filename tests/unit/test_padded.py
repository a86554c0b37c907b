"""The padded drop-in functions: masks, shapes, precision, names."""

import math

import pytest
import torch
from torch.testing import assert_close

import gspo
from gspo.errors import GspoError, GspoWarning, NumericsError, RecipeError


def zeros(rows, tokens):
    return torch.zeros(rows, tokens, requires_grad=True)


def test_loss_and_statistics_by_hand():
    """Row 1 is cut above, row 2 below is kept, row 3 is empty and counts nowhere."""
    logp = torch.tensor([[0.1, 0.1], [-0.3, 9.0], [9.0, 9.0]], requires_grad=True)
    mask = torch.tensor([[1, 1], [1, 0], [0, 0]])
    loss, stats = gspo.gspo_loss(
        logp, torch.zeros(3, 2), torch.tensor([1.0, 1.0, 5.0]), mask, 0.02, 0.03
    )
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-(1.03 + math.exp(-0.3)) / 2, rel=1e-6)
    expected = torch.zeros(3, 2)
    expected[1, 0] = -math.exp(-0.3) / 2
    assert_close(logp.grad, expected)
    assert set(stats) == {"clip_frac_seq", "log_s_mean", "log_s_std"}
    assert stats["clip_frac_seq"] == 0.5
    assert stats["log_s_mean"] == pytest.approx(-0.1, rel=1e-5)
    assert stats["log_s_std"] == pytest.approx(0.4 / math.sqrt(2), rel=1e-5)


def test_one_row_has_no_spread_and_no_row_no_statistics():
    """Field failures 12 and 93: nothing to measure is None, not NaN and not 0."""
    _, stats = gspo.gspo_loss(zeros(1, 2), torch.zeros(1, 2), torch.ones(1), torch.ones(1, 2))
    assert stats == {"clip_frac_seq": 0.0, "log_s_mean": 0.0, "log_s_std": None}
    for name in ("gspo", "grpo"):
        logp = zeros(2, 2)
        loss, stats = gspo.objective_loss(
            name, logp, torch.zeros(2, 2), torch.ones(2), torch.zeros(2, 2)
        )
        (gradient,) = torch.autograd.grad(loss, logp)
        assert float(loss.detach()) == 0
        assert gradient.tolist() == [[0, 0], [0, 0]]
        assert set(stats.values()) == {None}


@pytest.mark.parametrize("value", [math.nan, -1e4, math.inf, -math.inf, 1e6])
def test_a_masked_slot_changes_nothing(value):
    """Field failure 8, trap 12: loss -1 and gradient exactly 0 there, whatever it holds."""
    logp = zeros(1, 2)
    loss, _ = gspo.gspo_loss(
        logp, torch.tensor([[0.0, value]]), torch.ones(1), torch.tensor([[1, 0]])
    )
    (gradient,) = torch.autograd.grad(loss, logp)
    assert float(loss.detach()) == -1
    assert gradient.tolist() == [[-1.0, 0.0]]


def test_padding_columns_change_nothing():
    """Field failures 1 and 16: pad width is no length."""
    for width in (4, 9):
        mask = torch.zeros(2, width, dtype=torch.bool)
        mask[0, :2] = mask[1, :4] = True
        loss, _ = gspo.gspo_loss(
            zeros(2, width), torch.zeros(2, width), torch.tensor([1.0, -1.0]), mask
        )
        assert float(loss.detach()) == 0


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int64, torch.uint8, torch.float32, torch.bfloat16]
)
def test_a_mask_of_any_type(dtype):
    mask = torch.tensor([[1, 1, 0]]).to(dtype)
    loss, stats = gspo.gspo_loss(
        torch.tensor([[0.2, 0.4, 7.0]]), torch.zeros(1, 3), -torch.ones(1), mask
    )
    assert float(loss) == pytest.approx(math.exp(0.3), rel=1e-6)
    assert stats["log_s_mean"] == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize("bad", [0.5, 2.0, math.nan])
def test_a_mask_of_weights_is_refused(bad):
    with pytest.raises(GspoError, match="wanted 0 and 1 only"):
        gspo.gspo_loss(zeros(1, 2), torch.zeros(1, 2), torch.ones(1), torch.tensor([[1.0, bad]]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_upcast_with_a_warning(dtype):
    """Trap 5; field failure 2 in low precision."""
    logp = torch.zeros(1, 2, dtype=dtype, requires_grad=True)
    with pytest.warns(GspoWarning, match="upcast to float32"):
        loss, _ = gspo.gspo_loss(
            logp, torch.full((1, 2), -100.0, dtype=dtype), -torch.ones(1), torch.ones(1, 2)
        )
    (gradient,) = torch.autograd.grad(loss, logp)
    assert loss.dtype == torch.float32
    assert loss.isfinite()
    assert gradient.isfinite().all()


def test_float64_stays_float64():
    logp = torch.full((1, 2), 1e-9, dtype=torch.float64)
    loss, _ = gspo.gspo_loss(logp, torch.zeros_like(logp), torch.ones(1), torch.ones(1, 2))
    assert loss.dtype == torch.float64
    assert float(loss) == -math.exp(1e-9)


def test_shapes_got_and_wanted():
    """Trap 13."""
    good = torch.zeros(2, 3)
    with pytest.raises(GspoError, match=r"logp \(2, 3\), logp_old \(2, 4\).*one shape"):
        gspo.gspo_loss(good, torch.zeros(2, 4), torch.zeros(2), good)
    with pytest.raises(GspoError, match=r"mask \(3,\)"):
        gspo.gspo_loss(good, good, torch.zeros(2), torch.zeros(3))
    with pytest.raises(GspoError, match=r"logp \(3,\)"):
        gspo.gspo_loss(torch.zeros(3), torch.zeros(3), torch.zeros(3), torch.zeros(3))
    with pytest.raises(GspoError, match=r"adv \(2, 1\).*gspo wants adv of shape \(2,\)$"):
        gspo.gspo_loss(good, good, torch.zeros(2, 1), good)
    with pytest.raises(GspoError, match=r"gspo_token wants adv of shape \(2,\) or \(2, 3\)"):
        gspo.objective_loss("gspo_token", good, good, torch.zeros(3), good)


def test_gspo_token_takes_advantages_by_row_or_by_token():
    logp = torch.tensor([[0.01, -0.01, 0.02], [0.0, 0.03, 5.0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    adv = torch.tensor([1.0, -2.0])
    by_row, _ = gspo.objective_loss("gspo_token", logp, torch.zeros(2, 3), adv, mask)
    by_token, _ = gspo.objective_loss(
        "gspo_token", logp, torch.zeros(2, 3), adv[:, None].expand(2, 3), mask
    )
    sequence, _ = gspo.gspo_loss(logp, torch.zeros(2, 3), adv, mask)
    assert by_row == by_token
    assert_close(by_row, sequence)


def test_token_objectives_tell_cut_tokens_and_cut_rows():
    ratio = torch.tensor([[1.5, 1.5], [1.5, 1.0]]).log()
    _, stats = gspo.objective_loss(
        "grpo", ratio, torch.zeros(2, 2), torch.ones(2), torch.ones(2, 2), low=0.2, high=0.2
    )
    assert stats["clip_frac_tok"] == 0.75
    assert stats["clip_frac_seq"] == 0.5


def test_left_out_settings_are_the_objectives_own():
    """Trap 1: GRPO's 0.2 never survives into GSPO. Trap 35: a range given is a range used."""
    logp = torch.full((1, 2), 0.01)
    arguments = (logp, torch.zeros(1, 2), torch.ones(1), torch.ones(1, 2))
    assert float(gspo.objective_loss("gspo", *arguments)[0]) == pytest.approx(-1.0004, rel=1e-6)
    assert float(gspo.gspo_loss(*arguments)[0]) == pytest.approx(-1.0004, rel=1e-6)
    assert float(gspo.objective_loss("grpo", *arguments)[0]) == pytest.approx(-math.exp(0.01))
    wide = gspo.objective_loss("gspo", *arguments, low=0.2, high=0.2)[0]
    assert float(wide) == pytest.approx(-math.exp(0.01))
    assert float(gspo.objective_loss("gspo", *arguments, high=0.005)[0]) == pytest.approx(-1.005)


def test_unknown_names_and_settings_name_the_nearest():
    """Trap 31: gspo has no dual clip, and says so."""
    arguments = (torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1), torch.ones(1, 1))
    with pytest.raises(RecipeError, match="no objective 'gpso'; did you mean 'gspo'"):
        gspo.objective_loss("gpso", *arguments)
    with pytest.raises(RecipeError, match="gspo has no setting 'dual_clip'; known are high, low"):
        gspo.objective_loss("gspo", *arguments, dual_clip=3.0)
    with pytest.raises(RecipeError, match="sapo has no setting 'tau_po'; did you mean 'tau_pos'"):
        gspo.objective_loss("sapo", *arguments, tau_po=1.0)
    with pytest.raises(RecipeError, match="dr_grpo needs the setting 'max_tokens'"):
        gspo.objective_loss("dr_grpo", *arguments)
    with pytest.raises(RecipeError, match=r"ClipRange.low is 2.0; wanted"):
        gspo.gspo_loss(*arguments, eps_low=2.0)


@pytest.mark.parametrize("what", ["logp", "logp_old", "adv"])
@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_what_is_not_finite_on_a_trained_token_is_named(what, bad):
    arguments = {"logp": torch.zeros(2, 2), "logp_old": torch.zeros(2, 2), "adv": torch.ones(2)}
    arguments[what][(1, 1) if what != "adv" else 1] = bad
    with pytest.raises(NumericsError, match=f"{what} holds {bad}"):
        gspo.gspo_loss(**arguments, mask=torch.ones(2, 2))
