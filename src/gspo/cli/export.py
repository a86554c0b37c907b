"""`gspo export`: another trainer's settings from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gspo.cli.import_ import check_out, check_trainer, print_report
from gspo.cli.output import JsonFlag, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    trainer: Annotated[str, typer.Argument(help="Whose settings: trl, verl or openrlhf.")],
    recipe: Annotated[str, typer.Argument(help="A recipe's name or YAML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as trainer.steps=20.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the settings to this file; else they are printed."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make another trainer's settings from a recipe: YAML for TRL, a script for verl and OpenRLHF.

    Reports what was taken, what had to change and why, and what the other trainer cannot express. The
    settings go to standard output or --out; the report to standard error, or beside --out to standard
    output.
    """
    check_trainer(trainer)
    from gspo.recipes.importers.export import export_recipe
    from gspo.recipes.load import load_recipe
    from gspo.recorders.durable import write_text

    loaded = load_recipe(recipe, overrides or [])
    exported = export_recipe(trainer, loaded, Path(recipe).name)
    if out is not None:
        check_out(out, Path(recipe))
        write_text(out, exported.text)
    if json:
        print_json({"settings": exported.settings, **exported.report.as_json()})
        return
    if out is None:
        print(exported.text, end="")
    print_report(list(exported.report.lines()), out)
