"""TRL's loss_type and importance_sampling_level as an objective of ours."""

from __future__ import annotations

from typing import Any

from gspo.recipes.importers.common import EACH_ONCE, clip, gspo_clip_remark
from gspo.recipes.importers.draft import Draft

DIVISOR = (
    "TRL divides by the mean number of tokens an update of the rollout batch has, here by the tokens of "
    "that very update"
)
#: How `loss_type` adds up whole responses when the ratio is the sequence's.
LENGTH_WEIGHTED = {
    "dapo": "divides the sum over tokens by all tokens",
    "bnpo": "divides the sum over tokens by the tokens of the micro-batch",
    "dr_grpo": "divides the sum over tokens by a constant",
    "luspo": "multiplies each response by its length",
}


def objective(draft: Draft) -> None:
    """What is minimised, with its range."""
    loss, level = str(draft["loss_type"]), str(draft["importance_sampling_level"])
    if level not in ("token", "sequence", "sequence_token"):
        raise draft.error(
            "importance_sampling_level",
            f"importance_sampling_level is {level!r}; wanted token or sequence",
        )
    if loss == "vespo" or loss not in (*LENGTH_WEIGHTED, "grpo", "cispo", "sapo"):
        raise draft.error(
            "loss_type", f"loss_type {loss!r} has no counterpart; choose an objective by hand"
        )
    if level == "token":
        _token(draft, loss)
    else:
        _sequence(draft, loss, level)
    _unused(draft)


def _sequence(draft: Draft, loss: str, level: str) -> None:
    if loss in ("cispo", "sapo"):
        why = f"{loss} with one ratio a response has no counterpart; its ratio is each token's here"
        draft.change("importance_sampling_level", {"objective.name": loss}, why)
        _token(draft, loss)
        return
    name = "gspo_token" if level == "sequence_token" else "gspo"
    form = (
        "one ratio and one clip a response, the gradient through each token"
        if name == "gspo_token"
        else "one ratio a response, the gradient through the mean of its log-ratios"
    )
    draft.take("importance_sampling_level", {"objective.name": name}, form)
    if loss == "grpo":
        draft.take(
            "loss_type", {"objective.name": name}, "each response counts alike, as in the paper"
        )
    else:
        why = (
            f"GSPO's ratio, but {loss} {LENGTH_WEIGHTED[loss]}: a response counts by its length. Here each "
            "counts alike, as in the paper and in loss_type='grpo'"
        )
        draft.change("loss_type", {"objective.name": name}, why)
    _range(draft, sequence=True)
    if draft["delta"] is not None:
        draft.leave("delta", "gspo has no cap on the ratio where the advantage is negative")


def _token(draft: Draft, loss: str) -> None:
    draft.also("importance_sampling_level")
    if loss == "sapo":
        draft.take("loss_type", {"objective.name": "sapo"})
        taus = {
            "sapo_temperature_pos": "objective.tau_pos",
            "sapo_temperature_neg": "objective.tau_neg",
        }
        for key, setting in taus.items():
            draft.take(key, {setting: draft.number(key)})
        return
    if loss == "cispo":
        _cispo(draft)
        return
    if loss == "luspo":
        raise draft.error(
            "loss_type", "luspo with token ratios has no counterpart; choose an objective by hand"
        )
    names = {"grpo": "grpo", "dapo": "dapo", "bnpo": "dapo", "dr_grpo": "dr_grpo"}
    name = names[loss]
    if draft["delta"] is not None and name == "dapo":
        name = "ppo"
        note = "min(ratio, delta) where the advantage is negative, as dual clip"
        draft.take("delta", {"objective.dual_clip": draft.number("delta")}, note)
    elif draft["delta"] is not None:
        draft.leave("delta", f"only ppo has a cap on the ratio here, not {name}")
    settings: dict[str, Any] = {"objective.name": name}
    if loss == "grpo":
        draft.take("loss_type", settings, "mean over tokens, then over responses")
    elif loss == "dr_grpo":
        draft.take(
            "loss_type",
            settings,
            "divided by responses x max_completion_length, which is rollout.max_tokens",
        )
    else:
        why = (
            DIVISOR
            if loss == "dapo"
            else "TRL divides by the tokens of a micro-batch, here by those of the update"
        )
        draft.change("loss_type", settings, why)
    _range(draft, sequence=False)


def _cispo(draft: Draft) -> None:
    """TRL's epsilon_high is the largest weight itself, ours the distance from 1."""
    given = draft["epsilon_high"]
    largest = draft.number("epsilon" if given is None else "epsilon_high")
    if largest < 1:
        raise draft.error(
            "epsilon_high",
            f"for cispo epsilon_high is the largest weight itself, and {largest:g} holds every token below 1; "
            "5.0 is usual",
        )
    draft.change("loss_type", {"objective.name": "cispo"}, DIVISOR)
    why = "the largest weight itself there, its distance from 1 here; there is no lower bound"
    key = "epsilon" if given is None else "epsilon_high"
    draft.change(key, clip(1.0, largest - 1), why)


def _range(draft: Draft, *, sequence: bool) -> None:
    low = draft.number("epsilon")
    high = low if draft["epsilon_high"] is None else draft.number("epsilon_high")
    note = gspo_clip_remark(low, high) if sequence else ""
    draft.take("epsilon", clip(low, high), note)
    if draft["epsilon_high"] is None:
        draft.also("epsilon_high")
    else:
        draft.take("epsilon_high", clip(low, high))


def _unused(draft: Draft) -> None:
    """Settings of the loss that have no counterpart, unless they are off."""
    draft.switched_off(
        "top_entropy_quantile", (1, 1.0), "every token of a response is trained on here"
    )
    draft.switched_off(
        "off_policy_mask_threshold",
        (None,),
        "no response is left out for its distance; clip/* shows it",
    )
    draft.switched_off("num_iterations", (1,), EACH_ONCE)
