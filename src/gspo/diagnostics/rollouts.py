"""What a step's rollouts were like: rewards, groups, lengths, and the engine gap."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.segments import Segments
from gspo.stats import Max, Mean, Min, Spread, Stats, Sum
from gspo.types import EQUAL_REWARDS

#: A response passes above it: half of the usual 0-or-1 reward. The largest reward that a verifier
#: can give is not known here; a verifier on another scale should report its own part.
PASS_REWARD = 0.5


def rollout_stats(
    reward: Float[Tensor, "S"],
    group: Int[Tensor, "S"],
    lengths: Int[Tensor, "S"],
    truncated: Bool[Tensor, "S"],
) -> Stats:
    """Every `reward/*`, `groups/*` and `length/*` statistic of one step's S responses, and
    `verifier/failed_share`.

    reward: NaN where the verdict failed or there is none. group: any number, the same for
    responses to one prompt. lengths: response tokens. truncated: stopped by the length limit.
    """
    return (
        _reward_stats(reward)
        | _group_stats(reward, group, lengths)
        | _length_stats(reward, lengths, truncated)
    )


def _share(rows: Bool[Tensor, "R"]) -> Mean:
    return Mean(rows.sum(), rows.numel())


def _mean(values: Float[Tensor, "R"] | Int[Tensor, "R"]) -> Mean:
    return Mean(values.double().sum(), values.numel())


def _reward_stats(reward: Float[Tensor, "S"]) -> Stats:
    scored = reward[~reward.isnan()]
    some = scored.numel() > 0
    return {
        "reward/mean": _mean(scored),
        "reward/std": Spread(scored),
        "reward/min": Min(scored.min() if some else None),
        "reward/max": Max(scored.max() if some else None),
        "reward/pass_rate": _share(scored > PASS_REWARD),
        "verifier/failed_share": _share(reward.isnan()),
    }


def _group_stats(
    reward: Float[Tensor, "S"], group: Int[Tensor, "S"], lengths: Int[Tensor, "S"]
) -> Stats:
    """Shares of all groups. Equal rewards are decided by largest and smallest, as the advantages
    decide it, never by a standard deviation, which rounding keeps from 0."""
    ids = torch.tensor(sorted(set(group.tolist())), dtype=group.dtype, device=group.device)
    index = torch.searchsorted(ids, group)
    scored = ~reward.isnan()
    smallest = _extreme(reward.masked_fill(~scored, math.inf), index, ids.numel(), "amin")
    largest = _extreme(reward.masked_fill(~scored, -math.inf), index, ids.numel(), "amax")
    some = smallest <= largest
    scale = torch.maximum(smallest.abs(), largest.abs())
    mixed = some & (largest - smallest > EQUAL_REWARDS * scale)
    equal = some & ~mixed
    return {
        "groups/mixed": _share(mixed),
        "groups/zero_variance": _share(~mixed),
        "groups/all_solved": _share(equal & (smallest > PASS_REWARD)),
        "groups/all_failed": _share(equal & (smallest <= PASS_REWARD)),
        "groups/unscored": _share(~some),
        "groups/idle_tokens_share": Mean((lengths * ~mixed[index]).sum(), lengths.sum()),
    }


def _extreme(
    values: Float[Tensor, "S"], index: Int[Tensor, "S"], num_groups: int, reduce: str
) -> Float[Tensor, "P"]:
    """Smallest ("amin") or largest ("amax") value of each group."""
    empty = values.new_zeros(num_groups)
    return empty.scatter_reduce(0, index, values, reduce, include_self=False)


def _length_stats(
    reward: Float[Tensor, "S"], lengths: Int[Tensor, "S"], truncated: Bool[Tensor, "S"]
) -> Stats:
    """Empty responses are counted, and left out of the means."""
    filled = lengths > 0
    return {
        "length/mean": _mean(lengths[filled]),
        "length/max": Max(lengths.max() if lengths.numel() else None),
        "length/mean_correct": _mean(lengths[filled & (reward > PASS_REWARD)]),
        "length/mean_wrong": _mean(lengths[filled & (reward <= PASS_REWARD)]),
        "length/truncated_share": _share(truncated),
        "length/empty_share": _share(~filled),
    }


def engine_gap_stats(
    engine_logp: Float[Tensor, "N"], old_logp: Float[Tensor, "N"], segments: Segments
) -> Stats:
    """Every `gap/*` statistic: old_logp - engine_logp, same weights, same tokens, nats.

    engine_logp: NaN where the engine had none. A response's gap is the mean over its tokens that
    have one: what its log s would be off by with the engine's log-probs as the old ones.
    """
    present = ~engine_logp.isnan()
    gap = torch.where(present, old_logp.double() - engine_logp.double(), 0.0)
    num_present = segments.sum(present.double())
    response_gap = (segments.sum(gap) / num_present)[num_present > 0]
    token_gap = gap[present]
    return {
        "gap/log_s_mean": _mean(response_gap),
        "gap/log_s_std": Spread(response_gap),
        "gap/token_std": Spread(token_gap),
        "gap/token_max_abs": Max(token_gap.abs().max() if token_gap.numel() else None),
        "gap/missing": Sum((~present).sum()),
    }
