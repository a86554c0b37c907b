"""From another trainer's file to a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers import (
    openrlhf_in,
    openrlhf_keys,
    openrlhf_source,
    trl_in,
    trl_keys,
    trl_source,
    verl_in,
    verl_keys,
    verl_source,
)
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.found import Found, checked
from gspo.recipes.importers.report import Report
from gspo.recipes.load import recipe_from
from gspo.recipes.schema import Recipe
from gspo.recipes.yaml_text import to_text


@dataclass(frozen=True, slots=True)
class Trainer:
    """How one trainer's files are read. title: as people write it."""

    title: str
    read: Callable[[Path], Found]
    to_recipe: Callable[[Draft], None]
    defaults: Mapping[str, Any]
    known: frozenset[str]
    unused: Mapping[str, str]
    subtrees: Mapping[str, str]


TRAINERS: Mapping[str, Trainer] = {
    "trl": Trainer(
        "TRL",
        trl_source.read_trl,
        trl_in.to_recipe,
        {**trl_keys.DEFAULTS, **trl_keys.EARLIER},
        trl_keys.KNOWN,
        trl_keys.NOT_CARRIED,
        {},
    ),
    "verl": Trainer(
        "verl",
        verl_source.read_verl,
        verl_in.to_recipe,
        verl_keys.DEFAULTS,
        verl_keys.KNOWN,
        verl_keys.NOT_CARRIED,
        verl_keys.SUBTREES,
    ),
    "openrlhf": Trainer(
        "OpenRLHF",
        openrlhf_source.read_openrlhf,
        openrlhf_in.to_recipe,
        openrlhf_keys.DEFAULTS,
        openrlhf_keys.KNOWN,
        openrlhf_keys.NOT_CARRIED,
        {},
    ),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """values: the recipe's settings as they are written. recipe: the same, checked."""

    values: dict[str, Any]
    recipe: Recipe
    report: Report
    text: str


def import_settings(trainer: str, path: Path, *, lenient: bool = False) -> Imported:
    """The recipe of a file of `trainer` (a key of TRAINERS). lenient: what is unknown or cannot be
    read is reported instead of refused.

    RecipeError: an unknown key, a value that only running the file would tell, settings that have
    no counterpart, or that a recipe refuses. Nothing of the file is run.
    """
    system = TRAINERS[trainer]
    found = checked(
        system.read(path),
        system.known,
        system.unused,
        system.subtrees,
        system.title,
        lenient=lenient,
    )
    draft = Draft(system.title, path.name, found.given, system.defaults)
    draft.report.not_carried += found.lost
    system.to_recipe(draft)
    try:
        recipe = recipe_from(draft.values)
    except RecipeError as error:
        raise RecipeError(f"{path.name} makes a recipe that cannot be: {error}") from error
    header = f"# From {path.name} ({system.title}), by gspo import {trainer}.\n"
    ordered = {name: draft.values[name] for name in Recipe.model_fields if name in draft.values}
    return Imported(ordered, recipe, draft.report, header + to_text(ordered))
