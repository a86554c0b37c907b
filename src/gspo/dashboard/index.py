"""The runs there are: known by an id, never by a path. A folder is looked through anew each time,
which costs one look a run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from gspo.dashboard.folder import METRICS, NotFoundError, RunFolderView, Shared
from gspo.dashboard.tables import StepTables
from gspo.dashboard.token_texts import TokenTexts
from gspo.errors import DataError
from gspo.recorders.reader import RUN_FILE

DEFAULT_FOLDER = Path("runs")


class RunIndex:
    """Runs below some folders. `folder`: the folders as they were given."""

    def __init__(self, given: Sequence[Path | str]) -> None:
        """given: folders of runs, or run folders; nothing is the folder `runs`, which need not be
        there yet. Raises DataError for one that is not there."""
        paths = [Path(path) for path in given] or [DEFAULT_FOLDER]
        for path in paths if given else ():
            if not path.is_dir():
                raise DataError(
                    f"there is no folder {path}: give a folder of runs, such as runs, or one run "
                    "folder, such as runs/NAME"
                )
        self.folder = ", ".join(map(str, paths))
        self._paths = paths
        self._shared = Shared(StepTables(), TokenTexts())
        self._views: dict[Path, RunFolderView] = {}
        self._lock = threading.Lock()

    def runs(self) -> list[RunFolderView]:
        """Every run, the newest first."""
        with self._lock:
            views = self._scan()
        return sorted(views.values(), key=_started, reverse=True)

    def find(self, run: str) -> RunFolderView:
        """The run with this id. Raises NotFoundError."""
        with self._lock:
            for views in (self._views, self._scan):
                for view in (views() if callable(views) else views).values():
                    if view.id == run:
                        return view
        raise NotFoundError(
            f"there is no run with the id {run!r:.40}: /api/runs lists the ids that there are"
        )

    def _scan(self) -> dict[Path, RunFolderView]:
        paths = dict.fromkeys(found for path in self._paths for found in _run_folders(path))
        self._views = {
            path: self._views.get(path) or RunFolderView(path, self._shared) for path in paths
        }
        return self._views


def _started(view: RunFolderView) -> tuple[str, str]:
    return str(view.info().get("started") or ""), view.name


def _run_folders(path: Path) -> Iterator[Path]:
    """The folder itself where it is a run, or else those in it. A link to a folder that is not
    among them comes as it is, so that the list can say that it is not followed."""
    path = path.resolve()
    if (path / RUN_FILE).is_file():
        yield path
        return
    try:
        with os.scandir(path) as entries:
            folders = [entry for entry in entries if entry.is_dir()]
    except OSError:
        return
    for entry in folders:
        inside = Path(entry.path)
        if entry.is_symlink() and inside.resolve().parent == path:
            continue
        if any((inside / name).is_file() for name in (RUN_FILE, METRICS)):
            yield inside
