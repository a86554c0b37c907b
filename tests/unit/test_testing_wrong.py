"""Losses with one fault each: the kit tells that one, and no other."""

from __future__ import annotations

import math

import pytest
import torch

import gspo
from gspo.testing import check_objective

LOW, HIGH = 3e-4, 4e-4


def differences(logp, logp_old, mask):
    return torch.where(mask, logp.float() - logp_old.float(), 0)


def mean_log_ratio(logp, logp_old, mask):
    return differences(logp, logp_old, mask).sum(1) / mask.sum(1).clamp(min=1)


def bounded(log_ratio):
    return log_ratio.clamp(-10, 10).exp()


def clipped(ratio, adv, low=LOW, high=HIGH):
    return torch.minimum(ratio * adv, ratio.clamp(1 - low, 1 + high) * adv)


def over_rows(gain, mask):
    """The mean over rows with a token, to be minimised."""
    rows = mask.any(1)
    return -torch.where(rows, gain, 0).sum() / rows.sum().clamp(min=1)


def over_tokens(gain, mask):
    """The mean over tokens of each row, then over rows; gain: (N, T)."""
    means = torch.where(mask, gain, 0).sum(1) / mask.sum(1).clamp(min=1)
    return over_rows(means, mask)


def right(logp, logp_old, adv, mask):
    return over_rows(clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv), mask)


# ---------------------------------------------------------------- ratio, clip, advantage, scale


def token_ratio(logp, logp_old, adv, mask):
    ratio = bounded(differences(logp, logp_old, mask))
    return over_tokens(clipped(ratio, adv[:, None]), mask)


def product_ratio(logp, logp_old, adv, mask):
    return over_rows(clipped(bounded(differences(logp, logp_old, mask).sum(1)), adv), mask)


def arithmetic_mean(logp, logp_old, adv, mask):
    ratio = bounded(differences(logp, logp_old, mask))
    mean = torch.where(mask, ratio, 0).sum(1) / mask.sum(1).clamp(min=1)
    return over_rows(clipped(mean, adv), mask)


def own_anchor(logp, logp_old, adv, mask):
    return right(logp, logp.detach(), adv, mask)


def clip_whatever_the_sign(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(ratio.clamp(1 - LOW, 1 + HIGH) * adv, mask)


def no_clip(logp, logp_old, adv, mask):
    return over_rows(bounded(mean_log_ratio(logp, logp_old, mask)) * adv, mask)


def range_of_grpo(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, 0.2, 0.2), mask)


def max_for_min(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    gain = torch.maximum(ratio * adv, ratio.clamp(1 - LOW, 1 + HIGH) * adv)
    return over_rows(gain, mask)


def sides_exchanged(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, HIGH, LOW), mask)


def another_range(logp, logp_old, adv, mask):
    """Cuts from 2.9e-4 above: neither side of any known rule."""
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, 1.0, 1e-4), mask)


def range_a_little_wider(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, 1.1 * LOW, HIGH), mask)


def range_a_little_narrower(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, LOW, 0.95 * HIGH), mask)


def range_ten_times_as_wide(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    return over_rows(clipped(ratio, adv, 10 * LOW, 10 * HIGH), mask)


def centred_again(logp, logp_old, adv, mask):
    return (
        right(logp, logp_old, adv - adv.mean(), mask)
        if len(adv) > 1
        else right(logp, logp_old, adv, mask)
    )


def scaled_again(logp, logp_old, adv, mask):
    spread = adv.std() if len(adv) > 1 else torch.tensor(1.0)
    return right(logp, logp_old, adv / (spread + 1e-6), mask)


def maximised(logp, logp_old, adv, mask):
    return -right(logp, logp_old, adv, mask)


def summed_rows(logp, logp_old, adv, mask):
    return right(logp, logp_old, adv, mask) * mask.any(1).sum()


def half(logp, logp_old, adv, mask):
    return right(logp, logp_old, adv, mask) / 2


# ------------------------------------------------------------------------------- aggregation


def token_mean(logp, logp_old, adv, mask):
    gain = clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv)
    return -(gain[:, None] * mask).sum() / mask.sum().clamp(min=1)


def token_sum(logp, logp_old, adv, mask):
    gain = clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv)
    return over_rows(gain * mask.sum(1), mask)


# ------------------------------------------------------------------------- shapes and padding


def advantage_by_column(logp, logp_old, adv, mask):
    log_s = mean_log_ratio(logp, logp_old, mask).detach()[:, None] + (logp - logp.detach())
    return over_tokens(clipped(bounded(log_s), adv), mask)


def all_pairs(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))[:, None]
    return over_tokens(clipped(ratio, adv).mean(1, keepdim=True).expand(mask.shape), mask)


def pairs_under_the_mask(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))[:, None]
    return over_tokens(clipped(ratio, adv), mask)


def width_as_length(logp, logp_old, adv, mask):
    log_s = differences(logp, logp_old, mask).mean(1)
    return over_rows(clipped(bounded(log_s), adv), mask)


def mean_over_padding(logp, logp_old, adv, mask):
    gain = clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv)
    rows = mask.any(1).sum().clamp(min=1)
    return -(gain[:, None] * mask).mean(1).sum() / rows


def padding_times_zero(logp, logp_old, adv, mask):
    log_s = ((logp.float() - logp_old.float()) * mask).sum(1) / mask.sum(1).clamp(min=1)
    return over_rows(clipped(bounded(log_s), adv), mask)


def padding_not_masked(logp, logp_old, adv, mask):
    log_s = (logp.float() - logp_old.float()).sum(1) / mask.sum(1).clamp(min=1)
    return over_rows(clipped(bounded(log_s), adv), mask)


def groups_by_position(logp, logp_old, adv, mask):
    groups = adv[: len(adv) // 2 * 2].view(-1, 2)
    centred = (groups - groups.mean(1, keepdim=True)).flatten()
    return right(logp, logp_old, torch.cat([centred, adv[len(centred) :]]), mask)


def tokens_from_the_left(logp, logp_old, adv, mask):
    places = torch.arange(mask.shape[1]).expand(mask.shape)
    return right(logp, logp_old, adv, places < mask.sum(1, keepdim=True))


def empty_rows_in_the_mean(logp, logp_old, adv, mask):
    gain = clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv)
    return -torch.where(mask.any(1), gain, 0).mean()


def empty_rows_are_nan(logp, logp_old, adv, mask):
    log_s = differences(logp, logp_old, mask).sum(1) / mask.sum(1)
    return -clipped(bounded(log_s), adv).sum() / mask.any(1).sum()


def no_rows_raise(logp, logp_old, adv, mask):
    if not mask.any():
        raise ValueError("nothing to train on")
    return right(logp, logp_old, adv, mask)


# ---------------------------------------------------------------------------------- numbers


def tokens_held_first(logp, logp_old, adv, mask):
    held = differences(logp, logp_old, mask).clamp(-10, 10)
    return over_rows(clipped((held.sum(1) / mask.sum(1).clamp(min=1)).exp(), adv), mask)


def no_bound(logp, logp_old, adv, mask):
    return over_rows(clipped(mean_log_ratio(logp, logp_old, mask).exp(), adv), mask)


def bounded_below_only(logp, logp_old, adv, mask):
    ratio = mean_log_ratio(logp, logp_old, mask).clamp(min=-10).exp()
    return over_rows(clipped(ratio, adv), mask)


def large_plus_small(logp, logp_old, adv, mask):
    logp = logp.float()
    log_s = mean_log_ratio(logp, logp_old, mask)
    per_token = log_s.detach()[:, None] + logp - logp.detach()
    return over_tokens(clipped(bounded(torch.where(mask, per_token, 0)), adv[:, None]), mask)


def ratio_in_low_precision(logp, logp_old, adv, mask):
    log_s = torch.where(mask, logp - logp_old, 0).sum(1) / mask.sum(1).clamp(min=1)
    return over_rows(clipped(log_s.clamp(-10, 10).exp(), adv), mask)


# ------------------------------------------------------------------------ gradients, the rest


def no_gradient(logp, logp_old, adv, mask):
    return right(logp.detach(), logp_old, adv, mask).requires_grad_()


def detached(logp, logp_old, adv, mask):
    return right(logp.detach(), logp_old, adv, mask)


def dead_rows_leave(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    cut = ((ratio > 1 + HIGH) & (adv > 0)) | ((ratio < 1 - LOW) & (adv < 0))
    alive = ~cut & mask.any(1) & (adv != 0)
    return -torch.where(alive, clipped(ratio, adv), 0).sum() / alive.sum().clamp(min=1)


def nothing_left_is_a_constant(logp, logp_old, adv, mask):
    if not adv.any():
        return torch.zeros(())
    return right(logp, logp_old, adv, mask)


def all_cut_is_nan(logp, logp_old, adv, mask):
    ratio = bounded(mean_log_ratio(logp, logp_old, mask))
    gain = clipped(ratio, adv)
    cut = ((ratio > 1 + HIGH) & (adv > 0)) | ~mask.any(1)
    return over_rows(gain, mask) / (0 if mask.any(1).sum() > 1 and cut.all() else 1)


def statistics_with_a_graph(logp, logp_old, adv, mask):
    log_s = mean_log_ratio(logp, logp_old, mask)
    return right(logp, logp_old, adv, mask), {"log_s_mean": log_s.sum()}


def raises(logp, logp_old, adv, mask):
    raise KeyError("ref_logp")


def one_loss_a_row(logp, logp_old, adv, mask):
    return -clipped(bounded(mean_log_ratio(logp, logp_old, mask)), adv)


def one_row_is_nan(logp, logp_old, adv, mask):
    return right(logp, logp_old, adv, mask) + 0 * (adv.std() if len(adv) == 1 else 0)


def counts_its_own_rows(logp, logp_old, adv, mask, num_responses):
    assert num_responses >= 0
    return right(logp, logp_old, adv, mask)


def something_else(logp, logp_old, adv, mask):
    return over_tokens(bounded(differences(logp, logp_old, mask)) ** 2 * adv[:, None], mask)


WRONG = {
    token_ratio: ["ratio"],
    product_ratio: ["ratio"],
    arithmetic_mean: ["ratio"],
    own_anchor: ["own_anchor"],
    clip_whatever_the_sign: ["clip"],
    no_clip: ["clip"],
    range_of_grpo: ["clip"],
    max_for_min: ["clip"],
    sides_exchanged: ["clip"],
    another_range: ["clip"],
    range_a_little_wider: ["clip"],
    range_a_little_narrower: ["clip"],
    range_ten_times_as_wide: ["clip"],
    centred_again: ["advantage"],
    scaled_again: ["advantage"],
    maximised: ["scale"],
    summed_rows: ["scale"],
    half: ["scale"],
    token_mean: ["aggregation"],
    token_sum: ["aggregation"],
    advantage_by_column: ["broadcast"],
    all_pairs: ["broadcast"],
    pairs_under_the_mask: ["broadcast"],
    width_as_length: ["pad_width"],
    mean_over_padding: ["pad_width"],
    padding_times_zero: ["padding"],
    padding_not_masked: ["padding"],
    groups_by_position: ["formula", "row_order"],
    tokens_from_the_left: ["token_positions"],
    empty_rows_in_the_mean: ["empty_rows"],
    empty_rows_are_nan: ["empty_rows"],
    no_rows_raise: ["empty_rows"],
    tokens_held_first: ["token_clamp"],
    no_bound: ["unbounded_exp"],
    bounded_below_only: ["unbounded_exp"],
    large_plus_small: ["order_of_addition"],
    ratio_in_low_precision: ["low_precision"],
    no_gradient: ["no_gradient"],
    detached: ["no_gradient"],
    dead_rows_leave: ["dead_rows"],
    nothing_left_is_a_constant: ["dead_rows"],
    all_cut_is_nan: ["dead_rows"],
    statistics_with_a_graph: ["statistics"],
    raises: ["exception"],
    one_loss_a_row: ["exception"],
    one_row_is_nan: ["single_row"],
    counts_its_own_rows: ["micro_batches"],
    something_else: ["formula"],
}


def test_the_loss_they_are_made_from_passes():
    assert check_objective(right).traps == []


@pytest.mark.parametrize("loss", WRONG, ids=lambda loss: loss.__name__)
def test_each_is_told_its_own_trap(loss):
    assert check_objective(loss).traps == WRONG[loss]


@pytest.mark.parametrize(
    ("below", "above", "traps"),
    [
        (math.log(0.8), math.log(1.2), []),
        (math.log(0.8), 0.2, ["clip"]),  # the distance from 1 put on the log-ratio
        (-0.2, math.log(1.2), ["clip"]),
    ],
)
def test_a_clip_in_log_space_is_the_range_or_another(below, above, traps):
    def loss(logp, logp_old, adv, mask):
        log_ratio = differences(logp, logp_old, mask)
        adv = adv[:, None]
        cut = ((adv > 0) & (log_ratio > above)) | ((adv < 0) & (log_ratio < below))
        gain = bounded(log_ratio) * adv
        return over_tokens(torch.where(cut, gain.detach(), gain), mask)

    assert check_objective(loss, "grpo", low=0.2, high=0.2).traps == traps


@pytest.mark.parametrize("cap", [3.0, 2.9, None])
def test_a_dual_clip_at_another_ratio_is_told(cap):
    def loss(*tensors):
        return gspo.objective_loss("ppo", *tensors, low=0.2, high=0.2, dual_clip=cap)

    report = check_objective(loss, "ppo", low=0.2, high=0.2, dual_clip=3.0)
    assert report.traps == ([] if cap == 3.0 else ["clip"])
