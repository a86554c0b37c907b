"""What `eval` and `sample` look at: a run's checkpoint, or a model folder with a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gspo.errors import DataError, RecipeError
from gspo.recipes.load import load_recipe
from gspo.recipes.schema import Recipe
from gspo.trainer.checkpoint import CheckpointStore

RECIPE_FILE = "recipe.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model folder, the one it started from where that is known, and the recipe to judge by."""

    model: Path
    start: Path | None
    recipe: Recipe
    name: str


def find_target(
    path: Path,
    recipe: str | None,
    overrides: Sequence[str],
    warn: Callable[[str], None],
) -> Target:
    """path: a run folder (its newest whole checkpoint) or a Hugging Face folder; the latter needs
    a recipe."""
    if (path / RECIPE_FILE).is_file():
        store = CheckpointStore(path / "checkpoints", keep=1)
        newest = store.latest(warn)
        if newest is None:
            raise DataError(f"{path} has no checkpoint yet; wait for its first, or train it")
        first = store.list()[0]
        return Target(
            model=newest.model,
            start=first.model if first.step < newest.step else None,
            recipe=load_recipe(recipe or path / RECIPE_FILE, overrides),
            name=f"{path} step {newest.step}",
        )
    if not (path / "config.json").is_file():
        raise DataError(
            f"{path} is neither a run folder (it has no {RECIPE_FILE}) nor a model folder (no config.json)"
        )
    if recipe is None:
        raise RecipeError(
            f"{path} is a model folder and says nothing about prompts and verifier; add --recipe NAME"
        )
    return Target(model=path, start=None, recipe=load_recipe(recipe, overrides), name=str(path))


def with_model(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with the model of this folder instead of its own, and no cold start."""
    from gspo.recipes.load import recipe_from

    values = recipe.model_dump(mode="json")
    model = {"path": str(folder), "dtype": recipe.model.dtype}
    return recipe_from({**values, "model": model, "coldstart": None})
