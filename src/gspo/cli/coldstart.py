"""`gspo coldstart`: the starting model of a recipe, made once and kept."""

from __future__ import annotations

from typing import Annotated

import typer

from gspo.cli.output import JsonFlag, print_json, stdout_kept_clean


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("coldstart")(coldstart)


def coldstart(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or YAML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as coldstart.steps=400.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Make it again.")] = False,
    json: JsonFlag = False,
) -> None:
    """Make the starting model of a recipe.

    Or find it in the cache: $GSPO_CACHE, else ~/.cache/gspo.
    """
    from gspo.errors import RecipeError
    from gspo.recipes.build import cold_started
    from gspo.recipes.load import load_recipe
    from gspo.recipes.prepare import prepare
    from gspo.recorders.console import ConsoleRecorder

    loaded = load_recipe(recipe, overrides or [])
    if loaded.coldstart is None:
        raise RecipeError(f"{recipe} has no coldstart section; add one, as 'coldstart: {{}}'")
    with stdout_kept_clean():
        recorder = ConsoleRecorder(0)
        with recorder.progress("cold start", loaded.coldstart.steps) as advance:
            folder, was_there = cold_started(
                loaded,
                prepare(loaded),
                lambda step, loss: advance(1, f"loss {loss:.3f}"),
                force=force,
            )
        recorder.close()
    if json:
        print_json({"model": str(folder), "cached": was_there})
    else:
        print(f"{folder} ({'from the cache' if was_there else 'trained now'})")
