"""`gspo dashboard`: runs as a page in the browser. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dashboard")(dashboard)


def dashboard(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of runs, or run folders; runs if not given."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port; 8470 or the next free one if not given."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; anything but this machine needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token; the printed address brings it, once.")
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Also open the page in a browser.")
    ] = False,
) -> None:
    """Show runs in the browser, also while they train. Reads only."""
    from gspo.dashboard.serve import serve

    serve(runs or [], host=host, port=port, ask_token=token, open_page=open_page)
