"""`gspo gap`: are the engine's log-probs good enough to be the old ones?"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean

if TYPE_CHECKING:
    from gspo.diagnostics.gap import GapReport, GapTokens, Part

UNSAFE = 4  # exit code: a numerical stop
DTYPES = ("float32", "bfloat16")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gap")(gap)


def gap(
    target: Annotated[str, typer.Argument(help="A run folder, or a recipe to measure with.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings of the recipe to change.")
    ] = None,
    engine_dtype: Annotated[
        str, typer.Option("--engine-dtype", help="Precision to sample in, with a recipe.")
    ] = "float32",
    clip: Annotated[
        str | None,
        typer.Option("--clip", help="LOW,HIGH to judge by; the run's own, or the paper's."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Also draw it, as an HTML page in this file."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compare engine and trainer log-probs.

    On the same tokens, at the same weights. Exit 4 when the gap is too large for the clip range.
    """
    from gspo.diagnostics.gap import gap_report
    from gspo.errors import DataError

    with stdout_kept_clean():
        tokens, band = _measure(target, overrides or [], engine_dtype, clip)
        report = gap_report(tokens.engine_logp, tokens.trainer_logp, tokens.segments)
    if report is None:
        raise DataError(f"{target}: no token has log-probs of both engine and trainer")
    reason = report.unsafe(band)
    if picture is not None:
        from gspo.gap.picture import draw
        from gspo.recorders.durable import write_text

        write_text(picture, draw(report, band, target))
    if json:
        print_json(_json(report, tokens, band, reason))
    else:
        _show(report, tokens, band, reason)
    if reason is not None:
        raise typer.Exit(UNSAFE)


def _measure(
    target: str, overrides: list[str], engine_dtype: str, clip: str | None
) -> tuple[GapTokens, float]:
    """The tokens, and the narrower side of the band in nats."""
    from gspo.errors import RecipeError, nearest
    from gspo.gap.recorded import band_of_run, tokens_of_run
    from gspo.recorders.reader import open_run

    if engine_dtype not in DTYPES:
        raise RecipeError(
            f"--engine-dtype is {engine_dtype!r}; wanted float32 or bfloat16 ({nearest(engine_dtype, DTYPES)})"
        )
    if (Path(target) / "run.json").is_file():
        if overrides or engine_dtype != "float32":
            raise RecipeError(
                f"{target} is a recorded run: settings and --engine-dtype belong to a recipe, which is measured afresh"
            )
        run = open_run(target)
        tokens = tokens_of_run(run)
        for damage in run.damaged:
            print(f"left out: {damage.path}: {damage.reason}", file=sys.stderr)
        return tokens, _band(clip) if clip else band_of_run(run)
    return _fresh(target, overrides, engine_dtype), _band(clip or "3e-4,4e-4")


def _fresh(target: str, overrides: list[str], engine_dtype: str) -> GapTokens:
    import torch

    from gspo.recipes.gap import measure_gap
    from gspo.recipes.load import load_recipe
    from gspo.recipes.prepare import prepare
    from gspo.recorders.console import ConsoleRecorder

    recipe = load_recipe(target, overrides)
    recorder = ConsoleRecorder(0)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[engine_dtype]
    with recorder.progress("cold start", recipe.coldstart.steps if recipe.coldstart else 0) as go:
        return measure_gap(
            recipe, prepare(recipe), dtype, lambda step, loss: go(1, f"loss {loss:.3f}")
        )


def _band(clip: str) -> float:
    from gspo.errors import RecipeError
    from gspo.settings import ClipRange

    try:
        low, high = (float(part) for part in clip.split(","))
    except ValueError as error:
        raise RecipeError(f"--clip is {clip!r}; wanted LOW,HIGH, as 3e-4,4e-4") from error
    checked = ClipRange(low=low, high=high)
    return min(-math.log1p(-checked.low) if checked.low < 1 else math.inf, math.log1p(checked.high))


def _json(report: GapReport, tokens: GapTokens, band: float, reason: str | None) -> dict[str, Any]:
    return {
        "mean": report.mean,
        "std": report.std,
        "token_mean": report.token_mean,
        "token_std": report.token_std,
        "verdict": "safe" if reason is None else "unsafe",
        "reason": reason,
        "band": band,
        "num_responses": report.num_responses,
        "num_tokens": report.num_tokens,
        "missing": report.missing,
        "product": {"mean": report.product_mean, "std": report.product_std},
        "buckets": [asdict(part) for part in report.by_length],
        "by_position": [asdict(part) for part in report.by_position],
        "by_probability": [asdict(part) for part in report.by_probability],
        "first": asdict(report.first),
        "last": asdict(report.last),
        "worst": [
            {**asdict(token), "response": tokens.names[token.response]} for token in report.worst
        ],
    }


def _show(report: GapReport, tokens: GapTokens, band: float, reason: str | None) -> None:
    print(
        f"{report.num_responses} responses, {report.num_tokens} tokens, {report.missing} without an engine log-prob"
    )
    print("trainer minus engine log-prob, nats:\n")
    rows = [
        ("mean of a response (what s sees)", report.mean, report.std),
        ("sum of a response (a product of ratios)", report.product_mean, report.product_std),
        ("token", report.token_mean, report.token_std),
        ("first token", report.first.mean, report.first.std),
        ("last token", report.last.mean, report.last.std),
    ]
    print_table(("", "mean", "spread"), rows)
    for title, parts in (
        ("length", report.by_length),
        ("position", report.by_position),
        ("probability", report.by_probability),
    ):
        print()
        print_table((title, "count", "mean", "spread"), [_cells(part) for part in parts])
    if report.worst:
        print()
        print_table(
            ("worst tokens", "token", "engine", "trainer"),
            [
                (tokens.names[t.response], t.position, t.engine_logp, t.trainer_logp)
                for t in report.worst[:5]
            ],
        )
    print(
        f"\n{'safe' if reason is None else 'UNSAFE'} as old log-probs under a band of {band:.3g} nats",
        end="",
    )
    print("" if reason is None else f": {reason}")


def _cells(part: Part) -> tuple[str, int, float, float | None]:
    return part.name, part.count, part.mean, part.std
