"""A copy of a run for another service: TensorBoard, Weights & Biases, trackio.

The run folder is the record; a service gets the same numbers under the same names. A resume writes
the copy anew from the folder, so that no step stands in it twice, and a service that fails costs
its copy, never the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gspo.recorders.base import ResponseRow
from gspo.recorders.jsonl import NONFINITE
from gspo.recorders.sanitize import visible
from gspo.stats import Statistic
from gspo.types import Alarm

NO_METRICS = {"step", "time", NONFINITE}
MAX_CHARS = 2000  # of an alarm's text
ALARM_FIELDS = tuple(field.name for field in fields(Alarm))


@dataclass(frozen=True, slots=True)
class Bins:
    """A histogram from its first bin with a count to its last: the bins left out hold nothing, and
    a service that draws equal steps of x would leave no room for the others."""

    edges: Sequence[float]
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Entry:
    """What was recorded at once. time_s: seconds since 1970. numbers: not finite ones included;
    what had no data is left out."""

    step: int
    time_s: float
    numbers: Mapping[str, float]
    histograms: Mapping[str, Bins]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a copy goes. folder: of the service, inside the run folder. id: the same for all parts
    of a run, and no other run's."""

    folder: Path
    name: str
    id: str
    recipe: Mapping[str, Any]


@runtime_checkable
class Service(Protocol):
    """Holds the copy. May raise anything: `Mirror` stands between it and the run."""

    def add(self, entries: Sequence[Entry]) -> None:
        """Entries in order of their steps."""
        ...

    def alarm(self, alarm: Alarm, time_s: float) -> None:
        """Something to look at; its texts may be shown as they are."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class Mirror:
    """A recorder in front of a service. failed: told once, in words; the service gets nothing from
    then on."""

    def __init__(self, open_service: Callable[[], Service], failed: Callable[[str], None]) -> None:
        self._failed = failed
        self._service: Service | None = None
        self._guarded(lambda: self._open(open_service))

    def catch_up(
        self, metrics: Iterable[Mapping[str, Any]], alarms: Iterable[Mapping[str, Any]]
    ) -> None:
        """The recorded past, as the run folder's reader gives it."""
        entries = [_past_entry(row) for row in metrics]
        past = [(_past_alarm(row), _seconds(row)) for row in alarms]
        if entries:
            self._tell(lambda service: service.add(entries))
        for alarm, time_s in past:
            self._tell(lambda service, a=alarm, t=time_s: service.alarm(a, t))

    def step(
        self, step: int, stats: Mapping[str, Statistic], responses: Sequence[ResponseRow]
    ) -> None:
        """The statistics alone: responses are in the run folder."""
        values = {name: stat.value() for name, stat in stats.items()}
        entry = _entry(step, time.time(), values)
        if entry.numbers or entry.histograms:
            self._tell(lambda service: service.add([entry]))

    def alarm(self, alarm: Alarm) -> None:
        """Something to look at."""
        self._tell(lambda service: service.alarm(_shown(alarm), time.time()))

    def close(self) -> None:
        """Closing twice is fine."""
        service, self._service = self._service, None
        if service is not None:
            self._guarded(service.close)

    def _open(self, open_service: Callable[[], Service]) -> None:
        self._service = open_service()

    def _tell(self, what: Callable[[Service], None]) -> None:
        service = self._service
        if service is not None and not self._guarded(lambda: what(service)):
            self._service = None
            self._guarded(service.close, say=False)  # lets go of files and threads

    def _guarded(self, action: Callable[[], None], *, say: bool = True) -> bool:
        """Whether it went well. Another project's package may raise anything, and no copy is worth
        a run."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  see above
            if say:
                lines = str(error).strip().splitlines() or [""]
                self._failed(f"{type(error).__name__}: {visible(lines[0], max_chars=MAX_CHARS)}")
            return False
        return True


def _entry(step: int, time_s: float, values: Mapping[str, Any]) -> Entry:
    numbers = {n: float(v) for n, v in values.items() if isinstance(v, int | float)}
    histograms = {
        name: bins
        for name, value in values.items()
        if isinstance(value, Mapping) and (bins := _occupied(value))
    }
    return Entry(step, time_s, numbers, histograms)


def _occupied(histogram: Mapping[str, Any]) -> Bins | None:
    counts = histogram["counts"]
    used = [bin for bin, count in enumerate(counts) if count]
    if not used:
        return None
    first, last = used[0], used[-1]
    return Bins(histogram["edges"][first : last + 2], counts[first : last + 1])


def _past_entry(row: Mapping[str, Any]) -> Entry:
    values = {name: value for name, value in row.items() if name not in NO_METRICS}
    values |= dict.fromkeys(row.get(NONFINITE, ()), math.nan)
    return _entry(row["step"], _seconds(row), values)


def _past_alarm(row: Mapping[str, Any]) -> Alarm:
    return _shown(Alarm(**{name: row[name] for name in ALARM_FIELDS}))


def _seconds(row: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(row["time"]).timestamp()


def _shown(alarm: Alarm) -> Alarm:
    """Its texts without anything that a terminal or a page would obey."""
    return Alarm(
        step=alarm.step,
        rule=visible(alarm.rule, max_chars=MAX_CHARS, one_line=True),
        value=alarm.value,
        threshold=alarm.threshold,
        cause=visible(alarm.cause, max_chars=MAX_CHARS, one_line=True),
        advice=visible(alarm.advice, max_chars=MAX_CHARS, one_line=True),
    )
