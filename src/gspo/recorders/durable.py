"""Writes that survive a kill: a file is whole or absent, and what was acknowledged is on disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gspo.errors import DataError, ResourceError

TEMPORARY = ".tmp"  # ending of files that a kill may leave behind; no reader looks at them
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns a full disk into a ResourceError that says how much is free."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        free_mb = shutil.disk_usage(path.parent).free / 1e6
        raise ResourceError(
            f"{path} could not be written, the disk is full ({free_mb:.1f} MB free): "
            "make room, then continue the run with --resume"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; when the block ends well it is synced and takes its place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    with disk_errors(path):
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Replace the file by this text, UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def append(file_descriptor: int, path: Path, data: bytes) -> None:
    """Add `data` at the end and sync it. A write that fails half-way leaves nothing behind."""
    start = os.fstat(file_descriptor).st_size
    with disk_errors(path):
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file_descriptor, view) :]
            os.fsync(file_descriptor)
        except OSError:
            os.ftruncate(file_descriptor, start)
            raise


def sync_folder(folder: Path) -> None:
    """Make a rename or a new file in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of writes that were killed."""
    for path in folder.glob(f".*{TEMPORARY}"):
        path.unlink()


def new_folder(path: Path) -> None:
    """Make a folder and its parents, or say what stands in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(
            f"cannot make the folder {path}, a file is in the way: choose another name"
        ) from error
    except OSError as error:
        raise ResourceError(f"cannot make the folder {path}: {error.strerror}") from error
