"""`gspo train`: a recipe to a better model, or a run folder to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, stdout_kept_clean
from gspo.errors import GspoError
from gspo.recorders.sanitize import visible

if TYPE_CHECKING:
    from rich.console import Console

    from gspo.recipes.prepare import Prepared
    from gspo.recipes.schema import Recipe


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train")(train)


def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe's name or YAML file; with --resume also a run folder.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as optimizer.lr=1e-5.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run after its newest checkpoint.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, judge gold answers, train nothing."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Train with a recipe."""
    from gspo.recipes.resume import resolve

    resolved, folder = resolve(recipe, overrides or [], resume=resume)
    if dry_run:
        _dry_run(resolved, json)
        return
    with stdout_kept_clean():
        report = _train(resolved, folder)
    if json:
        print_json(report)


def _train(recipe: Recipe, folder: Path | None) -> dict[str, Any]:
    from rich.console import Console

    from gspo.recipes.closing import closing_of
    from gspo.recipes.train import train as run_training
    from gspo.recorders.console import ConsoleRecorder
    from gspo.recorders.summary import closing_picture

    console = Console(stderr=True)
    recorder = ConsoleRecorder(recipe.trainer.steps, console=console)
    run = run_training(recipe, resume=folder, console=recorder)
    closing = closing_of(run)
    console.print(closing_picture(closing))
    report = _report(run.path, console)
    return {
        "run": str(run.path),
        "report": None if report is None else str(report),
        "steps": max(run.steps(), default=0),
        "before": _scores(closing.before),
        "after": _scores(closing.after),
    }


def _report(run: Path, console: Console) -> Path | None:
    """The run is finished and recorded: a report that cannot be written costs it nothing."""
    from rich.text import Text

    from gspo.dashboard.report import REPORT_FILE, write_report

    try:
        written = write_report(run, run / REPORT_FILE)
    except (GspoError, OSError, ValueError, LookupError, TypeError, MemoryError) as error:
        said = f"{REPORT_FILE} could not be written ({type(error).__name__}: {error}); the run is whole. 'gspo report {run}' tries again"
        console.print(Text(visible(said), style="yellow"), soft_wrap=True)
        return None
    console.print(Text.assemble(("report      ", "dim"), str(written)), soft_wrap=True)
    return written


def _scores(score: Any) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "num_prompts": score.num_prompts,
        "pass@1": score.pass_at_1,
        "interval": list(score.interval),
        "pass@k": {str(k): value for k, value in score.pass_at_k.items()},
        "greedy": score.greedy,
    }


def _dry_run(recipe: Recipe, as_json: bool) -> None:
    from gspo.cli.plan import print_memory
    from gspo.plan.memory import plan_memory
    from gspo.recipes.guards import guards
    from gspo.recipes.load import to_yaml
    from gspo.recipes.prepare import prepare

    with stdout_kept_clean():
        prepared = prepare(recipe)
        checked = _checked(prepared)
        plan = plan_memory(recipe, prompt_tokens=checked["longest_prompt"])
    notes = [guard.text for guard in guards(recipe)]
    memory = {**plan.parts, "total": plan.total}
    report = {**checked, "memory": memory, "notes": notes}
    if as_json:
        print_json({"recipe": recipe.model_dump(mode="json"), **report})
        return
    print(to_yaml(recipe))
    print(
        f"prompts           {report['num_prompts']} to train on, {report['num_held_out']} held out"
    )
    print(f"left out          {report['num_dropped']} rows")
    for part in prepared.reports:
        print("\n".join(part.lines()))
    print(f"gold answers      {report['num_probed']} judged, all passed")
    print(f"longest prompt    {report['longest_prompt']} of {prepared.context_tokens} tokens")
    print("memory")
    print_memory(plan)
    for note in notes:
        print(f"note: {note}")
    print("dry run: nothing was trained")


def _checked(prepared: Prepared) -> dict[str, Any]:
    return {
        "num_prompts": len(prepared.prompts),
        "num_held_out": len(prepared.held_out),
        "num_dropped": prepared.num_dropped,
        "data": [part.record() for part in prepared.reports],
        "num_probed": prepared.probed,
        "longest_prompt": max(len(p.ids) for p in prepared.prompts),
    }
