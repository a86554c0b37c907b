"""`gspo import`: a recipe from another trainer's settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gspo.cli.output import JsonFlag, print_json
from gspo.errors import RecipeError, nearest

SYSTEMS = ("openrlhf", "trl", "verl")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


def import_(
    trainer: Annotated[str, typer.Argument(help="Whose settings: trl, verl or openrlhf.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="TRL: Python with GRPOConfig(...), or YAML. verl: YAML, or a script or text file with "
            "overrides. OpenRLHF: a script or text file with options. It is read, never run."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the recipe to this file; else it is printed."),
    ] = None,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient", help="Report what is unknown or cannot be read, instead of stopping."
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Make a recipe from another trainer's settings.

    Reports what was taken, what had to change and why, and what has no counterpart. The recipe goes to
    standard output or --out; the report to standard error, or to standard output beside --out.
    """
    check_trainer(trainer)
    from gspo.recipes.importers.convert import import_settings
    from gspo.recorders.durable import write_text

    imported = import_settings(trainer, file, lenient=lenient)
    if out is not None:
        check_out(out, file)
        write_text(out, imported.text)
    if json:
        print_json({"recipe": imported.values, **imported.report.as_json()})
        return
    if out is None:
        print(imported.text, end="")
    print_report(list(imported.report.lines()), out)


def check_trainer(trainer: str) -> None:
    """RecipeError for a trainer that is not known."""
    if trainer not in SYSTEMS:
        raise RecipeError(f"no settings of {trainer!r} are known here; {nearest(trainer, SYSTEMS)}")


def check_out(out: Path, source: Path) -> None:
    """RecipeError where the result would go into no folder, or over what it was made from."""
    if not out.parent.is_dir():
        raise RecipeError(f"there is no folder {out.parent} for --out; make it first")
    if out.exists() and source.exists() and out.samefile(source):
        raise RecipeError(f"--out is {out}, which is the file that is read; name another")


def print_report(lines: list[str], out: Path | None) -> None:
    """To standard output where the result went to a file, else beside it."""
    for line in lines:
        print(line, file=sys.stderr if out is None else sys.stdout)
    if out is not None:
        print(f"written {out}")
