"""Advantages of a step, and what a reference policy adds to them or to the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from gspo.advantages import group_advantage
from gspo.objectives.kl import k1_reward
from gspo.policy.base import Policy
from gspo.settings import KLPenalty
from gspo.trainer.parts import Plan
from gspo.types import Group, RolloutBatch


def advantages_of(groups: Sequence[Group], plan: Plan) -> Float[Tensor, "R"]:
    """One number for every response, groups in order, samples in order."""
    return group_advantage(
        [rollout.reward for group in groups for rollout in group.rollouts],
        [number for number, group in enumerate(groups) for _ in group.rollouts],
        baseline=plan.baseline,
        scale=plan.scale,
    )


def with_reference(
    batch: RolloutBatch, policy: Policy, reference: Policy, plan: Plan, kl: KLPenalty
) -> RolloutBatch:
    """The batch with the reference's log-probs. With k1, which belongs to the reward, the
    advantages are those of the penalised rewards."""
    ref_logp = reference.score(batch)
    batch = replace(batch, ref_logp=ref_logp)
    if kl.estimator != "k1":
        return batch
    penalty = k1_reward(policy.score(batch), ref_logp, batch.segments, coefficient=kl.coefficient)
    advantage = group_advantage(
        batch.reward + penalty, batch.group, baseline=plan.baseline, scale=plan.scale
    )
    return replace(batch, advantage=advantage)
