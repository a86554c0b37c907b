"""Objectives as pure functions of ragged log-probs. One function is one paper's equation.

    surrogate = gspo(logp, old_logp, advantage, segments, clip=ClipRange(3e-4, 4e-4))
    (surrogate.loss.sum() / D).backward()

D is the settings class's `divisor`, counted once per optimizer step: `OBJECTIVES` maps each name
to its settings class.
"""

from gspo.objectives.geometric import gmpo
from gspo.objectives.kl import k1_reward, kl_penalty
from gspo.objectives.sequence import gspo, gspo_token
from gspo.objectives.soft import cispo, sapo
from gspo.objectives.token import dapo, dr_grpo, grpo, ppo
from gspo.settings import OBJECTIVES

__all__ = [
    "OBJECTIVES",
    "cispo",
    "dapo",
    "dr_grpo",
    "gmpo",
    "grpo",
    "gspo",
    "gspo_token",
    "k1_reward",
    "kl_penalty",
    "ppo",
    "sapo",
]
