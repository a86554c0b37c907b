"""OpenRLHF's policy_loss_type, advantage estimator and KL as settings of ours."""

from __future__ import annotations

from gspo.recipes.importers.common import (
    NO_ENTROPY,
    OLD_POLICY,
    SAMPLED_BY_TRAINER,
    clip,
    gspo_clip_remark,
)
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.verl_objective import BATCH_NORMALISED

LOSS, CORRECTED = "actor.policy_loss_type", "algo.advantage.is_correction_enable"
NO_CRITIC = (
    "it needs a critic, and there is none here; a response is compared with its group, as estimator "
    "group_norm does"
)
REANCHORED = (
    "with this switch OpenRLHF's gspo measures s against the engine's log-probs instead of the old "
    "policy's, and corrects nothing; here s is measured against the policy that sampled, as the trainer scores it: "
)


def objective(draft: Draft) -> None:
    """What is minimised, with its range."""
    low, high = _range(draft)
    name = str(draft[LOSS])
    if name == "gspo":
        note = "one ratio a response, the gradient through the mean of its log-ratios; each response counts alike"
        draft.take(LOSS, {"objective.name": "gspo"}, note)
        draft.take(_range_key(draft), clip(low, high), gspo_clip_remark(low, high))
        if draft["actor.dual_clip"] is not None:
            draft.leave(
                "actor.dual_clip", "gspo has no cap on the ratio where the advantage is negative"
            )
        _correction(draft)
    elif name == "ppo":
        draft.take(
            LOSS,
            {"objective.name": "ppo"},
            "each token's ratio; the sum over tokens, divided by all tokens of an update",
        )
        draft.take(_range_key(draft), clip(low, high))
        cap = None if draft["actor.dual_clip"] is None else draft.number("actor.dual_clip")
        draft.take("actor.dual_clip", {"objective.dual_clip": cap})
        draft.anchor(OLD_POLICY)
        draft.switched_off(CORRECTED, (False,), SAMPLED_BY_TRAINER)
    else:
        raise draft.error(LOSS, f"policy_loss_type is {name!r}; OpenRLHF has ppo and gspo")
    draft.also("actor.dual_clip")
    draft.also("actor.eps_clip")
    draft.also("actor.eps_clip_low_high")
    draft.switched_off("actor.entropy_coef", (None, 0, 0.0), NO_ENTROPY)
    draft.switched_off(
        "actor.aux_loss_coef", (0, 0.0), "the loss has no term for the balance of experts here"
    )
    _figures(draft, name)


def _range_key(draft: Draft) -> str:
    return (
        "actor.eps_clip" if draft["actor.eps_clip_low_high"] is None else "actor.eps_clip_low_high"
    )


def _range(draft: Draft) -> tuple[float, float]:
    if draft["actor.eps_clip_low_high"] is None:
        both = draft.number("actor.eps_clip")
        return both, both
    low, high = draft.pair("actor.eps_clip_low_high")
    return float(low), float(high)


def _correction(draft: Draft) -> None:
    if draft[CORRECTED]:
        draft.change(CORRECTED, {"trainer.old_logp": "trainer"}, REANCHORED + OLD_POLICY)
    else:
        draft.take(CORRECTED, {"trainer.old_logp": "trainer"}, OLD_POLICY)


def advantage(draft: Draft) -> None:
    """From rewards to advantages."""
    key, plain = "algo.advantage.estimator", "algo.advantage.no_std_norm"
    name = str(draft[key])
    same = {"group_norm": ("mean", "std"), "dr_grpo": ("mean", "none"), "rloo": ("loo", "none")}
    if name in same:
        baseline, scale = same[name]
        note = (
            "the group's unbiased standard deviation (n - 1); OpenRLHF adds 1e-9 to it, here 1e-6"
            if scale == "std"
            else ""
        )
        draft.take(key, {"advantage.baseline": baseline, "advantage.scale": scale}, note)
    elif name == "reinforce_baseline":
        draft.change(
            key, {"advantage.baseline": "mean", "advantage.scale": "none"}, BATCH_NORMALISED
        )
    elif name == "gae":
        draft.change(key, {"advantage.baseline": "mean", "advantage.scale": "std"}, NO_CRITIC)
    else:
        raise draft.error(
            key,
            f"estimator {name!r} has no group to compare with; here are group_norm, dr_grpo and rloo",
        )
    draft.leave(plain, "scales the advantages of the whole batch there, which is not done here")


def kl(draft: Draft) -> None:
    """In the loss or in the reward; on unless the coefficient is 0."""
    key, kind = "algo.kl.init_coef", "algo.kl.estimator"
    coefficient, estimator = draft.number(key), str(draft[kind])
    if estimator not in ("k1", "k2", "k3"):
        raise draft.error(kind, f"estimator is {estimator!r}; wanted k1, k2 or k3")
    draft.switched_off("algo.kl.target", (None,), "the penalty keeps its coefficient here")
    if coefficient <= 0:
        draft.take(key, {"objective.kl": None}, "no reference model on either side")
        draft.leave("algo.kl.use_loss", "the penalty is off there")
        draft.leave(kind, "the penalty is off there")
        return
    if draft["algo.kl.use_loss"] and estimator != "k1":
        settings = {"objective.kl": {"coefficient": coefficient, "estimator": estimator}}
        draft.take(key, settings, f"{estimator} in the loss, there and here")
        if draft.get("objective.name") == "gspo":
            draft.remark(
                "KL in the loss",
                "divided by all tokens",
                "divided by responses, as the objective",
                "OpenRLHF adds the penalty up over tokens even under gspo",
            )
    else:
        settings = {"objective.kl": {"coefficient": coefficient, "estimator": "k1"}}
        draft.change(key, settings, _in_reward(bool(draft["algo.kl.use_loss"]), estimator))
    draft.also("algo.kl.use_loss")
    draft.also(kind)


def _in_reward(in_loss: bool, estimator: str) -> str:
    if in_loss:
        return (
            "k1 in a loss has a gradient of mean zero and penalises nothing; here it is in the reward, the mean over the "
            "tokens of a response"
        )
    return (
        f"{estimator} in the reward there, k1 here: there each token's penalty acts on what came before it, after the "
        "rewards were compared; here its mean over a response is taken off the reward before. At 500 tokens the same "
        "number is some 500 times weaker here"
    )


def _figures(draft: Draft, name: str) -> None:
    there = "cut tokens / all tokens, every update, so long responses count more"
    if name == "gspo":
        why = "a cut response counts by its length there; clip/cut_share_all counts responses, and is the paper's 0.15"
    else:
        why = "clip/cut_share leaves out the first update and groups without signal, and is larger"
    draft.remark("metric ppo_clip_ratio", there, "clip/cut_share_all_tokens", why)
