"""All numbers of one step, by their names in docs/metrics.md."""

from __future__ import annotations

import math
import resource
from collections.abc import Mapping, Sequence

import torch

from gspo.diagnostics.attribution import attribute, attribution_stats
from gspo.diagnostics.clipping import UpdatedResponses, clip_stats
from gspo.diagnostics.histogram import log_s_stats
from gspo.diagnostics.rollouts import engine_gap_stats, rollout_stats
from gspo.diagnostics.weights import response_weights, surrogate_of, weight_stats
from gspo.settings import GSPO, GSPOToken, ObjectiveSettings
from gspo.stats import Max, Mean, Min, Statistic, Stats, Sum
from gspo.trainer.rows import StepUpdates
from gspo.types import Group, Rollout, RolloutBatch


def step_responses(
    batch: RolloutBatch, updates: StepUpdates, objective: ObjectiveSettings
) -> UpdatedResponses:
    """What the diagnostics look at. The first minibatch is on-policy, the others are not."""
    return UpdatedResponses(
        log_s=updates.log_s,
        advantage=batch.advantage,
        lengths=batch.segments.lengths,
        minibatch=updates.minibatch,
        off_policy=updates.minibatch > 1,
        cut_low=updates.cut_low,
        cut_high=updates.cut_high,
        unit=objective.unit,
    )


def step_stats(
    groups: Sequence[Group],
    batch: RolloutBatch,
    updates: StepUpdates,
    responses: UpdatedResponses,
    objective: ObjectiveSettings,
    update_stats: Mapping[str, Statistic],
) -> Stats:
    """Rollouts, clip, log s, attribution, weights, engine gap, entropy, KL, and what the updates
    said themselves."""
    band = None
    # The update's own kept share stands: it saw the weights, here they are computed once more.
    stats: Stats = _weights(batch, updates, responses, objective) | dict(update_stats)
    if isinstance(objective, GSPO | GSPOToken):
        band = objective.clip.band(batch.segments.lengths)
        if isinstance(band[0], float) and isinstance(band[1], float):
            stats["clip/low"] = Mean(-math.expm1(band[0]), 1)
            stats["clip/high"] = Mean(math.expm1(band[1]), 1)
    stats |= _rollouts(groups)
    stats |= clip_stats(responses, band)
    stats |= log_s_stats(responses)
    found = attribute(updates.logp, updates.old_logp, batch.segments)
    stats |= attribution_stats(responses, found)
    stats |= _engine_gap(batch, updates)
    stats |= _divergence(batch, updates)
    stats["step/groups"] = Sum(len(groups))
    stats["step/responses"] = Sum(batch.num_responses)
    stats["step/tokens"] = Sum(batch.num_tokens)
    stats["memory/peak_rss_gib"] = Max(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
    )
    return stats


def _rollouts(groups: Sequence[Group]) -> Stats:
    rollouts = [(k, rollout) for k, group in enumerate(groups) for rollout in group.rollouts]
    rewards = [math.nan if r.reward is None else r.reward for _, r in rollouts]
    return rollout_stats(
        torch.tensor(rewards, dtype=torch.float64),
        torch.tensor([k for k, _ in rollouts]),
        torch.tensor([len(r.response_ids) for _, r in rollouts]),
        torch.tensor([r.finish == "length" for _, r in rollouts]),
    ) | _kept_mass([r for _, r in rollouts])


def _kept_mass(rollouts: Sequence[Rollout]) -> Stats:
    """What top-k and top-p left of the probability at each token; nothing without them."""
    masses = [mass for rollout in rollouts for mass in rollout.kept_mass or ()]
    if not masses:
        return {}
    return {"gap/kept_mass": Mean(sum(masses), len(masses)), "gap/kept_mass_min": Min(min(masses))}


def _weights(
    batch: RolloutBatch,
    updates: StepUpdates,
    responses: UpdatedResponses,
    objective: ObjectiveSettings,
) -> Stats:
    surrogate = surrogate_of(
        objective, updates.logp, updates.old_logp, batch.advantage, batch.segments
    )
    return weight_stats(responses, response_weights(objective, surrogate, batch.advantage))


def _engine_gap(batch: RolloutBatch, updates: StepUpdates) -> Stats:
    """Over responses that the trainer scored: elsewhere the old log-probs are the engine's."""
    rows = updates.trainer_scored.nonzero().squeeze(1)
    scored = batch.select(rows)
    old_logp = updates.old_logp[batch.tokens_of(rows)]
    stats = engine_gap_stats(scored.engine_logp, old_logp, scored.segments)
    return stats | (updates.gate.stats() if updates.gate else {})


def _divergence(batch: RolloutBatch, updates: StepUpdates) -> Stats:
    """Entropy of the sampling policy, and how far the updates moved from it; nats a token."""
    # Responses of zero advantage ran in no update, yet they are samples like the others.
    sampled = torch.where(batch.engine_logp.isnan(), updates.old_logp, batch.engine_logp)
    entropy = -sampled.double()[sampled.isfinite()]
    off_policy = batch.segments.spread(updates.minibatch > 1)
    log_ratio = (updates.logp - updates.old_logp).double()
    moved = log_ratio[off_policy & log_ratio.isfinite()]
    kl = moved.exp() - 1 - moved
    return {
        "policy/entropy": Mean(entropy.sum(), entropy.numel()),
        "policy/kl_old": Mean(kl.sum(), kl.numel()),
    }
