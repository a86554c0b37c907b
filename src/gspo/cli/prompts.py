"""`gspo prompts`: which prompts the starting policy can learn from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, stdout_kept_clean
from gspo.errors import RecipeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gspo.recipes.pass_rate_picture import Bin
    from gspo.recipes.pass_rates import PassRate
    from gspo.recipes.schema import Recipe


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("prompts")(prompts)


def prompts(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or YAML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as data.path=train.jsonl.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=2, help="Responses a prompt; rollout.group without it."),
    ] = None,
    above: Annotated[
        float, typer.Option("--above", min=0, max=1, help="Keep pass rates above this.")
    ] = 0.0,
    below: Annotated[
        float, typer.Option("--below", min=0, max=1, help="Keep pass rates below this.")
    ] = 1.0,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="File for the prompts that are kept; else beside the data."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Write the histogram to this HTML file.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Measure the pass rate of every prompt, and keep the middle range.

    A prompt that all responses solve, or none, teaches nothing. Writes the rates of all prompts and
    the prompts that are kept; train on them with data.only=FILE. Started again, it goes on where it
    was interrupted, and only filters where all is measured.
    """
    from gspo.recipes.load import load_recipe

    if not above < below:
        raise RecipeError(f"--above is {above:g} and --below {below:g}; wanted the first smaller")
    with stdout_kept_clean():
        loaded = load_recipe(recipe, overrides or [])
        report, found = _measured(loaded, samples, (above, below), to)
        drawn = _draw(picture, report, found)
    if json:
        print_json({**report, "picture": drawn})
        return
    _print(report, found)
    if drawn is not None:
        print(f"picture: {drawn}")


def _measured(
    recipe: Recipe, samples: int | None, kept_range: tuple[float, float], to: Path | None
) -> tuple[dict[str, Any], list[Bin]]:
    """Both files, written; the report, and the histogram."""
    from dataclasses import replace

    from gspo.recipes import build
    from gspo.recipes.pass_rates import STREAM, measure, places, write_middle
    from gspo.recipes.prepare import prepare
    from gspo.recorders.console import ConsoleRecorder

    files = places(recipe, to)
    console = ConsoleRecorder(0)
    prepared = prepare(recipe)
    console.note("\n".join(prepared.reports[0].lines()))
    sampling = build.rollout_sampling(recipe)
    num_samples = samples or sampling.num_samples
    sampling = replace(sampling, num_samples=num_samples, seed=recipe.seed, stream=STREAM)
    steps = recipe.coldstart.steps if recipe.coldstart else 0
    with console.progress("cold start", steps) as advance:
        model, _ = build.build_model(
            recipe, prepared, lambda _, loss: advance(1, f"loss {loss:.3f}")
        )
    engine = build.build_engine(recipe, prepared, model)
    with console.progress("pass rates", len(prepared.prompts)) as advance:
        rates = measure(engine, recipe, prepared, sampling, files.rates, advance)
    engine.close()
    console.close()
    is_file = recipe.data.task is None  # a task makes its other columns anew
    write_middle(files.middle, prepared.prompts, rates, kept_range, with_columns=is_file)
    report, found = _summary(rates, num_samples, kept_range)
    written = {"rates_file": str(files.rates), "kept_file": str(files.middle)}
    return {"data": recipe.data.task or recipe.data.path, **report, **written}, found


def _summary(
    rates: Sequence[PassRate], num_samples: int, kept_range: tuple[float, float]
) -> tuple[dict[str, Any], list[Bin]]:
    from gspo.recipes.pass_rate_picture import bins

    scored = [rate.pass_rate for rate in rates if rate.pass_rate is not None]
    found = bins(scored, num_samples, *kept_range)
    report = {
        "num_prompts": len(rates),
        "samples": num_samples,
        "above": kept_range[0],
        "below": kept_range[1],
        "kept": sum(entry.kept for entry in found),
        "none_passed": found[0].count,
        "all_passed": found[-1].count,
        "unscored": len(rates) - len(scored),
        "mean": sum(scored) / len(scored) if scored else None,
        "truncated": sum(rate.truncated for rate in rates) / (num_samples * len(rates)),
        "histogram": [{"low": b.low, "high": b.high, "count": b.count} for b in found],
    }
    return report, found


def _draw(path: Path | None, report: dict[str, Any], found: list[Bin]) -> str | None:
    from gspo.recipes.pass_rate_picture import draw
    from gspo.recorders.durable import new_folder, write_text

    if path is None:
        return None
    new_folder(path.parent)
    write_text(path, draw(found, str(report["data"]), report["kept"]))
    return str(path)


def _print(report: dict[str, Any], found: list[Bin]) -> None:
    from gspo.recipes.pass_rate_picture import bar_lines

    mean = "-" if report["mean"] is None else f"{report['mean']:.3f}"
    print(
        f"{report['num_prompts']:,} prompts of {report['data']}, {report['samples']} responses "
        f"each: pass rate {mean}, {report['truncated']:.3f} of the responses cut off"
    )
    print("\n   pass rate   count  # kept  . left out")
    print("\n".join(bar_lines(found)))
    print(
        f"\n{report['kept']:,} kept, with a pass rate above {report['above']:g} and below "
        f"{report['below']:g}; {report['unscored']:,} could not be scored"
    )
    print(f"rates  {report['rates_file']}\nkept   {report['kept_file']}")
    if report["kept"]:
        print(f"train on them with data.only={report['kept_file']}")
