"""Which recipe and which folder a `gspo train` command means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gspo.errors import DataError, RecipeError
from gspo.recipes.load import load_recipe, recipe_from
from gspo.recipes.naming import free_folder
from gspo.recipes.schema import Recipe
from gspo.recipes.target import RECIPE_FILE

#: What may change between the two parts of a run: how long it goes on and what is kept of it.
#: Everything else changes what is trained, and so needs a run of its own.
CHANGEABLE = (
    "name",
    "trainer.steps",
    "trainer.checkpoint_every",
    "trainer.keep_checkpoints",
    "trainer.max_tokens_per_microbatch",
    "evaluate.every",
    "engine.max_batch",
    "record.folder",
    "record.steps",
    "record.to",
)


def resolve(given: str, overrides: Sequence[str], *, resume: bool) -> tuple[Recipe, Path | None]:
    """The recipe, named, and with `resume` the folder to continue.

    given: a recipe's name or file; with `resume` also a run folder. A recipe that does not name
    the run gets its own name and the first free folder; `resume` then means the newest run of
    that name.
    """
    path = Path(given)
    if (path / RECIPE_FILE).is_file():
        if not resume:
            raise RecipeError(
                f"{given} is a run folder; add --resume to continue it, or give {given}/{RECIPE_FILE} to start anew"
            )
        return load_recipe(path / RECIPE_FILE, overrides), _same_run(path, overrides)
    if resume and path.is_dir():
        raise DataError(
            f"{given} is no run folder: it has no {RECIPE_FILE}; give one such as runs/demo"
        )
    recipe = load_recipe(given, overrides)
    parent, stem = Path(recipe.record.folder), recipe.name or path.stem
    if not resume:
        folder = parent / stem if recipe.name else free_folder(parent, stem)
        return _named(recipe, folder.name), None
    folder = _newest(parent, stem, numbered=recipe.name is None)
    recipe = _named(recipe, folder.name)
    _refuse_changes(load_recipe(folder / RECIPE_FILE), recipe, folder)
    return recipe, folder


def _same_run(folder: Path, overrides: Sequence[str]) -> Path:
    before = load_recipe(folder / RECIPE_FILE)
    _refuse_changes(before, load_recipe(folder / RECIPE_FILE, overrides), folder)
    return folder


def _newest(parent: Path, stem: str, *, numbered: bool) -> Path:
    """The run folder `stem`, or the newest of stem, stem-2, stem-3, …"""
    names = [parent / stem, *parent.glob(f"{stem}-[0-9]*")] if numbered else [parent / stem]
    runs = [path for path in names if (path / RECIPE_FILE).is_file()]
    if not runs:
        raise DataError(
            f"there is no run {parent / stem} to resume; leave --resume out to start it"
        )
    return max(runs, key=lambda path: (path / RECIPE_FILE).stat().st_mtime_ns)


def _named(recipe: Recipe, name: str) -> Recipe:
    return recipe_from({**recipe.model_dump(mode="json"), "name": name})


def _refuse_changes(before: Recipe, now: Recipe, folder: Path) -> None:
    old, new = _flat(before.model_dump(mode="json")), _flat(now.model_dump(mode="json"))
    changed = [
        f"{key} was {old.get(key)!r}, is {new.get(key)!r}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key) and key not in CHANGEABLE
    ]
    if changed:
        raise RecipeError(
            f"{folder} was trained with other settings: {'; '.join(changed)}. Resume it as it was, or start a new run; only {', '.join(CHANGEABLE[1:])} may change"
        )


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
