"""The run's own objective, and the clip range in force at each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from gspo.errors import DataError, RecipeError
from gspo.recipes.messages import explain
from gspo.recipes.objective_section import ObjectiveSetting, objective_settings
from gspo.recipes.yaml_text import read_yaml
from gspo.settings import ClipRange, LengthFairClip, LogClip, ObjectiveSettings

if TYPE_CHECKING:
    from gspo.recorders.reader import Run

Clip = ClipRange | LogClip | LengthFairClip

_OBJECTIVE: TypeAdapter[Any] = TypeAdapter(ObjectiveSetting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """objective: with the recipe's range, or under `clip: auto` with the last one recorded.
    ranges: by step, under `clip: auto` only, else None. max_tokens: rollout.max_tokens."""

    objective: ObjectiveSettings
    ranges: Mapping[int, ClipRange] | None
    max_tokens: int


def own_objective(run: Run) -> Own:
    """From recipe.yaml, and from metrics.jsonl where the range was measured. Only the sections
    `objective` and `rollout` are looked at.

    Raises DataError when recipe.yaml is missing or damaged.
    """
    source = str(run.path / "recipe.yaml")
    try:
        document = read_yaml(run.recipe_text, source)
        values: Any = document.values
        section = _OBJECTIVE.validate_python(values["objective"])
        max_tokens = int(values["rollout"]["max_tokens"])
        objective, auto = objective_settings(section, max_tokens)
    except ValidationError as error:
        raise DataError(
            f"the run's own objective cannot be read: {explain(error, {}, source)}"
        ) from None
    except (RecipeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{source} does not name the run's objective and rollout.max_tokens ({error!s}); "
            "a replay needs both: restore the file"
        ) from error
    if not auto:
        return Own(objective=objective, ranges=None, max_tokens=max_tokens)
    ranges = _recorded_ranges(run)
    if ranges:
        objective = with_clip(objective, ranges[max(ranges)])
    return Own(objective=objective, ranges=ranges, max_tokens=max_tokens)


def with_clip(objective: ObjectiveSettings, clip: Clip) -> ObjectiveSettings:
    """The same objective with this range. Raises RecipeError for a form it does not take."""
    changed: Any = objective
    return replace(changed, clip=clip)


def _recorded_ranges(run: Run) -> dict[int, ClipRange]:
    ranges: dict[int, ClipRange] = {}
    for row in run.metrics():
        low, high = row.get("clip/low"), row.get("clip/high")
        if low is not None and high is not None:
            ranges[row["step"]] = ClipRange(low=low, high=high)
    return ranges
