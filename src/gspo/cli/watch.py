"""`gspo watch`: a run in a terminal, from its folder alone. Never imports torch."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gspo.cli.output import JsonFlag, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from gspo.dashboard.folder import RunFolderView
    from gspo.recorders.live_view import LiveView

REFRESH_S = 1.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch")(watch)


def watch(
    run: Annotated[Path, typer.Argument(help="Run folder, such as runs/demo.")],
    once: Annotated[bool, typer.Option("--once", help="Print the run as it is, and end.")] = False,
    json: JsonFlag = False,
) -> None:
    """Follow a run until it ends, or until q or Ctrl-C. Off a terminal it prints once."""
    from rich.console import Console

    from gspo.dashboard.folder import open_view

    view = open_view(run)
    if json:
        print_json(_read(view).overview)
        return
    console = Console()
    moving = console.is_terminal and not console.is_dumb_terminal
    if once or not moving or not view.running():
        console.print(_read(view))
        return
    with _keys() as pressed, contextlib.suppress(KeyboardInterrupt):
        follow(view, console, pressed)


def follow(view: RunFolderView, console: Console, pressed: Callable[[float], str]) -> None:
    """Show the run until nobody writes it or q is pressed. pressed: waits so many seconds for a
    key and gives it, or nothing."""
    from rich.live import Live

    version = view.version()
    with Live(_read(view), console=console, auto_refresh=False) as live:
        while view.running() and pressed(REFRESH_S).lower() != "q":
            if (now := view.version()) != version:
                version = now
                live.update(_read(view))
            live.refresh()  # the terminal may have another width by now
        live.update(_read(view), refresh=True)


def _read(view: RunFolderView) -> LiveView:
    from gspo.dashboard import answers
    from gspo.recorders.live_view import HISTOGRAM, NAMES, LiveView

    overview = answers.overview(view)
    recorded = HISTOGRAM in overview["names"]
    histograms = answers.histograms(view, HISTOGRAM, limit=2) if recorded else None
    return LiveView(overview, answers.metrics(view, NAMES), histograms)


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Keys as they are pressed, without Return; where standard input is no terminal, none come."""
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)  # Ctrl-C stays an interrupt
    try:
        yield lambda wait_s: _key(descriptor, wait_s)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key(wait_s: float) -> str:
    time.sleep(wait_s)
    return ""


def _key(descriptor: int, wait_s: float) -> str:
    import select

    ready, _, _ = select.select([descriptor], [], [], wait_s)
    return (os.read(descriptor, 1).decode("ascii", "replace") or "q") if ready else ""
