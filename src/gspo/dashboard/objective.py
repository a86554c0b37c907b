"""What a recipe says about its objective and the clip range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from gspo.dashboard.columns import number_of
from gspo.dashboard.plain import finite, plain
from gspo.settings import GSPO, OBJECTIVES, PAPER_CLIP

T = TypeVar("T")
#: Events after which another range is in force.
CLIP_EVENTS = ("clip_fixed", "refit", "clip_rescaled")


def setting(recipe: Mapping[str, Any], section: str, key: str, kind: type[T]) -> T | None:
    """One setting, or None where it is missing or of another type."""
    found = recipe.get(section)
    value = found.get(key) if isinstance(found, Mapping) else None
    return value if type(value) is kind else None


def name_of(recipe: Mapping[str, Any]) -> str | None:
    """The objective's name; None where the recipe does not say."""
    section = recipe.get("objective")
    name = section.get("name") if isinstance(section, Mapping) else section
    return name if isinstance(name, str) else None


def objective_of(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Its name, its unit, the clip setting as it is, and the form of the range."""
    name = name_of(recipe) or GSPO.name
    known = OBJECTIVES.get(name, GSPO)
    clip = _clip(recipe, name)
    return {
        "name": name,
        "unit": known.unit,
        "clip": plain(clip),
        "form": _form(name, clip),
    }


def band_of(
    recipe: Mapping[str, Any],
    recorded: tuple[float, float] | None,
) -> dict[str, Any] | None:
    """The range in force; None where the objective has none, or it is not known yet. recorded:
    the last one that the run wrote down."""
    name = name_of(recipe) or GSPO.name
    clip = _clip(recipe, name)
    form = _form(name, clip)
    if form in ("auto", "range") and recorded is not None:
        return {"form": "range", "low": recorded[0], "high": recorded[1]}
    if clip == "paper":
        clip = asdict(PAPER_CLIP)
    if form == "length_fair":
        clip = clip["length_fair"]
    if form in ("none", "auto") or not isinstance(clip, Mapping):
        return None
    low, high = (finite(number_of(clip.get(side))) for side in ("low", "high"))
    return None if low is None or high is None else {"form": form, "low": low, "high": high}


def _clip(recipe: Mapping[str, Any], name: str) -> Any:
    """As it is set; where the recipe names nothing but the objective, its default."""
    section = recipe.get("objective")
    if isinstance(section, Mapping) and "clip" in section:
        return section["clip"]
    known = OBJECTIVES.get(name)
    if known is None or known.unit == "sequence":
        return "auto"
    default = getattr(known, "__dataclass_fields__", {}).get("clip")
    return None if default is None else asdict(default.default)


def _form(name: str, clip: Any) -> str:
    if clip == "auto":
        return "auto"
    if clip == "paper":
        return "range"
    if not isinstance(clip, Mapping):
        return "none"
    if isinstance(clip.get("length_fair"), Mapping):
        return "length_fair"
    return "log" if name == "gmpo" else "range"
