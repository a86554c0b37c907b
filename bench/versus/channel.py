"""How driver and workers speak: one JSON object a line, on the worker's stdin and stdout.

Standard library only: both environments read it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOG_TAIL_LINES = 15


class WorkerError(RuntimeError):
    """A worker ended or answered nonsense; the end of its log says why."""


class Channel:
    """The worker's side. What libraries print goes to stderr, so that stdout holds answers only."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def send(self, message: Mapping[str, Any]) -> None:
        """One answer."""
        self._answers.write(json.dumps(message) + "\n")

    def commands(self) -> Iterator[dict[str, Any]]:
        """Commands until the driver closes."""
        while line := sys.stdin.readline():
            yield json.loads(line)


class Worker:
    """The driver's side: a process that does one thing at a time. Answers come in order."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                bufsize=1,
                cwd=ROOT,
                env=dict(os.environ) | dict(environment or {}),
            )
        try:
            self.ready = self._answer()
        except BaseException:
            self._process.kill()
            raise

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        if self._process.stdin is None:
            raise WorkerError("the worker has no stdin")
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
        except BrokenPipeError as error:
            raise WorkerError(self._last_words()) from error
        return self._answer()

    def close(self) -> None:
        """End of commands; waits for the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise WorkerError(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        tail = self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        return "the worker ended; its last lines were:\n" + "\n".join(tail)
