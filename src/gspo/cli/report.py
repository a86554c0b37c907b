"""`gspo report`: a run as one file that opens from disk. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gspo.cli.output import JsonFlag, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(help="Run folder, such as runs/demo.")],
    to: Annotated[
        Path | None, typer.Option("--to", help="File to write; report.html in the run folder.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a run's charts and numbers into one HTML file."""
    from gspo.dashboard.report import REPORT_FILE, write_report

    written = write_report(run, to or run / REPORT_FILE)
    if json:
        print_json({"report": str(written), "bytes": written.stat().st_size})
        return
    print(f"{written}  {written.stat().st_size / 1e6:.1f} MB, opens from disk in any browser")
