"""`gspo calibrate`: the clip range that a run's responses ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean

if TYPE_CHECKING:
    from gspo.calibrate.fit import ClipFit

PICTURE_FILE = "calibrate.html"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate)


def calibrate(
    run: Annotated[Path, typer.Argument(help="A run folder, such as runs/NAME.")],
    cut_share: Annotated[
        float, typer.Option(help="Wanted share of responses with an advantage that the clip cuts.")
    ] = 0.15,
    picture: Annotated[
        bool, typer.Option("--picture", help=f"Also draw it: RUN/{PICTURE_FILE}.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Fit a clip range to a recorded run.

    The one that would have cut the wanted share: with an interval, by length, fixed against
    length-fair, and as recipe lines.

    Off-policy responses with an advantage, at least 256 of either sign in 32 groups. The range
    holds for the learning rate, lengths and clip of this run; it is a drop rate, no proof of
    safety.
    """
    with stdout_kept_clean():
        from gspo.calibrate.fit import fit_clip_range
        from gspo.calibrate.report import as_json
        from gspo.recorders.durable import write_text
        from gspo.recorders.reader import open_run

        folder = open_run(run)
        fit = fit_clip_range(folder, cut_share)
        drawn = folder.path / PICTURE_FILE if picture else None
        if drawn is not None:
            from gspo.calibrate.picture import draw

            write_text(drawn, draw(fit, folder.name))

    if json:
        damaged = [{"path": str(d.path), "reason": d.reason} for d in folder.damaged]
        print_json(
            {
                "run": str(run),
                **as_json(fit),
                "damaged": damaged,
                "picture": None if drawn is None else str(drawn),
            }
        )
        return
    _print(fit)
    if drawn is not None:
        print(f"\npicture: {drawn}")


def _print(fit: ClipFit) -> None:
    from rich.console import Console

    from gspo.calibrate.report import recipe_lines, terminal_chart

    print(
        f"{fit.num_responses:,} off-policy responses with an advantage, {fit.num_groups:,} groups, "
        f"{fit.num_steps:,} steps; the run cut {fit.cut_in_run:.3f} of them\n"
    )
    Console().print(terminal_chart(fit))
    print(f"\nRange for a cut share of {fit.cut_share:g}")
    print_table(
        ("side", "fixed", "95 % from", "to", "decided by", "length fair"),
        [
            ("low", fit.low, *fit.interval["low"], fit.fixed.low_held, fit.length_fair.low),
            ("high", fit.high, *fit.interval["high"], fit.fixed.high_held, fit.length_fair.high),
        ],
    )
    _print_buckets(fit)
    _print_law(fit)
    _print_spans(fit)
    for note in fit.notes:
        print(f"note: {note}")
    print(f"\n{recipe_lines(fit.clip)}")


def _print_buckets(fit: ClipFit) -> None:
    print("\nBy length in tokens")
    print_table(
        ("length", "count", "mean", "spread", "outside", "cut", "cut, length fair"),
        [
            (b.length, b.count, b.mean, b.spread, *(_share(s) for s in shares))
            for b in fit.buckets
            for shares in ((b.outside_share, b.cut_share, b.cut_share_length_fair),)
        ],
    )


def _print_law(fit: ClipFit) -> None:
    from gspo.calibrate.report import value_of

    law = fit.law
    print("\nThe spread falls as length^-a (0.5: independent tokens, 0: drift)")
    print_table(
        ("of", "a", "95 % from", "to"),
        [
            ("noise within a group", *value_of(law.noise)),
            ("the whole spread", *value_of(law.overall)),
        ],
    )
    if law.mean_share is not None:
        print(f"mean of log s: up to {law.mean_share:.2f} of its spread (by length and sign)")
    print(f"recommended: {fit.recommend.replace('_', ' ')}")
    for reason in law.against_length_fair:
        print(f"  {reason}")


def _print_spans(fit: ClipFit) -> None:
    print("\nOver the run: the range each part asks for, and what the run's own clip cut in it")
    print_table(
        ("steps", "low", "high", "cut in run"),
        [
            (f"{s.first_step} to {s.last_step}", s.low, s.high, _share(s.cut_in_run))
            for s in fit.spans
        ],
    )


def _share(value: float) -> float:
    return round(value, 3)
