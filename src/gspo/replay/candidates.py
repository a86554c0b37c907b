"""What a replay compares: objectives with their ranges and denominators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gspo.errors import RecipeError, nearest
from gspo.replay.own import Clip, Own, with_clip
from gspo.settings import (
    GSPO,
    OBJECTIVES,
    PAPER_CLIP,
    ClipRange,
    Denominator,
    LengthFairClip,
    LogClip,
    ObjectiveSettings,
)

ClipForm = Literal["ratio", "log", "length_fair"]

AGGREGATIONS: tuple[Denominator, ...] = ("responses", "tokens", "constant")
CLIP_FORMS = "LOW,HIGH, or paper, or length_fair:LOW,HIGH"

#: Distances on both sides, 1-2-5 a decade: from a third of the paper's range to beyond GRPO's.
SWEEP = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One line of the comparison. objective: with its range. aggregation: another denominator
    than the objective's own, or None. max_tokens: what `constant` counts for a response.
    ranges: the range by step where the run measured it, or None."""

    label: str
    objective: ObjectiveSettings
    max_tokens: int
    aggregation: Denominator | None = None
    ranges: Mapping[int, ClipRange] | None = None

    @property
    def denominator(self) -> Denominator:
        """What the sum of losses is divided by."""
        return self.aggregation or self.objective.denominator

    @property
    def clip(self) -> Clip | None:
        """The range; None for an objective without one."""
        return getattr(self.objective, "clip", None)

    @property
    def clip_form(self) -> ClipForm | None:
        """ratio: distances from ratio 1. log: nats. length_fair: nats times sqrt(token)."""
        forms: dict[type, ClipForm] = {
            ClipRange: "ratio",
            LogClip: "log",
            LengthFairClip: "length_fair",
        }
        return None if self.clip is None else forms[type(self.clip)]

    def at(self, step: int) -> ObjectiveSettings | None:
        """The objective with the range in force at this step; None where it is not known."""
        if self.ranges is None:
            return self.objective
        clip = self.ranges.get(step)
        return None if clip is None else with_clip(self.objective, clip)

    def divisor(self, num_responses: int, num_tokens: int) -> int:
        """D of one optimizer step."""
        if self.aggregation is None or self.aggregation == self.objective.denominator:
            return self.objective.divisor(num_responses, num_tokens)
        per_response = self.max_tokens if self.aggregation == "constant" else 1
        counted = num_tokens if self.aggregation == "tokens" else num_responses * per_response
        return max(counted, 1)


def own_candidate(own: Own) -> Candidate:
    """The run as it was."""
    measured = "" if own.ranges is None else " (auto)"
    return Candidate(
        label=f"own: {own.objective.name}{measured}",
        objective=own.objective,
        max_tokens=own.max_tokens,
        ranges=own.ranges,
    )


def requested(
    own: Own, names: Sequence[str], clips: Sequence[str], aggregations: Sequence[str]
) -> list[Candidate]:
    """Every combination of these. No name is the run's objective; no range is the run's where the
    objective is the run's, else the objective's own default; no aggregation is the objective's.

    Raises RecipeError for an unknown name and a combination that cannot be.
    """
    for aggregation in aggregations:
        if aggregation not in AGGREGATIONS:
            raise RecipeError(
                f"--aggregation is {aggregation!r}; {nearest(aggregation, AGGREGATIONS)}"
            )
    return [
        _candidate(own, name, clip, aggregation)
        for name in names or [own.objective.name]
        for clip in clips or [None]
        for aggregation in aggregations or [None]
    ]


def default_candidates(own: Own) -> list[Candidate]:
    """The run's own, then what others would have set."""
    others = [
        ("gspo", "paper"),
        ("gspo", "0.2,0.2"),
        ("grpo", "0.2,0.27"),
        ("dapo", None),
    ]
    found = [own_candidate(own), *(_candidate(own, name, clip, None) for name, clip in others)]
    fixed = own.objective if own.ranges is None else None
    return [found[0], *(c for c in found[1:] if c.objective != fixed)]


def sweep(own: Own, objective: ObjectiveSettings | None = None) -> list[Candidate]:
    """An objective (the run's own, or gspo where that has no range) under every range of SWEEP."""
    base = own.objective if objective is None else objective
    if not hasattr(base, "clip"):
        base = GSPO()
    kind = LogClip if LogClip in base.clip_kinds else ClipRange
    return [
        Candidate(
            label=f"{base.name} ±{distance:g}",
            objective=with_clip(base, kind(distance, distance)),
            max_tokens=own.max_tokens,
        )
        for distance in SWEEP
    ]


def _candidate(own: Own, name: str, clip_text: str | None, aggregation: Any) -> Candidate:
    is_own = name == own.objective.name
    objective = own.objective if is_own else _default(name, own.max_tokens)
    if clip_text is not None:
        objective = with_clip(objective, _parse_clip(clip_text, objective))
    described = f" {clip_text}" if clip_text else " own range" if is_own else ""
    return Candidate(
        label=f"{name}{described}" + (f" / {aggregation}" if aggregation else ""),
        objective=objective,
        max_tokens=own.max_tokens,
        aggregation=aggregation,
        ranges=own.ranges if is_own and clip_text is None else None,
    )


def _default(name: str, max_tokens: int) -> ObjectiveSettings:
    if name not in OBJECTIVES:
        raise RecipeError(f"--objective {name!r} is unknown; {nearest(name, OBJECTIVES)}")
    make: Any = OBJECTIVES[name]
    return make(max_tokens=max_tokens) if name == "dr_grpo" else make()


def _parse_clip(text: str, objective: ObjectiveSettings) -> Clip:
    """The range a text names, in the form the objective takes."""
    if not hasattr(objective, "clip"):
        raise RecipeError(f"{objective.name} has no clip range; leave --clip {text} out for it")
    form, _, numbers = text.rpartition(":")
    if LengthFairClip not in objective.clip_kinds and (text == "paper" or form):
        raise RecipeError(
            f"--clip {text} is a range for a response's ratio, {objective.name} clips tokens; "
            "give LOW,HIGH, or leave --clip out for its own default"
        )
    if text == "paper":
        return PAPER_CLIP
    try:
        low, high = (float(part) for part in numbers.split(","))
        kind = {"": ClipRange, "length_fair": LengthFairClip}[form]
    except (ValueError, KeyError):
        raise RecipeError(f"--clip is {text!r}; wanted {CLIP_FORMS}") from None
    return LogClip(low, high) if LogClip in objective.clip_kinds else kind(low, high)
