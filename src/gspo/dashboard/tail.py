"""A .jsonl file read as it grows: each byte once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO

from gspo.dashboard.beneath import State, state_of
from gspo.recorders import jsonl

CHUNK_BYTES = 2**20
MAX_LINE_BYTES = 2**24  # a step's line has some ten thousand bytes
MARK_BYTES = 64  # before the place that was reached: a file in which they differ is another one
MAX_REASONS = 20
LAST_BYTES = 2**16  # a handful of steps
MAX_LAST_BYTES = 2**20


class LineTail:
    """Calls `add` with each whole line's object, once. A file that was replaced or cut is read
    anew, after `start_over`. A half-written last line waits until it is whole."""

    def __init__(
        self, start_over: Callable[[], None], add: Callable[[dict[str, Any]], None]
    ) -> None:
        self._start_over, self._add = start_over, add
        self._state: State | None = None
        self._forget()

    def poll(self, file: BinaryIO | None) -> None:
        """Read what is new. None: the file is not there."""
        state = None if file is None else state_of(file)
        if state == self._state:
            return
        if file is None or not self._continues(file):
            self._forget()
            self._start_over()
        if file is not None and not self._stuck:
            self._read(file)
        self._state = state

    def reasons(self, *, growing: bool) -> list[str]:
        """What was skipped, and why. growing: somebody writes, so a half line is no damage."""
        found = list(self._reasons)
        if self._num_bad > len(found):
            found.append(f"{self._num_bad - len(found)} more lines like these")
        if self._half and not growing:
            found.append(f"line {self._line + 1}: half-written last line ({self._half} bytes)")
        return found

    def _forget(self) -> None:
        self._offset, self._line, self._half = 0, 0, 0
        self._mark = b""
        self._reasons: list[str] = []
        self._num_bad = 0
        self._stuck = False

    def _continues(self, file: BinaryIO) -> bool:
        start = self._offset - len(self._mark)
        same_file = self._state is None or self._state[0] == os.fstat(file.fileno()).st_ino
        return same_file and os.pread(file.fileno(), len(self._mark), start) == self._mark

    def _read(self, file: BinaryIO) -> None:
        file.seek(self._offset)
        pending = b""
        while chunk := file.read(CHUNK_BYTES):
            *lines, pending = (pending + chunk).split(b"\n")
            for raw in lines:
                self._take(raw)
            if len(pending) > MAX_LINE_BYTES:
                self._line += 1
                self._note(f"more than {MAX_LINE_BYTES:,} bytes: the file is read up to here")
                self._stuck = True
                break
        self._half = 0 if self._stuck else len(pending)
        start = max(self._offset - MARK_BYTES, 0)
        self._mark = os.pread(file.fileno(), self._offset - start, start)

    def _take(self, raw: bytes) -> None:
        self._offset += len(raw) + 1
        self._line += 1
        row = jsonl.parse(raw)
        if row is None or not 0 <= row["step"] <= jsonl.LARGEST_INT:
            self._note(f"not a JSON object with a step ({len(raw)} bytes)")
        else:
            self._add(row)

    def _note(self, why: str) -> None:
        self._num_bad += 1
        if len(self._reasons) < MAX_REASONS:
            self._reasons.append(f"line {self._line}: {why}")


def last_rows(file: BinaryIO, names: tuple[str, ...]) -> dict[str, Any]:
    """The last value of each name that is not None, from the end of a .jsonl file. What lies more
    than MAX_LAST_BYTES back is not looked for."""
    size = os.fstat(file.fileno()).st_size
    length = LAST_BYTES
    while True:
        start = max(size - length, 0)
        lines = os.pread(file.fileno(), size - start, start).split(b"\n")
        found = _last(lines if start == 0 else lines[1:], names)
        if len(found) == len(names) or start == 0 or length >= MAX_LAST_BYTES:
            return found
        length *= 4


def _last(lines: list[bytes], names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for raw in reversed(lines):
        row = jsonl.parse(raw) or {}
        found = {name: row[name] for name in names if row.get(name) is not None} | found
        if len(found) == len(names):
            break
    return found
