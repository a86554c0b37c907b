"""An objective from its name and plain numbers, as a call or a command line gives them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from numbers import Real
from typing import Any

from gspo.errors import RecipeError, nearest
from gspo.settings import OBJECTIVES, ClipRange, LogClip, ObjectiveSettings


def objective_settings(name: str, given: Mapping[str, float | int | None]) -> ObjectiveSettings:
    """low and high become the objective's kind of clip; what is left out is its default.

    RecipeError: an unknown name or setting, a value that is no number, a setting that is needed.
    """
    if name not in OBJECTIVES:
        raise RecipeError(f"there is no objective {name!r}; {nearest(str(name), OBJECTIVES)}")
    cls: Any = OBJECTIVES[name]
    fields = {field.name: field.default for field in dataclasses.fields(cls)}
    clip = fields.pop("clip", None)
    bounds = ["low", "high"] if isinstance(clip, ClipRange | LogClip) else []
    for key in given:
        if key not in [*fields, *bounds]:
            raise RecipeError(f"{name} has no setting {key!r}; {nearest(key, [*fields, *bounds])}")
    for key, default in fields.items():
        if default is dataclasses.MISSING and key not in given:
            raise RecipeError(f"{name} needs the setting {key!r}: pass {key}=...")

    for key, value in given.items():
        optional = value is None and fields.get(key, 0) is None
        if not optional and (isinstance(value, bool) or not isinstance(value, Real)):
            raise RecipeError(f"{name} has {key}={value!r}; wanted a number")
    values: dict[str, Any] = {key: given[key] for key in fields if key in given}
    if isinstance(clip, ClipRange | LogClip):
        values["clip"] = dataclasses.replace(
            clip, **{key: given[key] for key in bounds if key in given}
        )
    return cls(**values)
