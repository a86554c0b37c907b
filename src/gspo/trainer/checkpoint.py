"""Checkpoints that are whole or absent.

A checkpoint is written under a temporary name, synced, given a manifest with the size and digest
of every file, and renamed. A folder without a manifest that fits is never loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gspo.errors import DataError
from gspo.trainer.state import TrainState

MANIFEST = "MANIFEST.json"
FORMAT_VERSION = 1
_NAME = re.compile(r"step-(\d{6,})")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A verified checkpoint: `folder / "model"` is a Hugging Face folder."""

    folder: Path
    step: int

    @property
    def model(self) -> Path:
        """The Hugging Face folder."""
        return self.folder / "model"

    def state(self) -> TrainState:
        """The training state it was saved with."""
        path = self.folder / "state.json"
        return TrainState.from_json(path.read_text(encoding="utf8"), str(path))


class CheckpointStore:
    """The checkpoints of one run folder."""

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep

    def save(self, state: TrainState, write: Callable[[Path], None]) -> Checkpoint:
        """Write step `state.step`; `write` fills the folder with model and optimizer. A step that
        is already there, whole, is left as it is."""
        target = self._folder / f"step-{state.step:06d}"
        if target.exists() and fault(target) is None:
            return Checkpoint(target, state.step)
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f".tmp-{state.step:06d}-{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            write(draft)
            (draft / "state.json").write_text(state.to_json(), encoding="utf8")
            _seal(draft)
            self._remove(target)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _sync(self._folder)
        self._prune()
        return Checkpoint(target, state.step)

    def list(self) -> list[Checkpoint]:
        """All complete-looking checkpoints (a manifest is there), oldest first."""
        found = [
            Checkpoint(path, int(match[1]))
            for path in self._folder.glob("step-*")
            if (match := _NAME.fullmatch(path.name)) and (path / MANIFEST).is_file()
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.step)

    def latest(self, warn: Callable[[str], None]) -> Checkpoint | None:
        """The newest checkpoint whose every file has the size and digest of the manifest. Broken
        newer ones are named to `warn`. If there are only broken ones: DataError, never a silent
        start from scratch."""
        candidates = self.list()
        for checkpoint in reversed(candidates):
            problem = fault(checkpoint.folder)
            if problem is None:
                return checkpoint
            warn(f"checkpoint {checkpoint.folder.name} is left out: {problem}")
        broken = [p.name for p in self._folder.glob("step-*")] if self._folder.is_dir() else []
        if broken:
            raise DataError(
                f"{self._folder} holds {', '.join(sorted(broken))} but none is whole; restore one, or train under another name"
            )
        return None

    def _prune(self) -> None:
        # The starting point stays: it is the "before" of every comparison.
        whole = [c for c in self.list() if c.step > 0]
        for checkpoint in whole[: -self._keep]:
            self._remove(checkpoint.folder)
        for leftover in self._folder.glob(".del-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def _remove(self, folder: Path) -> None:
        if folder.exists():
            doomed = folder.with_name(f".del-{folder.name}-{os.getpid()}")
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def fault(folder: Path) -> str | None:
    """What is wrong with a checkpoint folder; None when every file is as the manifest says."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf8"))
        files = manifest["files"]
        for name, expected in files.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != expected["bytes"]:
                return f"{name} has {path.stat().st_size} bytes, not {expected['bytes']}"
            if _digest(path) != expected["sha256"]:
                return f"{name} has changed: its digest is another"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} cannot be read ({type(error).__name__}: {error})"
    return None


def _seal(folder: Path) -> None:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    for path in files:
        _sync(path)
    manifest = {
        "format_version": FORMAT_VERSION,
        "files": {
            str(p.relative_to(folder)): {"bytes": p.stat().st_size, "sha256": _digest(p)}
            for p in files
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf8")
    _sync(folder / MANIFEST)
    for path in [folder, *(p for p in folder.rglob("*") if p.is_dir())]:
        _sync(path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
