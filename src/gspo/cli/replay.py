"""`gspo replay`: the recorded rollouts of a run under other objectives and clip ranges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean

if TYPE_CHECKING:
    from gspo.recorders.reader import Run
    from gspo.replay.candidates import Candidate
    from gspo.replay.compare import Replay, Row
    from gspo.replay.own import Own
    from gspo.replay.totals import Shares

PICTURE_FILE = "replay.html"
BAR_CHARS = 20  # of a share of 1
MAX_BUCKETS = 4  # columns of the table; --json has them all


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    run: Annotated[Path, typer.Argument(help="A run folder, such as runs/NAME.")],
    objective: Annotated[
        list[str] | None, typer.Option(help="Objective to try; may be given again.")
    ] = None,
    clip: Annotated[
        list[str] | None,
        typer.Option(help="LOW,HIGH, or paper, or length_fair:LOW,HIGH; may be given again."),
    ] = None,
    aggregation: Annotated[
        list[str] | None,
        typer.Option(
            help="Denominator: responses, tokens or constant (responses x max_tokens); may be given again."
        ),
    ] = None,
    steps: Annotated[
        str | None, typer.Option(help="A:B, first and last step; either may be left out.")
    ] = None,
    picture: Annotated[
        bool, typer.Option("--picture", help=f"Also draw the sweep of ranges: RUN/{PICTURE_FILE}.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Try other objectives on recorded rollouts.

    What they would have done under another objective, clip range or denominator: share cut,
    gradient weight kept, effective sample size, fairness over length.

    Without options: the run's own, a few usual ones, and a sweep of ranges.
    """
    with stdout_kept_clean():
        from gspo.recorders.reader import open_run
        from gspo.replay import candidates
        from gspo.replay.own import own_objective

        folder = open_run(run)
        own = own_objective(folder)
        asked = bool(objective or clip or aggregation)
        chosen = (
            candidates.requested(own, objective or [], clip or [], aggregation or [])
            if asked
            else candidates.default_candidates(own)
        )
        swept = candidates.sweep(own) if picture or not asked else []
        result = _replayed(folder, own, [*chosen, *swept], _steps(steps))
        rows, sweep_rows = result.rows[: len(chosen)], result.rows[len(chosen) :]
        drawn = _drawn(folder, result, sweep_rows) if picture else None

    if json:
        print_json(_report(run, result, rows if asked else result.rows, drawn))
    else:
        _print(result, rows, [] if asked else sweep_rows, drawn)


def _replayed(
    run: Run, own: Own, everything: Sequence[Candidate], steps: tuple[int, float]
) -> Replay:
    """All candidates over the chosen steps, with a progress bar."""
    from gspo.recorders.console import ConsoleRecorder
    from gspo.replay.compare import replay as compare

    first, last = steps
    chosen = [step for step in run.steps() if first <= step <= last]
    recorder = ConsoleRecorder(0)
    try:
        with recorder.progress("replay", len(chosen)) as advance:
            return compare(run, own, everything, steps=chosen, on_step=advance)
    finally:
        recorder.close()


def _drawn(run: Run, result: Replay, swept: Sequence[Row]) -> Path:
    """The picture's file."""
    from gspo.recorders.durable import write_text
    from gspo.replay.picture import draw

    path = run.path / PICTURE_FILE
    write_text(path, draw(result, swept, run.name))
    return path


def _steps(text: str | None) -> tuple[int, float]:
    """First and last step of A:B."""
    if text is None:
        return 1, float("inf")
    first, colon, last = text.partition(":")
    try:
        bounds = int(first or 1), float(int(last)) if last else float("inf")
    except ValueError:
        bounds = 1, 0.0
    if not text or bounds[1] < bounds[0]:
        raise typer.BadParameter(
            f"{text!r}; wanted A:B with whole numbers and A at most B, as 20:40",
            param_hint="--steps",
        )
    return bounds if colon else (bounds[0], float(bounds[0]))


def _report(run: Path, result: Replay, rows: Sequence[Row], picture: Path | None) -> dict[str, Any]:
    reproduction = result.reproduction
    return {
        "run": str(run),
        "steps": list(result.steps),
        "num_steps": result.num_steps,
        "num_responses": result.num_responses,
        "num_left_out": result.num_left_out,
        "damaged": list(result.damaged),
        "own": _row(result.own),
        "reproduction": {
            "loss": reproduction.loss,
            "cuts": reproduction.cuts,
            "kept_weight": reproduction.kept_weight,
            "num_responses": reproduction.num_responses,
        },
        "rows": [_row(row) for row in rows],
        "picture": None if picture is None else str(picture),
    }


def _row(row: Row) -> dict[str, Any]:
    candidate = row.candidate
    clip = candidate.clip
    return {
        "label": candidate.label,
        "objective": candidate.objective.name,
        "clip": None if clip is None else [clip.low, clip.high],
        "clip_form": candidate.clip_form,
        "aggregation": candidate.denominator,
        **_shares(row.overall),
        "loss": row.loss,
        "length_gap": row.length_gap,
        "num_steps": row.num_steps,
        "buckets": [{"length": bucket.length, **_shares(bucket)} for bucket in row.buckets],
    }


def _shares(shares: Shares) -> dict[str, Any]:
    return {
        "num_responses": shares.num_responses,
        "cut_share": shares.cut_share,
        "cut_low": shares.cut_low,
        "cut_high": shares.cut_high,
        "kept_weight": shares.kept_weight,
        "ess": shares.ess,
    }


def _print(result: Replay, rows: Sequence[Row], swept: Sequence[Row], picture: Path | None) -> None:
    _print_source(result)
    most = sorted(result.own.buckets, key=lambda bucket: -bucket.num_responses)[:MAX_BUCKETS]
    lengths = [bucket.length for bucket in result.own.buckets if bucket in most]
    print_table(
        ("objective", "clip", "cut", "kept", "ess", "loss", *(f"cut {n}" for n in lengths)),
        [
            (
                row.candidate.label,
                _range(row.candidate),
                row.overall.cut_share,
                row.overall.kept_weight,
                row.overall.ess,
                row.loss,
                *(_bucket_cut(row, length) for length in lengths),
            )
            for row in rows
        ],
    )
    if swept:
        print("\nA sweep of ranges, the same below and above.")
        print_table(
            ("objective", "cut", "", "kept", ""),
            [
                (
                    row.candidate.label,
                    row.overall.cut_share,
                    _bar(row.overall.cut_share),
                    row.overall.kept_weight,
                    _bar(row.overall.kept_weight),
                )
                for row in swept
            ],
        )
    print(
        "\ncut: share of responses (tokens, for token objectives) whose gradient the clip stops, "
        "off-policy, A != 0.\nkept: gradient weight left of it without a clip. ess: effective "
        "sample size over responses with A != 0.\nOther ranges would have moved the policy "
        "elsewhere: docs/replay.md."
    )
    if picture is not None:
        print(f"\npicture: {picture}")


def _print_source(result: Replay) -> None:
    first, last = result.steps
    print(
        f"{result.num_responses:,} responses of {result.num_steps} steps, {first} to {last}; "
        f"{result.num_left_out:,} left out, their log-probs are not recorded"
    )
    for text in result.damaged:
        print(f"left out: {text}")
    if result.own.num_steps < result.num_steps:
        missing = result.num_steps - result.own.num_steps
        print(f"the run's own range is not known at {missing} steps: they are not in its row")
    again = result.reproduction
    differences = [("losses", again.loss), ("kept weight", again.kept_weight)]
    said = [f"{name} by {by:.1g} at most" for name, by in differences if by is not None]
    print(
        "the run's own objective, replayed, differs from the record in the cuts of "
        f"{', '.join([f'{again.cuts:,} of {again.num_responses:,} responses', *said])}\n"
    )


def _range(candidate: Candidate) -> str | None:
    clip = candidate.clip
    if clip is None:
        return None
    last = "last " if candidate.ranges is not None else ""
    form = "" if candidate.clip_form == "ratio" else f" {candidate.clip_form}"
    return f"{last}{clip.low:.4g}, {clip.high:.4g}{form}"


def _bucket_cut(row: Row, length: str | None) -> float | None:
    return next((b.cut_share for b in row.buckets if b.length == length), None)


def _bar(share: float | None) -> str:
    return "█" * round(BAR_CHARS * (share or 0.0))
