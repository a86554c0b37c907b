"""`gspo sample`: answers to held-out prompts, before and after training side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, stdout_kept_clean

if TYPE_CHECKING:
    from gspo.types import Group


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sample")(sample)


def sample(
    target: Annotated[Path, typer.Argument(help="A run folder, or a model folder with --recipe.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as rollout.max_tokens=99.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Prompts and verifier of another recipe.")
    ] = None,
    prompts: Annotated[int, typer.Option("--prompts", min=1, help="How many prompts.")] = 3,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0, help="0 takes the likeliest token.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the random numbers.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Show answers, before and after training.

    To the first held-out prompts, not chosen by how they come out.
    """
    from gspo.engines.base import Sampling
    from gspo.recipes.judge import sample_model
    from gspo.recipes.target import find_target
    from gspo.recorders.console import ConsoleRecorder

    with stdout_kept_clean():
        found = find_target(target, recipe, overrides or [], ConsoleRecorder(0).note)
        sampling = Sampling(
            num_samples=1,
            max_tokens=found.recipe.rollout.max_tokens,
            temperature=temperature,
            seed=seed,
            stream="sample",
        )
        after = sample_model(found.recipe, found.model, prompts, sampling)
        before = sample_model(found.recipe, found.start, prompts, sampling) if found.start else None
    rows = [_row(now, then) for now, then in zip(after, before or [None] * len(after), strict=True)]
    if json:
        print_json({"model": str(found.model), "start": _text(found.start), "samples": rows})
    else:
        _show(rows)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _row(after: Group, before: Group | None) -> dict[str, Any]:
    prompt = after.prompt
    return {
        "id": prompt.id,
        "prompt": prompt.text,
        "answer": None if prompt.answer is None else str(prompt.answer),
        "before": None if before is None else _answer(before),
        "after": _answer(after),
    }


def _answer(group: Group) -> dict[str, Any]:
    rollout = group.rollouts[0]
    return {"text": rollout.text, "reward": rollout.reward, "finish": rollout.finish}


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from gspo.recorders.summary import SampleAnswer, sample_picture

    console = Console()
    for row in rows:
        console.print(
            sample_picture(
                SampleAnswer(
                    prompt=row["prompt"],
                    expected=row["answer"],
                    before=row["before"]["text"] if row["before"] else None,
                    after=row["after"]["text"],
                    reward_before=row["before"]["reward"] if row["before"] else None,
                    reward_after=row["after"]["reward"],
                )
            )
        )
