"""Looks at the numbers of each step with the rules of `gspo.diagnostics.alarms`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gspo.diagnostics.alarms.bell import Bell, alarms_over
from gspo.recorders.base import Recorder
from gspo.stats import Statistic
from gspo.trainer.clip_control import ClipEvent
from gspo.types import Alarm


class Watch:
    """Keeps what the rules read of a run's past, and hands alarms to the recorders.

    An alarm never changes the run. What was recorded before a resume is given to `catch_up`, so
    that rules see the whole run and no alarm is raised twice.
    """

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self._recorders = recorders
        self._bell = Bell()

    def catch_up(
        self, metrics: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]
    ) -> None:
        """The recorded past, as the run folder's reader gives it; it raises nothing again."""
        alarms_over(
            ({n: v for n, v in row.items() if self._kept(n)} for row in metrics), events, self._bell
        )

    def step(self, step: int, stats: Mapping[str, Statistic], event: ClipEvent | None) -> None:
        """A finished step, and the change of the clip range in it."""
        values = {name: stats[name].value() for name in stats if self._kept(name)}
        happened = [] if event is None else [{**event.evidence, "step": step, "kind": event.kind}]
        self._tell(self._bell.step(step, values, happened))

    def evaluated(self, step: int, numbers: Mapping[str, Any]) -> None:
        """An evaluation after `step`; numbers: those of its event in the run folder."""
        self._tell(self._bell.evaluated({**numbers, "step": step, "kind": "evaluated"}))

    def _kept(self, name: str) -> bool:
        return name == "step" or self._bell.reads(name)

    def _tell(self, alarms: Iterable[Alarm]) -> None:
        for alarm in alarms:
            for recorder in self._recorders:
                recorder.alarm(alarm)
