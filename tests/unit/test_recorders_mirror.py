"""What a mirror hands to a service, and what a failing service costs: its copy, once said."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime

import pytest
import torch

from gspo.errors import RecipeError
from gspo.recorders import services
from gspo.recorders.mirror import Bins, Entry, Mirror
from gspo.stats import Histogram, Max, Mean
from gspo.types import Alarm

TIME = "2026-01-01T12:00:00.000+00:00"
ALARM = Alarm(3, "reward_collapse", 0.2, 0.4, "One update moved too far.", "lower the rate")


class Kept:
    """A service in memory. broken: what each call raises."""

    def __init__(self, broken: Exception | None = None) -> None:
        self.entries: list[Entry] = []
        self.alarms: list[tuple[Alarm, float]] = []
        self.closed = 0
        self.broken = broken

    def add(self, entries: Sequence[Entry]) -> None:
        if self.broken:
            raise self.broken
        self.entries += entries

    def alarm(self, alarm: Alarm, time_s: float) -> None:
        if self.broken:
            raise self.broken
        self.alarms.append((alarm, time_s))

    def close(self) -> None:
        self.closed += 1
        if self.broken:
            raise self.broken


def mirror(service: Kept) -> tuple[Mirror, list[str]]:
    said: list[str] = []
    return Mirror(lambda: service, said.append), said


def test_it_hands_on_numbers_and_the_occupied_bins():
    service = Kept()
    recorder, said = mirror(service)
    counted = Histogram(torch.tensor([0, 2, 0, 1, 0]), (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0))
    stats = {"a": Mean(3, 4), "none": Mean(0, 0), "nan": Mean(math.nan, 1), "h": counted}
    recorder.step(
        7, {**stats, "empty": Histogram(torch.zeros(1, dtype=torch.int64), (0.0, 1.0))}, []
    )
    (entry,) = service.entries
    assert entry.step == 7
    assert set(entry.numbers) == {"a", "nan"}
    assert entry.numbers["a"] == 0.75
    assert math.isnan(entry.numbers["nan"])
    assert entry.histograms == {"h": Bins([-2.0, -1.0, 1.0, 2.0], [2, 0, 1])}
    assert said == []


def test_a_step_without_numbers_is_no_entry():
    service = Kept()
    recorder, _ = mirror(service)
    recorder.step(7, {"none": Max(None)}, [])
    assert service.entries == []


def test_the_past_comes_as_it_was_recorded():
    service = Kept()
    recorder, _ = mirror(service)
    row = {"step": 2, "time": TIME, "a": 0.5, "b": None, "c": None, "nonfinite": ["c"]}
    recorder.catch_up([row], [{"time": TIME, **{n: getattr(ALARM, n) for n in ALARM.__slots__}}])
    (entry,) = service.entries
    seconds = datetime.fromisoformat(TIME).timestamp()
    assert (entry.step, entry.time_s, entry.numbers["a"]) == (2, seconds, 0.5)
    assert set(entry.numbers) == {"a", "c"}
    assert math.isnan(entry.numbers["c"])
    assert service.alarms == [(ALARM, seconds)]


def test_an_alarm_carries_nothing_that_a_terminal_obeys():
    service = Kept()
    recorder, _ = mirror(service)
    recorder.alarm(Alarm(1, "a\x1b[2J", None, None, "b\u202e\n", "c" * 3000))
    alarm, _ = service.alarms[0]
    assert (alarm.rule, alarm.cause) == ("a␛[2J", "b\\u202e␊")
    assert alarm.advice.endswith("… [1,000 more characters]")


def test_a_service_that_fails_is_told_of_once_and_left_alone():
    service = Kept(OSError(28, "No space left on device"))
    recorder, said = mirror(service)
    for step in (1, 2):
        recorder.step(step, {"a": Mean(1, 1)}, [])
    recorder.alarm(ALARM)
    recorder.close()
    assert said == ["OSError: [Errno 28] No space left on device"]
    assert service.closed == 1


def test_a_service_that_cannot_be_opened_is_told_of_once():
    def cannot() -> Kept:
        raise RuntimeError("\x1b[31mno\nsecond line")

    said: list[str] = []
    recorder = Mirror(cannot, said.append)
    recorder.step(1, {"a": Mean(1, 1)}, [])
    recorder.close()
    assert said == ["RuntimeError: ␛[31mno"]


def test_a_failing_close_is_told():
    service = Kept()
    recorder, said = mirror(service)
    service.broken = ValueError("late")
    recorder.close()
    assert said == ["ValueError: late"]


def test_ctrl_c_is_no_failure_of_the_service():
    service = Kept()
    recorder, said = mirror(service)
    service.add = lambda entries: (_ for _ in ()).throw(KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        recorder.step(1, {"a": Mean(1, 1)}, [])
    assert said == []


def test_a_missing_package_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(services, "find_spec", lambda name: None)
    with pytest.raises(RecipeError, match="pip install 'gspo\\[trackio\\]'"):
        services.require(["trackio"])


def test_a_folder_of_the_name_is_no_package(monkeypatch, tmp_path):
    """W&B itself leaves a folder `wandb` wherever it is used."""
    (tmp_path / "no_such_service").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RecipeError, match="no_such_service is not installed"):
        services.require(["no_such_service"])


def test_nothing_is_needed_where_nothing_is_asked_for(tmp_path):
    services.require([])


def test_no_package_is_imported_unless_it_is_asked_for():
    script = (
        "import sys, gspo.recipes.train, gspo.recorders.services as s; "
        "s.require([]); print(sorted(set(sys.modules) & {'tensorboard', 'wandb', 'trackio'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr
