"""Which folder a run goes to."""

from __future__ import annotations

from pathlib import Path

from gspo.recipes.schema import Recipe

DEFAULT_NAME = "run"


def run_folder_of(recipe: Recipe) -> Path:
    """record.folder / name. A recipe without a name gets the first of run, run-2, run-3, … that is
    not there yet; the command line puts the recipe's own name in first."""
    parent = Path(recipe.record.folder)
    if recipe.name is not None:
        return parent / recipe.name
    return free_folder(parent, DEFAULT_NAME)


def free_folder(parent: Path, stem: str) -> Path:
    """The first of stem, stem-2, stem-3, … that does not exist in `parent`."""
    folder, number = parent / stem, 1
    while folder.exists():
        number += 1
        folder = parent / f"{stem}-{number}"
    return folder
