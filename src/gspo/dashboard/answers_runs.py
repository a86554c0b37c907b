"""The list of runs, and what changed since the last look."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from gspo.dashboard.columns import number_of
from gspo.dashboard.folder import LISTED, RunFolderView
from gspo.dashboard.index import RunIndex
from gspo.dashboard.objective import name_of, setting
from gspo.dashboard.plain import finite, plain, short
from gspo.recorders.reader import PASS_AT_1, REWARD

EMPTY = (
    "no step was recorded and nobody writes here: the run ended in its first step, or before it; "
    "train it anew"
)


def runs(index: RunIndex) -> dict[str, Any]:
    """Every run, the newest first. Of metrics.jsonl only the end is read."""
    return {"folder": index.folder, "runs": [_summary(run) for run in index.runs()]}


def pulse(index: RunIndex, ids: Sequence[str]) -> dict[str, Any]:
    """Tokens that change when the list, or one of these runs, does. Looks at sizes and times of
    files only."""
    known = index.runs()
    states = [(run.id, run.version(LISTED)) for run in known]
    asked = {run.id: run for run in known if run.id in ids}
    return {
        "list": hashlib.sha256(repr(states).encode()).hexdigest()[:16],
        "runs": {
            run: {"version": view.version(), "step": last_step(view), "status": view.status()}
            for run, view in asked.items()
        },
    }


def last_step(run: RunFolderView) -> int:
    """The last one recorded; 0 before the first."""
    return int(run.last().get("step", 0))


def last_evaluation(run: RunFolderView) -> dict[str, Any] | None:
    """The event of the last held-out evaluation."""
    return next((e for e in reversed(run.events()) if e.get("kind") == "evaluated"), None)


def why(run: RunFolderView, status: str) -> str | None:
    """What is to be said about a run that is not as it should be."""
    if status == "interrupted":
        last = (run.events() or [{}])[-1]
        reason = last.get("reason") if last.get("kind") == "stopped" else None
        return short(reason) if isinstance(reason, str) else None
    return EMPTY if status == "empty" else run.problem()


def _summary(run: RunFolderView) -> dict[str, Any]:
    status = run.status()
    evaluation = last_evaluation(run) or {}
    return {
        "id": run.id,
        "name": run.name,
        "status": status,
        "started": _text(run.info().get("started")),
        "step": last_step(run),
        "total_steps": plain(setting(run.recipe(), "trainer", "steps", int)),
        "objective": short(name_of(run.recipe())),
        "reward": finite(number_of(run.last().get(REWARD))),
        "pass_at_1": finite(number_of(evaluation.get(PASS_AT_1))),
        "num_alarms": len(run.alarms()),
        "problem": why(run, status),
    }


def _text(value: object) -> str | None:
    return short(value) if isinstance(value, str) else None
