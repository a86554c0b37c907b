"""The run folder: everything a run leaves behind, in files that DuckDB, Polars and pandas read as
they are. Format version 1, explained in docs/run-folder.md.

A step's Parquet is in place before its line in metrics.jsonl, so the line is the mark that the
step is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gspo.errors import DataError
from gspo.recorders import jsonl
from gspo.recorders.base import ResponseRow
from gspo.recorders.durable import TEMPORARY, new_folder, remove_leftovers, sync_folder, write_text
from gspo.recorders.jsonl import JsonLines
from gspo.recorders.lock import LOCK_FILE, Holder, RunLock
from gspo.recorders.reader import open_run
from gspo.recorders.sanitize import well_formed
from gspo.recorders.schema import EVAL_COLUMNS, FORMAT_VERSION, RESPONSE_COLUMNS, EvalRow
from gspo.recorders.tables import step_file, step_of, write_table
from gspo.stats import Statistic
from gspo.types import Alarm, Group

LINES = ("metrics", "events", "alarms")
TABLES = ("steps", "eval")
RESERVED = {"step", "time", jsonl.NONFINITE}


class RunFolder:
    """A recorder that writes a run folder. Make one with `create` or `resume`."""

    def __init__(self, path: Path, lock: RunLock) -> None:
        self.path = path
        self._lock: RunLock | None = lock
        for name in TABLES:
            new_folder(path / name)
        self._metrics, self._events, self._alarms = (
            JsonLines(path / f"{name}.jsonl") for name in LINES
        )
        sync_folder(path)

    @classmethod
    def create(cls, path: Path | str, *, info: Mapping[str, Any], recipe: str) -> RunFolder:
        """A new run. info: versions, seed, digests, dtype, back ends; recipe: the resolved YAML.

        Raises DataError when the folder holds anything, or another process writes it.
        """
        path = Path(path)
        new_folder(path)
        refuse_content(path, known=("run.json",))  # leaves no lock file in a stranger's folder
        lock = RunLock(path)
        with ExitStack() as undo:
            undo.callback(lock.release)
            refuse_content(path)
            remove_leftovers(path)
            head = {"format": FORMAT_VERSION, "name": path.resolve().name, "started": _now()}
            _write_json(path / "run.json", {**head, **info})  # first: what makes it a run
            write_text(path / "recipe.yaml", well_formed(recipe))
            folder = cls(path, lock)
            undo.pop_all()
        folder.event("started", step=0)
        return folder

    @classmethod
    def resume(
        cls, path: Path | str, *, step: int, info: Mapping[str, Any], recipe: str
    ) -> RunFolder:
        """Go on after `step`: whatever was recorded past it is removed.

        run.json stays that of the start; a "resume" event tells what changed since. Raises
        DataError when the folder is no run, or another process writes it.
        """
        path = Path(path)
        run = open_run(path)
        lock = RunLock(path)
        with ExitStack() as undo:
            undo.callback(lock.release)
            removed = _truncate(path, step)
            changed = {k: v for k, v in jsonl.plain(info).items() if run.info.get(k) != v}
            if recipe != run.recipe_text:
                changed["previous_recipe"] = run.recipe_text
                write_text(path / "recipe.yaml", well_formed(recipe))
            folder = cls(path, lock)
            undo.pop_all()
        folder.event(
            "resume",
            step=step,
            removed=removed,
            changed=changed,
            taken_over_from=_holder_fields(lock.taken_over_from),
        )
        return folder

    def step(
        self, step: int, stats: Mapping[str, Statistic], responses: Sequence[ResponseRow]
    ) -> None:
        """One finished step; on disk when this returns. Without responses only the statistics are
        written: they join those the step already has (an evaluation after the step does this)."""
        if clash := RESERVED & set(stats):
            raise DataError(f"statistics may not be named {', '.join(sorted(clash))}: rename them")
        if responses:
            self._table("steps", step, RESPONSE_COLUMNS, responses)
        values = {name: stat.value() for name, stat in stats.items()}
        self._metrics.append({"step": step, "time": _now(), **values})

    def evaluation(self, step: int, sampled: Sequence[Group], greedy: Sequence[Group]) -> None:
        """The answers of an evaluation after `step`; 0 is before training."""
        rows = [row for group in sampled for row in _eval_rows(group, greedy=False)]
        rows += [row for group in greedy for row in _eval_rows(group, greedy=True)]
        self._table("eval", step, EVAL_COLUMNS, rows)

    def alarm(self, alarm: Alarm) -> None:
        """Something to look at."""
        self._alarms.append({"step": alarm.step, "time": _now(), **asdict(alarm)})

    def event(self, kind: str, *, step: int, **fields: Any) -> None:
        """Something that happened: "clip_fixed", "refit", "checkpoint", "finished"…"""
        self._events.append({"step": step, "time": _now(), "kind": kind, **fields})

    def finished(self, step: int) -> None:
        """The run reached its end; without this it counts as interrupted."""
        self.event("finished", step=step)

    def close(self) -> None:
        """Let others write. Everything recorded was already on disk. Closing twice is fine."""
        if self._lock is None:
            return
        for file in (self._metrics, self._events, self._alarms):
            file.close()
        self._lock.release()
        self._lock = None

    def _table(
        self,
        kind: str,
        step: int,
        columns: Mapping[str, tuple[str, bool]],
        rows: Sequence[ResponseRow] | Sequence[EvalRow],
    ) -> None:
        path = step_file(self.path / kind, step)
        if path.exists():
            raise DataError(
                f"{path} exists: step {step} was recorded before; resume the run at an earlier step"
            )
        write_table(path, step, columns, rows)


def _eval_rows(group: Group, *, greedy: bool) -> list[EvalRow]:
    prompt = group.prompt
    return [
        EvalRow(
            prompt_id=prompt.id,
            source=prompt.source,
            prompt=prompt.text,
            answer=None if prompt.answer is None else str(prompt.answer),
            sample=sample,
            greedy=greedy,
            text=rollout.text,
            tokens=list(rollout.response_ids),
            reward=rollout.reward,
            parts=rollout.verdict.parts if rollout.verdict else {},
            failure=rollout.verdict.failure if rollout.verdict else "not judged",
            length=len(rollout.response_ids),
            finish=rollout.finish,
            version=rollout.version,
        )
        for sample, rollout in enumerate(group.rollouts)
    ]


def _truncate(path: Path, step: int) -> dict[str, int]:
    """Remove what lies past `step`; returns how much went, by kind. May be run twice."""
    removed = {name: jsonl.truncate_after(path / f"{name}.jsonl", step) for name in LINES}
    remove_leftovers(path)
    for kind in TABLES:
        remove_leftovers(path / kind)
        late = [p for p in (path / kind).glob("*.parquet") if (step_of(p) or 0) > step]
        for file in late:
            file.unlink()
        removed[kind] = len(late)
    return {name: count for name, count in removed.items() if count}


def refuse_content(path: Path, known: Sequence[str] = ()) -> None:
    """DataError when the folder holds anything but `known`; that there is none is fine. A lock file
    and the half-written run.json of a killed start are no content."""
    if not path.is_dir():
        return
    names = sorted(p.name for p in path.iterdir() if p.name != LOCK_FILE)
    names = [n for n in names if not (n.startswith(".run.json.") and n.endswith(TEMPORARY))]
    if names and not set(known) & set(names):
        raise DataError(
            f"run folder {path} is not empty (it holds {', '.join(names[:4])}): "
            "continue that run with --resume, or choose another name"
        )


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(jsonl.plain(fields), indent=2, allow_nan=False) + "\n")


def _holder_fields(holder: Holder | None) -> dict[str, Any] | None:
    return None if holder is None else {"pid": holder.pid, "host": holder.host}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
