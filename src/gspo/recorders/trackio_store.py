"""trackio's local store, inside the run folder. `TRACKIO_DIR=runs/NAME/trackio trackio show` opens
it.

Rows go straight into the store: `trackio.init` asks Hugging Face who is logged in, and `trackio.log`
hands them to a thread that drops what it cannot write.
"""

# The package is optional, and declares no public names:
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from gspo.recorders.durable import new_folder
from gspo.recorders.mirror import Entry, Target
from gspo.types import Alarm

PROJECT = "gspo"
LEVEL = "warn"
HISTOGRAM = "trackio.histogram"  # what tells its numbers from a plain mapping


class TrackioStore:
    """A database of one run."""

    def __init__(self, target: Target) -> None:
        if target.folder.exists():
            shutil.rmtree(target.folder)
        new_folder(target.folder)
        self._target = target
        with self._store() as store:
            store.init_db(PROJECT)

    def add(self, entries: Sequence[Entry]) -> None:
        """On disk when this returns."""
        target = self._target
        with self._store() as store:
            store.bulk_log(
                PROJECT,
                target.name,
                [_row(entry) for entry in entries],
                steps=[entry.step for entry in entries],
                timestamps=[_time(entry.time_s) for entry in entries],
                config=dict(target.recipe),
                run_id=target.id,
            )

    def alarm(self, alarm: Alarm, time_s: float) -> None:
        """An alert of level warn."""
        text = (
            f"{alarm.cause} Value {alarm.value}, threshold {alarm.threshold}. Try: {alarm.advice}"
        )
        with self._store() as store:
            store.bulk_alert(
                PROJECT,
                self._target.name,
                titles=[alarm.rule],
                texts=[text],
                levels=[LEVEL],
                steps=[alarm.step],
                timestamps=[_time(time_s)],
                run_id=self._target.id,
            )

    def close(self) -> None:
        """Nothing is open between writes."""

    @contextmanager
    def _store(self) -> Iterator[Any]:
        """The package keeps its folder in a constant; others may use it in this process."""
        from trackio import sqlite_storage

        kept = sqlite_storage.TRACKIO_DIR
        sqlite_storage.TRACKIO_DIR = self._target.folder
        try:
            yield sqlite_storage.SQLiteStorage
        finally:
            sqlite_storage.TRACKIO_DIR = kept


def _row(entry: Entry) -> dict[str, Any]:
    histograms = {
        name: {"_type": HISTOGRAM, "bins": list(bins.edges), "values": list(bins.counts)}
        for name, bins in entry.histograms.items()
    }
    return {**entry.numbers, **histograms}


def _time(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()
