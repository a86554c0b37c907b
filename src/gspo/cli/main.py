"""The `gspo` command: its parts, and how it ends.

Exit codes: 0 done, 2 usage or recipe error, 3 data or verifier error, 4 numerical stop, 5 resource,
130 interrupted. An error the library raises on purpose is a message, never a traceback.

A command is a module of this package with `register(app)`; it is found, not listed. It imports what
is heavy inside the command's function: `gspo --help` never waits for torch.
"""

from __future__ import annotations

import io
import os
import pkgutil
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

import gspo.cli
from gspo.errors import GspoError

INTERRUPTED = 130  # as a shell reports SIGINT


class _Group(TyperGroup):
    """Turns an error of ours into its message and exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GspoError as error:
            print(f"gspo: {error}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from error


def build_app() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        cls=_Group,
        help="Train language models with group sequence policy optimization, and measure its "
        "trust region.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)  # a group even with one command
    for found in pkgutil.iter_modules(gspo.cli.__path__):
        module = import_module(f"gspo.cli.{found.name}")
        if hasattr(module, "register"):
            module.register(app)
    return app


def main() -> None:
    """Entry point of the `gspo` command."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no "…" gets its escape
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            build_app()()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, as `| head` does; Python flushes once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
