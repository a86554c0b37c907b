"""One run folder as the dashboard reads it: only what changed, and nothing outside it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from gspo.dashboard.beneath import Beneath, State, state_of
from gspo.dashboard.columns import MetricColumns
from gspo.dashboard.tail import LineTail, last_rows
from gspo.dashboard.token_texts import TokenTexts
from gspo.errors import DataError, RecipeError
from gspo.recorders.lock import LOCK_FILE, is_held
from gspo.recorders.reader import REWARD, RUN_FILE
from gspo.recorders.sanitize import well_formed
from gspo.recorders.schema import FORMAT_VERSION
from gspo.recorders.tables import MAGIC, step_file, step_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gspo.dashboard.tables import StepTables

T = TypeVar("T")
Status = Literal["running", "finished", "interrupted", "broken", "empty"]

METRICS, EVENTS, ALARMS, RECIPE = "metrics.jsonl", "events.jsonl", "alarms.jsonl", "recipe.yaml"
LISTED = (METRICS, EVENTS, ALARMS, LOCK_FILE, RUN_FILE)  # what the list of runs is made of
WATCHED = (*LISTED, RECIPE, "steps", "eval", "checkpoints")
MAX_INFO_BYTES = 2**22
MAX_RECIPE_BYTES = 2**20
MAX_LOCK_BYTES = 2**16
ID_DIGITS = 10


class NotFoundError(DataError):
    """There is no such run, step or row."""


class BadQueryError(DataError):
    """A question that makes no sense."""


@dataclass(slots=True)
class Shared:
    """What all runs of one process share."""

    tables: StepTables
    tokens: TokenTexts


class RunFolderView:
    """One run. Hold `lock` while an answer is made: another thread may read what is new."""

    def __init__(self, path: Path, shared: Shared) -> None:
        """path: without links."""
        self.name = well_formed(path.name)
        self.id = run_id(path)
        self.files = Beneath(path)
        self.shared = shared
        self._path = path
        self.lock = threading.RLock()
        self._metrics = MetricColumns()
        self._events: list[dict[str, Any]] = []
        self._alarms: list[dict[str, Any]] = []
        self._tails = {
            METRICS: LineTail(self._forget_metrics, self._add_metrics),
            EVENTS: LineTail(self._events.clear, self._events.append),
            ALARMS: LineTail(self._alarms.clear, self._alarms.append),
        }
        self._info = Cached[dict[str, Any]](RUN_FILE)
        self._recipe = Cached[tuple[str, dict[str, Any]]](RECIPE)
        self._last = Cached[dict[str, Any]](METRICS)
        self._whole: dict[str, dict[str, bool]] = {"steps": {}, "eval": {}}
        self._problems: dict[str, str] = {}

    def metrics(self) -> MetricColumns:
        """Every statistic recorded so far."""
        self._poll(METRICS)
        return self._metrics

    def events(self) -> list[dict[str, Any]]:
        """What happened, in order."""
        self._poll(EVENTS)
        return list(self._events)

    def alarms(self) -> list[dict[str, Any]]:
        """Alarms, in order."""
        self._poll(ALARMS)
        return list(self._alarms)

    def info(self) -> dict[str, Any]:
        """run.json; empty where it cannot be read."""
        with self.lock:
            return self._info.get(self.files, self._read_info)

    def recipe(self) -> dict[str, Any]:
        """The resolved recipe; empty where it cannot be read."""
        with self.lock:
            return self._recipe.get(self.files, self._read_recipe)[1]

    def recipe_text(self) -> str:
        """recipe.yaml as it is; empty where it is missing."""
        with self.lock:
            return self._recipe.get(self.files, self._read_recipe)[0]

    def last(self) -> dict[str, Any]:
        """ "step" and "reward/mean" of the last line that has them: the end of metrics.jsonl is
        all that is read."""
        with self.lock:
            return self._last.get(self.files, self._read_last)

    def running(self) -> bool:
        """A live process writes this folder."""
        try:  # by name only once it is known to be a small plain file
            self.files.read(LOCK_FILE, max_bytes=MAX_LOCK_BYTES)
            return is_held(self._path)
        except (DataError, OSError):
            return False

    def status(self) -> Status:
        """broken: there is no run.json that this version reads. empty: nobody writes it, and no
        step was recorded."""
        if self.problem() is not None:
            return "broken"
        if self.running():
            return "running"
        if not self.last().get("step"):
            return "empty"
        kinds = [event.get("kind") for event in self.events()]
        last = [kind for kind in kinds if kind in ("started", "resume", "finished")][-1:]
        return "finished" if last == ["finished"] else "interrupted"

    def problem(self) -> str | None:
        """Why the run cannot be read at all."""
        with self.lock:
            version = self.info().get("format", FORMAT_VERSION)
            if RUN_FILE in self._problems:
                return self._problems[RUN_FILE]
        if version != FORMAT_VERSION:
            return (
                f"its format is {version!r:.40}; this gspo reads {FORMAT_VERSION}: open it with "
                "the version that run.json names"
            )
        return None

    def version(self, names: tuple[str, ...] = WATCHED) -> str:
        """A token that changes when one of these files does, or when the writer comes or goes."""
        state = (self.files.states(names), self.running())
        return hashlib.sha256(repr(state).encode()).hexdigest()[:16]

    def steps(self, kind: Literal["steps", "eval"] = "steps") -> list[int]:
        """Steps whose responses (or evaluation) can be opened."""
        with self.lock:
            whole = self._whole[kind]
            names = set(self._names(kind))
            for name in whole.keys() - names:
                del whole[name]
            for name in names:
                if name.endswith(".parquet") and not whole.get(name):
                    whole[name] = self._is_whole(kind, name)
            found = (_step(name) for name, fine in whole.items() if fine)
            return sorted(step for step in found if step is not None)

    def table(self, step: int, columns: tuple[str, ...]) -> pa.Table:
        """These columns of a step's responses. NotFoundError, or DataError for a damaged file."""
        name = step_file(Path(), step).name
        table = self.shared.tables.get(self.files, name, step, columns)
        if table is None:
            known = self.steps()
            has = f"it has {known[0]} to {known[-1]}" if known else "it has none yet"
            raise NotFoundError(f"no responses of step {step} in this run: {has}")
        return table

    def token_texts(self, ids: list[int]) -> list[str] | None:
        """The text of each token; None where the run keeps no tokenizer."""
        return self.shared.tokens.of(self.files, ids)

    def damaged(self) -> list[dict[str, str]]:
        """What had to be skipped, and why; names relative to the folder."""
        growing = self.running()
        for name in self._tails:
            self._poll(name)
        self.info()
        self.recipe()
        with self.lock:
            found = [(name, why) for name, why in self._problems.items()]
            for name, tail in self._tails.items():
                found += [(name, why) for why in tail.reasons(growing=growing)]
            found += [(METRICS, why) for why in self._metrics.problems]
            for kind in ("steps", "eval"):
                self.steps(kind)
                bad = sorted(name for name, fine in self._whole[kind].items() if not fine)
                why = "half-written, a link, or no Parquet file of a step"
                found += [(f"{kind}/{name}", why) for name in bad]
        return [{"file": name, "reason": why} for name, why in found]

    def _forget_metrics(self) -> None:
        self._metrics = MetricColumns()

    def _add_metrics(self, row: dict[str, Any]) -> None:
        self._metrics.add(row)

    def _poll(self, name: str) -> None:
        with self.lock:
            self._problems.pop(name, None)
            try:
                file = self.files.open(name)
            except DataError as error:
                self._problems[name] = str(error)
                file = None
            if file is None:
                self._tails[name].poll(None)
                return
            with file:
                self._tails[name].poll(file)

    def _read_info(self) -> dict[str, Any]:
        info = None
        self._problems.pop(RUN_FILE, None)
        try:
            content = self.files.read(RUN_FILE, max_bytes=MAX_INFO_BYTES)
            info = json.loads(content) if content is not None else None
            if content is None:
                self._problems[RUN_FILE] = "there is no run.json: a run writes it first"
            elif not isinstance(info, dict):
                self._problems[RUN_FILE] = "run.json holds no JSON object"
        except DataError as error:
            self._problems[RUN_FILE] = str(error)
        except (ValueError, RecursionError) as error:
            self._problems[RUN_FILE] = f"run.json is not JSON: {error}"
        return info if isinstance(info, dict) else {}

    def _read_recipe(self) -> tuple[str, dict[str, Any]]:
        from gspo.recipes.yaml_text import read_yaml

        self._problems.pop(RECIPE, None)
        text, values = "", None
        try:
            content = self.files.read(RECIPE, max_bytes=MAX_RECIPE_BYTES)
            text = (content or b"").decode("utf-8", "replace")
            values = read_yaml(text, RECIPE).values
        except (DataError, RecipeError) as error:
            self._problems[RECIPE] = str(error)
        return text, values if isinstance(values, dict) else {}

    def _read_last(self) -> dict[str, Any]:
        try:
            file = self.files.open(METRICS)
        except DataError:
            return {}
        if file is None:
            return {}
        with file:
            return last_rows(file, ("step", REWARD))

    def _names(self, kind: str) -> list[str]:
        self._problems.pop(kind, None)
        try:
            return self.files.names(kind)
        except DataError as error:
            self._problems[kind] = str(error)
            return []

    def _is_whole(self, kind: str, name: str) -> bool:
        try:
            file = None if _step(name) is None else self.files.open(kind, name)
        except DataError:
            return False
        if file is None:
            return False
        with file:
            size = state_of(file)[1]
            ends = (
                os.pread(file.fileno(), len(MAGIC), at) for at in (0, max(size - len(MAGIC), 0))
            )
            return all(end == MAGIC for end in ends)


class Cached(Generic[T]):
    """What was read of a file, until the file changes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: tuple[State | None, T] | None = None

    def get(self, files: Beneath, read: Callable[[], T]) -> T:
        """The last reading, or a new one."""
        (state,) = files.states([self._name])
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, read())
        return self._kept[1]


def run_id(path: Path) -> str:
    """What addresses a run instead of its path. path: without links."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:ID_DIGITS]


def _step(name: str) -> int | None:
    return step_of(Path(name)) if name.endswith(".parquet") else None


def open_view(path: Path | str) -> RunFolderView:
    """One run folder by its path. DataError when it is none."""
    from gspo.dashboard.tables import StepTables

    path = Path(path).resolve()
    view = RunFolderView(path, Shared(StepTables(), TokenTexts()))
    problem = view.problem()
    if problem is not None:
        raise DataError(f"{path} is no run folder that can be read: {problem}")
    return view
