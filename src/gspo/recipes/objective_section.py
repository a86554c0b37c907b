"""The `objective` section: which settings each objective takes, and the objective they make.

`objective: gspo` and `objective: {name: gspo}` are the same: everything the objective's own
default. Each objective has its own class, so a setting of another one is an error, and no value
survives a change of objective.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from gspo.errors import nearest
from gspo.recipes.fields import Count, NotNegative, Number, Positive, Section
from gspo.settings import (
    CISPO,
    DAPO,
    GMPO,
    GRPO,
    OBJECTIVES,
    PAPER_CLIP,
    PPO,
    SAPO,
    ClipRange,
    KLPenalty,
    LengthFairClip,
    LogClip,
    ObjectiveSettings,
    SequenceClip,
)

CUT_SHARE = 0.15  # of the responses of a step: what arXiv 2507.18071, section 5.2, reports


class Band(Section):
    """Two distances from ratio 1, below and above. In log space for gmpo."""

    low: NotNegative
    """Distance below ratio 1; 1 is no lower cut."""
    high: NotNegative
    """Distance above ratio 1."""


class LengthFairBand(Section):
    """A band on log s that narrows as 1/sqrt(length), so that every length is cut alike."""

    length_fair: Band
    """Half-widths in nats times sqrt(token); a response of L tokens gets low/sqrt(L), high/sqrt(L)."""


def _clip_form(value: Any) -> str | None:
    if isinstance(value, str):
        return "<a word>"
    if isinstance(value, LengthFairBand) or (isinstance(value, dict) and "length_fair" in value):
        return "<length_fair>"
    return "<a band>" if isinstance(value, dict | Band) else None


SequenceClipSetting = Annotated[
    Annotated[Literal["auto", "paper"], Tag("<a word>")]
    | Annotated[Band, Tag("<a band>")]
    | Annotated[LengthFairBand, Tag("<length_fair>")],
    Discriminator(
        _clip_form,
        custom_error_type="clip_form",
        custom_error_message="wanted auto, paper, {low, high} or {length_fair: {low, high}}",
    ),
]


class KLSection(Section):
    """A penalty on the distance from the reference policy."""

    coefficient: Positive
    """Weight of the penalty, per nat per token; there is no default, 1e-3 to 5e-2 is usual."""
    estimator: Literal["k1", "k2", "k3"] = "k3"
    """k1 goes into the reward, k2 and k3 into the loss. k3: never negative, small variance."""


class ObjectiveSection(Section):
    """What all objectives take."""

    name: Any  # each class has its own literal
    """Which objective; the others' settings do not apply."""
    kl: KLSection | None = None
    """Penalty on the distance from the reference policy; null is none: verifiable rewards need
    no anchor, and it costs a second model."""


class GSPOSection(ObjectiveSection):
    """gspo and gspo_token."""

    name: Literal["gspo", "gspo_token"]
    """gspo: one ratio, one advantage, one clip a response. gspo_token: one advantage a token."""
    clip: SequenceClipSetting = "auto"
    """auto: measure log s over the first steps, then fix the range that cuts cut_share. paper:
    3e-4 / 4e-4. {low, high}: distances from ratio 1. {length_fair: {low, high}}. The range depends
    on learning rate, length and engine, so no number is a good default."""
    cut_share: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """Share of a step's responses that auto aims to cut; 0.15 is the paper's. Only with clip: auto."""

    @model_validator(mode="before")
    @classmethod
    def _cut_share_belongs_to_auto(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        clip, share = values.get("clip", "auto"), values.get("cut_share")
        if clip == "auto":
            return {**values, "cut_share": CUT_SHARE if share is None else share}
        if share is not None:
            raise PydanticCustomError(
                "cut_share",
                "is what clip: auto aims at, but clip is given; remove it, or set clip to auto",
                {"setting": "cut_share"},
            )
        return values


class TokenSection(ObjectiveSection):
    """What the objectives with a clip on token ratios take."""

    clip: Band
    """Distances of a token's ratio from 1."""


def _band(clip: ClipRange | LogClip) -> Band:
    return Band(low=clip.low, high=clip.high)


class GRPOSection(TokenSection):
    """grpo."""

    name: Literal["grpo"]
    """Token ratios, mean over tokens, then over responses."""
    clip: Band = _band(GRPO().clip)
    """Distances of a token's ratio from 1; 0.2 / 0.2 as in the paper."""


class DAPOSection(TokenSection):
    """dapo."""

    name: Literal["dapo"]
    """GRPO's surrogate summed over tokens, divided by all tokens."""
    clip: Band = _band(DAPO().clip)
    """Distances of a token's ratio from 1; 0.2 / 0.28 as in the paper."""


class DrGRPOSection(TokenSection):
    """dr_grpo."""

    name: Literal["dr_grpo"]
    """GRPO's surrogate summed over tokens, divided by responses x max_tokens; goes with
    advantage.scale: none."""
    clip: Band = _band(GRPO().clip)
    """Distances of a token's ratio from 1; 0.2 / 0.2 as GRPO."""
    max_tokens: Count | None = None
    """Tokens a response counts in the denominator; null is rollout.max_tokens."""


class PPOSection(TokenSection):
    """ppo."""

    name: Literal["ppo"]
    """PPO's token surrogate, divided by all tokens."""
    clip: Band = _band(PPO().clip)
    """Distances of a token's ratio from 1; 0.2 / 0.2 as in the paper."""
    dual_clip: Number | None = None
    """Largest ratio counted where the advantage is negative, above 1 (3 is usual); null is no cap."""


class CISPOSection(TokenSection):
    """cispo."""

    name: Literal["cispo"]
    """REINFORCE with a clipped, detached token ratio as weight."""
    clip: Band = _band(CISPO().clip)
    """Where the weight is held; 1 / 4: no lower cut, ratio at most 5, as public recipes have it."""


class GMPOSection(ObjectiveSection):
    """gmpo."""

    name: Literal["gmpo"]
    """Geometric mean of token ratios, each clipped on one side first."""
    clip: Band = _band(GMPO().clip)
    """Distances of a token's log-ratio from 0, in nats; 0.4 / 0.4 as in the paper."""


class SAPOSection(ObjectiveSection):
    """sapo."""

    name: Literal["sapo"]
    """A sigmoid gate on token ratios instead of a clip."""
    tau_pos: Positive = SAPO().tau_pos
    """Steepness of the gate where the advantage is positive; 1.0 as in the paper."""
    tau_neg: Positive = SAPO().tau_neg
    """Steepness of the gate where the advantage is negative; 1.05 as in the paper."""


def _by_name(value: Any) -> Any:
    """The scalar form, an unknown name, and the default name."""
    if isinstance(value, ObjectiveSection):
        return value
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("objective_form", "wanted a name or a mapping with a name")
    name = value.get("name", "gspo")
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise PydanticCustomError(
            "objective_name",
            "objective {name} is unknown; {hint}",
            {"name": repr(name), "hint": nearest(str(name), OBJECTIVES)},
        )
    return {**value, "name": name}


def _objective_tag(value: Any) -> str:
    return f"<{value['name'] if isinstance(value, dict) else value.name}>"


ObjectiveSetting = Annotated[
    Annotated[GSPOSection, Tag("<gspo>")]
    | Annotated[GSPOSection, Tag("<gspo_token>")]
    | Annotated[GRPOSection, Tag("<grpo>")]
    | Annotated[DAPOSection, Tag("<dapo>")]
    | Annotated[DrGRPOSection, Tag("<dr_grpo>")]
    | Annotated[GMPOSection, Tag("<gmpo>")]
    | Annotated[CISPOSection, Tag("<cispo>")]
    | Annotated[SAPOSection, Tag("<sapo>")]
    | Annotated[PPOSection, Tag("<ppo>")],
    Discriminator(_objective_tag),
    BeforeValidator(_by_name),
]


def _sequence_clip(clip: Literal["auto", "paper"] | Band | LengthFairBand) -> SequenceClip:
    match clip:
        case Band():
            return ClipRange(low=clip.low, high=clip.high)
        case LengthFairBand(length_fair=band):
            return LengthFairClip(low=band.low, high=band.high)
        case _:
            return PAPER_CLIP


def objective_settings(
    section: ObjectiveSection, max_tokens: int
) -> tuple[ObjectiveSettings, bool]:
    """The objective of a section, and whether its range is still to be measured (`clip: auto`:
    the settings then hold the paper's range until it is).

    max_tokens: rollout.max_tokens, dr_grpo's default. Raises RecipeError for an impossible range.
    """
    objective: Any = OBJECTIVES[section.name]
    settings: dict[str, Any]
    match section:
        case GSPOSection():
            return objective(clip=_sequence_clip(section.clip)), section.clip == "auto"
        case GMPOSection():
            settings = {"clip": LogClip(low=section.clip.low, high=section.clip.high)}
        case SAPOSection():
            settings = {"tau_pos": section.tau_pos, "tau_neg": section.tau_neg}
        case TokenSection():
            settings = {"clip": ClipRange(low=section.clip.low, high=section.clip.high)}
        case _:
            raise TypeError(f"{type(section).__name__} is no section of a known objective")
    if isinstance(section, DrGRPOSection):
        settings["max_tokens"] = section.max_tokens or max_tokens
    if isinstance(section, PPOSection):
        settings["dual_clip"] = section.dual_clip
    return objective(**settings), False


def kl_penalty(section: ObjectiveSection) -> KLPenalty | None:
    """The KL penalty of a section, or None."""
    if section.kl is None:
        return None
    return KLPenalty(coefficient=section.kl.coefficient, estimator=section.kl.estimator)
