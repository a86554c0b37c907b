"""Files below one folder, and none outside it.

A run folder may come from anyone. Every part of a name is opened relative to the folder before it
and never through a link, so that no link and no `..` in a run folder leads out of it. Only plain
files are read: a pipe would wait for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gspo.errors import DataError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe does not block it
#: What tells one state of a file from another: inode, bytes, nanoseconds.
State = tuple[int, int, int]


class Beneath:
    """One folder. Names are given part by part: `open("steps", "000012.parquet")`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, *parts: str) -> BinaryIO | None:
        """The file, or None where there is none. DataError for what must not be read."""
        try:
            descriptor = self._descriptor(parts, FILE)
        except OSError as error:
            return _none_if_missing(error, "/".join(parts))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise DataError(f"{'/'.join(parts)} is no plain file: it is not read")
        return os.fdopen(descriptor, "rb")

    def read(self, *parts: str, max_bytes: int) -> bytes | None:
        """The whole file, or None where there is none. DataError where it is longer."""
        file = self.open(*parts)
        if file is None:
            return None
        with file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise DataError(f"{'/'.join(parts)} has more than {max_bytes:,} bytes: it is not read")
        return content

    def names(self, *parts: str) -> list[str]:
        """What lies in a folder below; empty where there is no such folder."""
        try:
            descriptor = self._descriptor(parts, FOLDER)
        except OSError as error:
            _none_if_missing(error, "/".join(parts))
            return []
        try:
            return os.listdir(descriptor)
        finally:
            os.close(descriptor)

    def states(self, names: Sequence[str]) -> list[State | None]:
        """The state of each of these files and folders; None where there is none."""
        try:
            descriptor = os.open(self.path, FOLDER)
        except OSError:
            return [None] * len(names)
        try:
            return [_state(name, descriptor) for name in names]
        finally:
            os.close(descriptor)

    def _descriptor(self, parts: Sequence[str], flags: int) -> int:
        descriptor = os.open(self.path, FOLDER)
        for number, part in enumerate(parts, start=1):
            outer = descriptor
            try:
                descriptor = os.open(
                    _checked(part), flags if number == len(parts) else FOLDER, dir_fd=outer
                )
            finally:
                os.close(outer)
        return descriptor


def state_of(file: BinaryIO) -> State:
    """The state of an open file."""
    found = os.fstat(file.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns


def _state(name: str, descriptor: int) -> State | None:
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _checked(part: str) -> str:
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise DataError(f"{part!r} is no name of a file in a run folder")
    return part


def _none_if_missing(error: OSError, name: str) -> None:
    if error.errno == errno.ENOENT:
        return
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise DataError(f"{name} is a link or lies in one: links are not followed") from error
    raise DataError(f"{name} cannot be read: {error.strerror}") from error
