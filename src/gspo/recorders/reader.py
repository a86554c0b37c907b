"""Reads run folders: of a live run, of a killed one, of a damaged one. Never imports torch.

Nothing is cached: each call reads what is on disk now. What cannot be read is skipped and named
in `Run.damaged`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gspo.errors import DataError, nearest
from gspo.recorders import jsonl
from gspo.recorders.lock import is_held
from gspo.recorders.schema import FORMAT_VERSION, RESPONSE_COLUMNS
from gspo.recorders.tables import is_whole, read_table, step_file, step_of

if TYPE_CHECKING:
    import pyarrow as pa

RUN_FILE = "run.json"
REWARD = "reward/mean"
PASS_AT_1 = "eval/pass@1"  # noqa: S105 - the name of a metric

Status = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True)
class Damage:
    """A file, or part of one, that could not be read, and why."""

    path: Path
    reason: str


class Run:
    """A run folder, read. info: run.json. For example

    run = gspo.open_run("runs/demo")
    run.columns("reward/mean", "clip/cut_share")["reward/mean"][-1]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._damage: dict[Path, list[str]] = {}
        self.info: dict[str, Any] = self._read_info()
        self.name: str = self.info.get("name", path.resolve().name)

    @property
    def damaged(self) -> list[Damage]:
        """What the calls so far had to skip."""
        return [Damage(path, reason) for path, why in self._damage.items() for reason in why]

    @property
    def recipe_text(self) -> str:
        """recipe.yaml; empty when it is missing."""
        path = self.path / "recipe.yaml"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe; empty when recipe.yaml is missing or damaged."""
        import yaml

        try:
            recipe = yaml.safe_load(self.recipe_text)
        except yaml.YAMLError as error:
            recipe = None
            self._note(self.path / "recipe.yaml", [f"not YAML: {error}"])
        return recipe if isinstance(recipe, dict) else {}

    @property
    def status(self) -> Status:
        """running: a live process holds the folder's lock."""
        if is_held(self.path):
            return "running"
        kinds = [event.get("kind") for event in self.events()]
        last = [kind for kind in kinds if kind in ("started", "resume", "finished")][-1:]
        return "finished" if last == ["finished"] else "interrupted"

    def metrics(self) -> list[dict[str, Any]]:
        """One object a step, in order: "step", "time", and every statistic by its name."""
        steps: dict[int, dict[str, Any]] = {}
        for row in self._lines("metrics"):
            known = steps.setdefault(row["step"], {})
            nonfinite = known.get(jsonl.NONFINITE, []) + row.get(jsonl.NONFINITE, [])
            known.update(row)
            if nonfinite:
                known[jsonl.NONFINITE] = nonfinite
        return [steps[step] for step in sorted(steps)]

    def columns(self, *names: str) -> dict[str, list[Any]]:
        """Statistics as columns beside "step"; None where a step has none.

        Raises DataError for a name no step has.
        """
        rows = self.metrics()
        known = {name for row in rows for name in row}
        for name in names:
            if rows and name not in known:
                raise DataError(f"{self.path} has no metric {name!r}; {nearest(name, known)}")
        return {name: [row.get(name) for row in rows] for name in ("step", *names)}

    def events(self) -> list[dict[str, Any]]:
        """What happened, in order: "step", "time", "kind", and what belongs to the kind."""
        return self._lines("events")

    def alarms(self) -> list[dict[str, Any]]:
        """Alarms in order, with the fields of `Alarm` and "time"."""
        return self._lines("alarms")

    def steps(self) -> list[int]:
        """Steps whose responses can be opened."""
        return self._whole("steps")

    def step(self, step: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The responses of one step; all columns or these. Raises DataError when it cannot."""
        return self._open("steps", step, columns)

    def responses(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Every step with its responses, one at a time; damaged files are skipped, and so are files
        that lack a column every run folder has. DataError for a column that none has."""
        if unknown := [name for name in columns or () if name not in RESPONSE_COLUMNS]:
            raise DataError(
                f"responses have no column {unknown[0]!r}; {nearest(unknown[0], RESPONSE_COLUMNS)}"
            )
        for step in self.steps():
            try:
                table = self._read("steps", step, columns)
            except DataError as error:
                self._note(step_file(self.path / "steps", step), [str(error)])
                continue
            if table is not None:
                yield step, table

    def evals(self) -> list[int]:
        """Steps after which there was an evaluation whose answers can be opened."""
        return self._whole("eval")

    def evaluation(self, step: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The answers of one evaluation. Raises DataError when it cannot."""
        return self._open("eval", step, columns)

    def checkpoints(self) -> dict[int, Path]:
        """Step -> folder of each checkpoint that holds a model, in order of steps."""
        folders = (self.path / "checkpoints").glob("step-*")
        found = {step_of(folder): folder for folder in folders if (folder / "model").is_dir()}
        return {step: found[step] for step in sorted(step for step in found if step is not None)}

    def _read_info(self) -> dict[str, Any]:
        path = self.path / RUN_FILE
        try:
            info = json.loads(path.read_bytes())
        except ValueError as error:
            self._note(path, [f"not JSON: {error}"])
            info = None
        return info if isinstance(info, dict) else {}

    def _note(self, path: Path, reasons: list[str]) -> None:
        self._damage.pop(path, None)
        if reasons:
            self._damage[path] = reasons

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.path / f"{name}.jsonl"
        rows, reasons = jsonl.read(path)
        self._note(path, reasons)
        return rows

    def _whole(self, kind: str) -> list[int]:
        steps = []
        for path in (self.path / kind).glob("*.parquet"):
            step = step_of(path)
            if step is not None and is_whole(path):
                steps.append(step)
            else:
                self._note(path, ["half-written, or no Parquet file of a step"])
        return sorted(steps)

    def _open(self, kind: str, step: int, columns: Sequence[str] | None) -> pa.Table:
        path = step_file(self.path / kind, step)
        if not path.exists():
            known = self._whole(kind)
            has = f"has {known[0]} to {known[-1]}" if known else "has none yet"
            raise DataError(f"no {path.name} in {path.parent}: this run {has}")
        table = self._read(kind, step, columns)
        if table is None:
            raise DataError(f"{path} is damaged ({self._damage[path][0]}): take another step")
        return table

    def _read(self, kind: str, step: int, columns: Sequence[str] | None) -> pa.Table | None:
        path = step_file(self.path / kind, step)
        table = read_table(path, columns)
        if isinstance(table, str):
            self._note(path, [table])
            return None
        return table


def open_run(path: Path | str) -> Run:
    """Open a run folder. Raises DataError when it is none, saying what was looked for."""
    path = Path(path)
    if (path / RUN_FILE).is_file():
        run = Run(path)
        version = run.info.get("format", FORMAT_VERSION)
        if version == FORMAT_VERSION:
            return run
        raise DataError(
            f"{path} has run folder format {version!r}; this gspo reads {FORMAT_VERSION}: open it "
            "with the gspo version named in its run.json"
        )
    if not path.is_dir():
        beside = {p.parent.name for p in path.parent.glob(f"*/{RUN_FILE}")}
        hint = nearest(path.name, beside) if beside else f"{path.parent} holds no runs"
        raise DataError(f"there is no folder {path}; {hint}")
    held = ", ".join(sorted(p.name for p in path.iterdir())[:4]) or "nothing"
    raise DataError(
        f"{path} is not a run folder: looked for {RUN_FILE} in it, found {held}; "
        "give the folder of one run, such as runs/NAME"
    )


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line a run. started: ISO time. steps: the last one recorded. objective: None when the
    recipe cannot be read. reward, pass_at_1: the last ones recorded."""

    name: str
    path: Path
    started: str | None
    steps: int
    status: Status
    objective: str | None
    reward: float | None
    pass_at_1: float | None


def list_runs(folder: Path | str) -> list[RunSummary]:
    """Every run folder directly below `folder`, the newest first. Raises DataError when there is
    no such folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: looked for run folders such as runs/NAME")
    paths = sorted(path.parent for path in folder.glob(f"*/{RUN_FILE}"))
    runs = [_summary(Run(path)) for path in paths]
    return sorted(runs, key=lambda run: run.started or "", reverse=True)


def _summary(run: Run) -> RunSummary:
    last = jsonl.last_values(run.path / "metrics.jsonl", ("step", REWARD, PASS_AT_1))
    section = run.recipe.get("objective")
    objective = section.get("name") if isinstance(section, dict) else section
    return RunSummary(
        name=run.name,
        path=run.path,
        started=run.info.get("started"),
        steps=last.get("step", 0),
        status=run.status,
        objective=objective if isinstance(objective, str) else None,
        reward=last.get(REWARD),
        pass_at_1=last.get(PASS_AT_1),
    )
