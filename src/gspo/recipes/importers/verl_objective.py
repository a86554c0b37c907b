"""verl's loss_mode, loss_agg_mode, advantage and KL as settings of ours."""

from __future__ import annotations

from typing import Any

from gspo.recipes.importers.common import NO_ENTROPY, clip, gspo_clip_remark
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.verl_keys import ACTOR

LOSS, AGGREGATION = f"{ACTOR}.policy_loss.loss_mode", f"{ACTOR}.loss_agg_mode"
LOW, HIGH, DUAL = f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high", f"{ACTOR}.clip_ratio_c"
SEQUENCE_MEAN, TOKEN_MEAN = "seq-mean-token-mean", "token-mean"
NO_CRITIC = (
    "it needs a critic, and there is none here; a response is compared with its group, as adv_estimator=grpo "
    "does, which verl's own GSPO scripts set"
)
BATCH_NORMALISED = (
    "minus the group's mean on both sides; there all advantages of the batch are then scaled together, which "
    "AdamW hardly sees"
)
#: adv_estimator -> baseline, scale; None where the scale is a setting of its own.
ESTIMATORS = {
    "grpo": ("mean", None),
    "grpo_vectorized": ("mean", None),
    "rloo": ("loo", "none"),
    "rloo_vectorized": ("loo", "none"),
}


def objective(draft: Draft) -> None:
    """What is minimised, with its range and its way of adding up."""
    mode = str(draft[LOSS])
    match mode:
        case "gspo":
            note = (
                "verl writes it as GSPO-token, through each token's log-prob; with one advantage a response "
                "value, clip and gradient are those of GSPO"
            )
            draft.take(LOSS, {"objective.name": "gspo"}, note)
            _range(draft, gspo=True)
            _always(draft, SEQUENCE_MEAN)
            draft.leave(DUAL, "verl's gspo ignores it, and gspo has no cap here")
        case "vanilla":
            _vanilla(draft)
        case "geo_mean":
            note = "the range is one of log-ratios, there and here"
            draft.take(LOSS, {"objective.name": "gmpo"}, note)
            _range(draft)
            _always(draft, "mean over responses")
        case "cispo":
            draft.take(LOSS, {"objective.name": "cispo"})
            _range(draft)
            _divided_by_tokens(draft)
        case "sapo":
            draft.take(LOSS, {"objective.name": "sapo"})
            draft.take(f"{ACTOR}.tau_pos", {"objective.tau_pos": draft.number(f"{ACTOR}.tau_pos")})
            draft.take(f"{ACTOR}.tau_neg", {"objective.tau_neg": draft.number(f"{ACTOR}.tau_neg")})
            _always(draft, SEQUENCE_MEAN)
        case _:
            raise draft.error(
                LOSS, f"loss_mode {mode!r} has no counterpart; choose an objective by hand"
            )
    draft.switched_off(f"{ACTOR}.entropy_coeff", (0, 0.0, None), NO_ENTROPY)
    _figures(draft, mode)


def _vanilla(draft: Draft) -> None:
    """PPO's clip on each token's ratio, with the cap of dual clip."""
    how = str(draft[AGGREGATION])
    cap = draft.number(DUAL)
    if how == TOKEN_MEAN:
        draft.take(LOSS, {"objective.name": "ppo"}, "clip on each token's ratio")
        draft.take(
            AGGREGATION,
            {"objective.name": "ppo"},
            "the sum over tokens, divided by all tokens of an update",
        )
        draft.take(
            DUAL,
            {"objective.dual_clip": cap},
            "the largest ratio counted where the advantage is negative",
        )
        _range(draft)
        return
    names = {SEQUENCE_MEAN: "grpo", "seq-mean-token-sum-norm": "dr_grpo"}
    if how not in names:
        raise draft.error(
            AGGREGATION,
            f"loss_agg_mode {how!r} has no counterpart; here are {TOKEN_MEAN} (ppo, dapo), {SEQUENCE_MEAN} (grpo) and "
            "seq-mean-token-sum-norm (dr_grpo)",
        )
    name = names[how]
    draft.take(LOSS, {"objective.name": name}, "clip on each token's ratio")
    if name == "grpo":
        draft.take(AGGREGATION, {"objective.name": name}, "mean over tokens, then over responses")
    else:
        _constant(draft, how)
    _range(draft)
    why = f"verl caps the ratio at {cap:g} where the advantage is negative; only ppo has that here, not {name}"
    draft.change(DUAL, f"{name} without a cap", why)


def _constant(draft: Draft, how: str) -> None:
    """Divided by a constant: verl's is not multiplied with the number of responses."""
    factor = draft[f"{ACTOR}.loss_scale_factor"]
    length = (
        draft.get("rollout.max_tokens")
        if factor is None
        else draft.count(f"{ACTOR}.loss_scale_factor")
    )
    settings: dict[str, Any] = {"objective.name": "dr_grpo"}
    if length != draft.get("rollout.max_tokens"):
        settings["objective.max_tokens"] = length
    why = (
        f"verl divides a micro-batch's sum by {length} alone, here the whole sum is divided by responses x {length}: "
        "the gradient differs by the rows of a micro-batch, which AdamW hardly sees but max_grad_norm does"
    )
    draft.change(AGGREGATION, settings, why)
    draft.also(f"{ACTOR}.loss_scale_factor")


def _range(draft: Draft, *, gspo: bool = False) -> None:
    """clip_ratio_low and _high come before clip_ratio, which counts where they are null."""
    both = draft.number(f"{ACTOR}.clip_ratio")
    low = both if draft[LOW] is None else draft.number(LOW)
    high = both if draft[HIGH] is None else draft.number(HIGH)
    note = gspo_clip_remark(low, high) if gspo else ""
    draft.take(LOW, clip(low, high), note)
    draft.take(HIGH, clip(low, high))
    if draft[LOW] is not None and draft[HIGH] is not None:
        draft.leave(
            f"{ACTOR}.clip_ratio",
            "verl reads clip_ratio_low and clip_ratio_high, 0.2 unless they are set",
        )
    else:
        draft.also(f"{ACTOR}.clip_ratio")


def _always(draft: Draft, how: str) -> None:
    """Objectives that add up in one way, whatever loss_agg_mode says."""
    if draft[AGGREGATION] == how:
        draft.take(
            AGGREGATION,
            {"objective.name": draft.get("objective.name")},
            "each response counts alike",
        )
    else:
        name = draft.get("objective.name")
        why = f"verl ignores it for this loss and takes the {how}, and so does {name} here: each response counts alike"
        draft.change(AGGREGATION, {"objective.name": name}, why)


def _divided_by_tokens(draft: Draft) -> None:
    name = draft.get("objective.name")
    if draft[AGGREGATION] == TOKEN_MEAN:
        draft.take(
            AGGREGATION,
            {"objective.name": name},
            "the sum over tokens, divided by all tokens of an update",
        )
    else:
        draft.change(
            AGGREGATION,
            {"objective.name": name},
            f"{name} is divided by all tokens of an update here",
        )


def advantage(draft: Draft) -> None:
    """From rewards to advantages."""
    key, norm = "algorithm.adv_estimator", "algorithm.norm_adv_by_std_in_grpo"
    name = str(draft[key])
    scale = "std" if draft[norm] else "none"
    if name in ESTIMATORS:
        baseline, fixed = ESTIMATORS[name]
        draft.take(key, {"advantage.baseline": baseline})
        note = "the group's unbiased standard deviation (n - 1) + 1e-6, there and here"
        draft.take(
            norm,
            {"advantage.scale": fixed or scale},
            note if fixed is None and scale == "std" else "",
        )
        return
    draft.also(norm)
    if name == "reinforce_plus_plus_baseline":
        draft.change(
            key, {"advantage.baseline": "mean", "advantage.scale": "none"}, BATCH_NORMALISED
        )
    elif name == "gae":
        draft.change(key, {"advantage.baseline": "mean", "advantage.scale": "std"}, NO_CRITIC)
    else:
        raise draft.error(
            key,
            f"adv_estimator {name!r} has no counterpart; here are grpo and rloo: set the section advantage by hand",
        )


def kl(draft: Draft) -> None:
    """In the loss or in the reward."""
    in_loss, in_reward = (
        bool(draft[f"{ACTOR}.use_kl_loss"]),
        bool(draft["algorithm.use_kl_in_reward"]),
    )
    if in_loss:
        _kl_in_loss(draft)
    elif in_reward:
        _kl_in_reward(draft)
    else:
        draft.take(
            f"{ACTOR}.use_kl_loss", {"objective.kl": None}, "no reference model on either side"
        )
    draft.also(f"{ACTOR}.use_kl_loss")
    if in_loss and in_reward:
        why = "one penalty here, and the one in the loss is taken"
        draft.leave("algorithm.use_kl_in_reward", why)
    draft.also("algorithm.use_kl_in_reward")
    off = "the penalty is off there"
    for name, used in {
        f"{ACTOR}.kl_loss_coef": in_loss,
        f"{ACTOR}.kl_loss_type": in_loss,
        "algorithm.kl_ctrl.kl_coef": in_reward and not in_loss,
        "algorithm.kl_penalty": in_reward and not in_loss,
        "algorithm.kl_ctrl.type": in_reward and not in_loss,
    }.items():
        if used:
            draft.also(name)
        else:
            draft.leave(name, off)


def _kl_in_loss(draft: Draft) -> None:
    kind, coefficient = str(draft[f"{ACTOR}.kl_loss_type"]), draft.number(f"{ACTOR}.kl_loss_coef")
    key = f"{ACTOR}.kl_loss_type"
    if coefficient == 0:
        draft.take(f"{ACTOR}.kl_loss_coef", {"objective.kl": None}, "a penalty of 0 is none")
        return
    plain = {"low_var_kl": "k3", "k3": "k3", "mse": "k2", "k2": "k2"}
    if kind in plain:
        estimator = plain[kind]
        draft.take(
            key, _penalty(coefficient, estimator), f"{estimator} in the loss, there and here"
        )
    elif kind.endswith("+"):
        why = "its gradient is that of k2, which is what acts; the value it shows is another"
        draft.change(key, _penalty(coefficient, "k2"), why)
    elif kind in ("kl", "k1"):
        why = "k1 in a loss has a gradient of mean zero and penalises nothing; here it is in the reward"
        draft.change(key, _penalty(coefficient, "k1"), why)
    else:
        raise draft.error(key, f"kl_loss_type {kind!r} has no counterpart; here are k1, k2 and k3")
    draft.take(f"{ACTOR}.kl_loss_coef", {"objective.kl.coefficient": coefficient})
    name = draft.get("objective.name")
    if draft[AGGREGATION] == TOKEN_MEAN and name in ("gspo", "sapo", "gmpo"):
        draft.remark(
            "KL in the loss",
            "divided by all tokens",
            "divided by responses, as the objective",
            f"verl adds it up by loss_agg_mode, here it is added up as {name} is",
        )


def _kl_in_reward(draft: Draft) -> None:
    coefficient = draft.number("algorithm.kl_ctrl.kl_coef")
    why = (
        "k1 in the reward; there summed over the tokens of a response, here their mean: at 500 tokens the same number is "
        "500 times weaker here"
    )
    penalty = str(draft["algorithm.kl_penalty"])
    if penalty not in ("kl", "k1"):
        why = f"{penalty} in the reward there, k1 here; {why}"
    settings = _penalty(coefficient, "k1") if coefficient else {"objective.kl": None}
    draft.change("algorithm.kl_ctrl.kl_coef", settings, why)
    if draft["algorithm.kl_ctrl.type"] != "fixed":
        draft.leave("algorithm.kl_ctrl.type", "the penalty keeps its coefficient here")


def _penalty(coefficient: float, estimator: str) -> dict[str, dict[str, float | str]]:
    return {"objective.kl": {"coefficient": coefficient, "estimator": estimator}}


def _figures(draft: Draft, mode: str) -> None:
    if mode == "sapo":
        return
    there = "cut tokens / all tokens, every update, so long responses count more"
    if mode == "gspo":
        why = "a cut response counts by its length there; clip/cut_share_all counts responses, and is the paper's 0.15"
    else:
        why = "clip/cut_share leaves out the first update and groups without signal, and is larger"
    draft.remark("metric actor/pg_clipfrac", there, "clip/cut_share_all_tokens", why)
