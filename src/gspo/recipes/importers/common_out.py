"""What the three trainers share on the way from a recipe."""

from __future__ import annotations

import math
from typing import Any

from gspo.recipes.importers.common import OLD_POLICY
from gspo.recipes.importers.draft import MISSING
from gspo.recipes.importers.outgoing import Outgoing
from gspo.recipes.objective_section import Band, LengthFairBand
from gspo.recipes.sections import FileData, SavedModel
from gspo.settings import PAPER_CLIP

MEASURED = (
    "auto measures the range on your model; there it is a fixed number. This is the paper's: put in what a run "
    "measured (`gspo train RECIPE`, then clip/low and clip/high), or what `gspo calibrate` says"
)


def model(out: Outgoing, key: str) -> None:
    """The model's folder."""
    section = out.recipe.model
    if not isinstance(section, SavedModel):
        out.leave("model", "a model made from its shape; save it and give its folder there")
        return
    if section.path.startswith(MISSING):
        out.leave("model.path", "the recipe names no model yet")
    else:
        out.take("model.path", {key: section.path})


def source(out: Outgoing) -> FileData | None:
    """The section of prompts that come from data; else the report says so."""
    section = out.recipe.data
    if not isinstance(section, FileData):
        out.leave("data", f"{out.trainer} makes no prompts of its own; write them to a file")
        return None
    if section.path.startswith(MISSING):
        out.leave("data.path", "the recipe names no prompts yet")
        return None
    return section


def band(out: Outgoing) -> tuple[float, float, str]:
    """low and high of the range, and why they are not the recipe's own ("" where they are)."""
    clip: Any = getattr(out.recipe.objective, "clip", None)
    match clip:
        case Band():
            return clip.low, clip.high, ""
        case LengthFairBand(length_fair=fair):
            length = out.recipe.rollout.max_tokens
            why = (
                f"a band that narrows with the length is a fixed one there: this is its width at {length} tokens, the "
                "longest response, so shorter ones are cut more often"
            )
            return fair.low / math.sqrt(length), fair.high / math.sqrt(length), why
        case "paper":
            return PAPER_CLIP.low, PAPER_CLIP.high, ""
        case _:
            return PAPER_CLIP.low, PAPER_CLIP.high, MEASURED


def clip(out: Outgoing, to: dict[str, Any], why: str) -> None:
    """The range under the other trainer's keys."""
    if why:
        out.change("objective.clip", to, why)
    else:
        out.take("objective.clip", to)
    if getattr(out.recipe.objective, "clip", None) == "auto":
        out.leave("objective.cut_share", "what auto aims at; a fixed range has none")


def gspo_token(out: Outgoing, to: dict[str, Any]) -> None:
    """gspo, or gspo_token, which has the same numbers while advantages are one a response."""
    if out.recipe.objective.name == "gspo":
        out.take("objective.name", to, "each response counts alike")
    else:
        why = "with one advantage a response, value, clip and gradient are the same"
        out.change("objective.name", to, why)


def no_counterpart(out: Outgoing, have: str) -> Exception:
    """The objective cannot be left out."""
    return out.refuse(
        "objective.name", f"{out.trainer} has no counterpart; set objective to one of {have}"
    )


def old_policy(out: Outgoing) -> None:
    """The other trainers always score the old policy anew."""
    if out.recipe.trainer.old_logp == "auto":
        out.change("trainer.old_logp", f"{out.trainer} scores it anew", OLD_POLICY)
    else:
        out.done("trainer.old_logp")


def baseline(out: Outgoing) -> None:
    """Leaving one out multiplies an advantage with n / (n - 1), and nothing else."""
    if out.recipe.advantage.baseline == "loo":
        size = out.recipe.rollout.group
        why = f"the group's mean there; that makes every advantage smaller by the factor {size - 1}/{size}"
        out.change("advantage.baseline", "mean of the group", why)
    else:
        out.done("advantage.baseline")


def functions(out: Outgoing) -> list[tuple[str, dict[str, Any], float]]:
    """The verifiers of the recipe: place, settings that are set, weight."""
    found = []
    if out.recipe.verifier.parts:
        out.done("verifier.kind", "verifier.function")
    for place, grader in out.recipe.verifier.graders:
        values = grader.model_dump(
            mode="json", exclude_none=True, exclude={"parts", "strict", "max_failed_share"}
        )
        found.append((place, values, float(values.pop("weight", 1.0))))
    return found


def no_reward(out: Outgoing, place: str, values: dict[str, Any], to_do: str) -> None:
    """A verifier without a counterpart. to_do: what its owner has to write there."""
    why = "the recipe names no reward yet" if MISSING in str(values) else to_do
    out.leave("verifier" if place == "verifier" else "verifier.parts", why)
