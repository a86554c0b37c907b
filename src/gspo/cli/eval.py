"""`gspo eval`: held-out pass rates of a run or a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval")(evaluate)


def evaluate(
    target: Annotated[Path, typer.Argument(help="A run folder, or a model folder with --recipe.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as evaluate.prompts=1024.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Prompts and verifier of another recipe.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Measure pass rates on held-out prompts.

    pass@1 is the mean at temperature 1, with its 95 % interval; pass@k and greedy beside it.
    """
    from gspo.recipes.judge import evaluate_model
    from gspo.recipes.target import find_target
    from gspo.recorders.console import ConsoleRecorder

    with stdout_kept_clean():
        recorder = ConsoleRecorder(0)
        found = find_target(target, recipe, overrides or [], recorder.note)
        with recorder.progress("evaluate", 2 * found.recipe.evaluate.prompts) as advance:
            result = evaluate_model(found.recipe, found.model, lambda: advance(1))
        recorder.close()
    data = found.recipe.data
    if json:
        print_json(
            {
                "task": data.task or data.path,
                "model": str(found.model),
                "num_prompts": result.num_prompts,
                "pass@1": result.pass_at_1,
                "pass@k": {str(k): value for k, value in result.pass_at_k.items()},
                "interval": list(result.interval),
                "greedy": result.greedy,
                "unscored": result.unscored,
            }
        )
        return
    low, high = result.interval
    print(f"{found.name}: {result.num_prompts} held-out prompts of {data.task or data.path}")
    rows = [("pass@1", f"{result.pass_at_1:.3f}", f"[{low:.3f}, {high:.3f}]")]
    rows += [(f"pass@{k}", f"{value:.3f}", "") for k, value in result.pass_at_k.items()]
    rows += [("greedy", f"{result.greedy:.3f}", "")]
    print_table(("", "share", "95 % interval"), rows)
    if result.unscored:
        print(f"{result.unscored} responses could not be scored and are left out")
