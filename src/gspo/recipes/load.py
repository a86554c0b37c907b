"""From a file or the name of a shipped recipe to a checked `Recipe`, and back to YAML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gspo.errors import RecipeError, nearest
from gspo.recipes.messages import explain
from gspo.recipes.overrides import apply_overrides
from gspo.recipes.schema import Recipe
from gspo.recipes.yaml_text import Document, read_yaml, to_text

LIBRARY = Path(__file__).parent / "library"


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in LIBRARY.glob("*.yaml"))


def load_recipe(path_or_name: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a YAML file, or a shipped one by name, with `a.b=c` overrides applied.

    Raises RecipeError: every unknown, ill-typed or impossible setting, with file and line.
    """
    path = _find(path_or_name)
    source = _short(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{source} is not UTF-8 text (byte {error.start}); save it so") from error
    except OSError as error:
        raise RecipeError(f"cannot read the recipe {source}: {error.strerror}") from error
    return _validate(read_yaml(text, source), overrides, source)


def recipe_from(values: dict[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """The recipe of a mapping made in Python; errors as those of `load_recipe`, without lines."""
    return _validate(Document(values, {}), overrides, "recipe")


def to_yaml(recipe: Recipe) -> str:
    """Every setting of a recipe, defaults too; loading it gives an equal recipe."""
    return to_text(recipe.model_dump(mode="json"))


def _validate(document: Document, overrides: Sequence[str], source: str) -> Recipe:
    if not isinstance(document.values, dict):
        raise RecipeError(f"{source} holds {document.values!r}; wanted sections, as 'data:'")
    document = apply_overrides(document, overrides)
    try:
        return Recipe.model_validate(document.values)
    except ValidationError as error:
        raise RecipeError(explain(error, document.places, source)) from None


def _find(path_or_name: str | os.PathLike[str]) -> Path:
    given = os.fspath(path_or_name)
    path = Path(given)
    if path.suffix in (".yaml", ".yml") or len(path.parts) != 1:
        if path.is_file():
            return path
        raise RecipeError(f"there is no recipe file {given}; shipped by name: {_names()}")
    shipped = LIBRARY / f"{given}.yaml"
    if given in recipe_names():
        return shipped
    raise RecipeError(
        f"{given!r} is no shipped recipe; {nearest(given, recipe_names())}; a file of yours ends in .yaml"
    )


def _names() -> str:
    return ", ".join(recipe_names())


def _short(path: Path) -> str:
    """The path as a person would type it from here."""
    here = Path.cwd()
    absolute = path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(path)
