"""`gspo runs`: one line a run folder. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gspo.cli.output import JsonFlag, print_json, print_table

DEFAULT_FOLDER = Path("runs")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs")(runs)


def runs(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder that holds run folders; runs if not given.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List runs, the newest first."""
    from gspo.recorders.reader import list_runs

    none_yet = folder is None and not DEFAULT_FOLDER.is_dir()
    found = [] if none_yet else list_runs(folder or DEFAULT_FOLDER)
    if json:
        rows = [
            {
                "name": run.name,
                "path": str(run.path),
                "started": run.started,
                "status": run.status,
                "steps": run.steps,
                "objective": run.objective,
                "reward": run.reward,
                "pass@1": run.pass_at_1,
            }
            for run in found
        ]
        print_json({"runs": rows})
        return
    if not found:
        print(f"no runs in {folder or DEFAULT_FOLDER}; `gspo train demo` makes one")
        return
    print_table(
        ("run", "status", "steps", "objective", "reward", "pass@1", "started"),
        [(r.name, r.status, r.steps, r.objective, r.reward, r.pass_at_1, r.started) for r in found],
    )
