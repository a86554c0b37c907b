"""What a run folder says about each number that the page shows, worked out apart from the page."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from gspo.recorders.reader import open_run

OF_A_RESPONSE = ("reward", "advantage", "log_s", "length", "minibatch")
#: All numbers of the view that is shown, and of the line above it.
NUMBERS = """() => [...document.querySelectorAll("#head [data-metric], section:not([hidden]) [data-metric]")]
  .filter((node) => !node.closest("[hidden]")).map((node) => ({
    metric: node.dataset.metric, value: node.dataset.value, step: node.dataset.step, text: node.textContent,
    token: node.dataset.token, row: node.closest("[data-row]")?.dataset.row, define: node.dataset.define,
  }))"""

Number = dict[str, str]


class Expected:
    """One run, read by `gspo.open_run`. row: the response that view 3 shows."""

    def __init__(self, path: Path, row: int = 0) -> None:
        self.run = open_run(path)
        self.rows = {row["step"]: row for row in self.run.metrics()}
        self.row = row
        self._tables: dict[int, list[dict[str, Any]]] = {}

    def table(self, step: int) -> list[dict[str, Any]]:
        """The responses of a step."""
        if step not in self._tables:
            self._tables[step] = self.run.step(step).to_pylist()
        return self._tables[step]

    def last_step(self) -> int:
        """The last step that was trained."""
        return max(step for step, row in self.rows.items() if "reward/mean" in row)

    def value(self, name: str, step: int | None) -> float | None:
        """A metric in a step, or where it was recorded last."""
        found = [row.get(name) for at, row in self.rows.items() if step in (None, at)]
        known = [value for value in found if value is not None]
        return known[-1] if known else None

    def of(self, number: Number, view_step: int) -> float | str | None:
        """What the number should be. view_step: the one that the page's slider is at."""
        name = number["metric"]
        step = int(number["step"]) if number.get("step") else None
        if name in OF_A_RESPONSE:
            row = int(number["row"]) if number.get("row") else self.row
            return self.table(view_step)[row][name]
        if name.startswith("token_"):
            return self.token(name, int(number["token"]), view_step)
        if name.startswith("alarm/"):
            return self.alarm(name)
        if name.startswith("time_share/"):
            part = self.value(name.replace("time_share", "time") + "_s", step)
            whole = self.value("time/step_s", step)
            return None if part is None or whole is None else part / whole
        own = getattr(self, f"own_{name}", None)
        return own(view_step) if own else self.value(name, step)

    def token(self, name: str, at: int, step: int) -> float | None:
        """Of the response `row`."""
        row = self.table(step)[self.row]
        if name == "token_surprisal":
            return -(row["old_logp"] or row["engine_logp"])[at]
        new, old = (
            ("logp", "old_logp") if name == "token_log_ratio" else ("old_logp", "engine_logp")
        )
        if row[new] is None or row[old] is None:
            return None
        return row[new][at] - row[old][at]

    def alarm(self, name: str) -> float:
        """Value or threshold of the last alarm of a rule."""
        rule = name.removeprefix("alarm/").removesuffix("/threshold")
        found = [alarm for alarm in self.run.alarms() if alarm["rule"] == rule][-1]
        return found["threshold" if name.endswith("/threshold") else "value"]

    def own_step(self, view_step: int) -> int:
        return self.last_step()

    def own_status(self, view_step: int) -> str:
        return self.run.status

    def own_alarm(self, view_step: int) -> int:
        return len(self.run.alarms())

    def own_elapsed(self, view_step: int) -> float:
        start, *_, end = [
            self.run.info["started"],
            *(row["time"] for row in self.run.metrics()),
        ]
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()

    def own_num_prompts(self, view_step: int) -> int:
        return [e for e in self.run.events() if e["kind"] == "evaluated"][-1]["num_prompts"]

    def own_fitted_exponent(self, view_step: int) -> float:
        """A line through log std on log L, weighted by counts; std pooled over all steps."""
        names = {name for row in self.rows.values() for name in row}
        family = "log_s/count/len_"
        buckets = [name.removeprefix(family) for name in names if name.startswith(family)]
        points = [point for bucket in buckets if (point := self._pooled(bucket))]
        x, y, weight = (np.array(column) for column in zip(*points, strict=True))
        slope = np.polyfit(x, y, 1, w=np.sqrt(weight))[0]
        return -float(slope)

    def _pooled(self, bucket: str) -> tuple[float, float, float] | None:
        """log of the bucket's middle, log of its std, its count."""
        count = freedom = squares = 0.0
        for row in self.rows.values():
            number = row.get(f"log_s/count/len_{bucket}") or 0
            std = row.get(f"log_s/std/len_{bucket}")
            count += number
            if number >= 2 and std is not None:
                freedom += number - 1
                squares += (number - 1) * std**2
        if not squares:
            return None
        ends = [int(end) for end in bucket.split("-")]
        middle = math.sqrt(ends[0] * ends[-1])
        return math.log(middle), math.log(math.sqrt(squares / freedom)), count
