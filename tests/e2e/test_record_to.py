"""`record.to`: a small run is copied to the real packages; one that fails costs its copy alone."""

from __future__ import annotations

import pytest

from gspo.recorders import services
from gspo.recorders.mirror import Entry, Target
from gspo.recorders.reader import open_run
from gspo.types import Alarm
from tests.unit.test_recorders_services import READERS


class Broken:
    """Takes the first entries, then raises."""

    def __init__(self, target: Target) -> None:
        self.calls = 0

    def add(self, entries: list[Entry]) -> None:
        self.calls += 1
        if self.calls > 1:
            raise RuntimeError("the disk is full")

    def alarm(self, alarm: Alarm, time_s: float) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("name", services.SERVICES)
def test_the_copy_says_what_the_folder_says(gspo, small, monkeypatch, name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert gspo("train", "demo", "name=a", f"record.to=[{name}]", *small).exit_code == 0
    result = gspo("train", "runs/a", "trainer.steps=3", "--resume")
    assert result.exit_code == 0, result.stderr
    run, got = open_run("runs/a"), READERS[name](open_run("runs/a").path)
    recorded: dict[str, dict[int, float]] = {}
    for row in run.metrics():
        for metric, value in row.items():
            if isinstance(value, float):
                recorded.setdefault(metric, {})[row["step"]] = value
    assert sorted(recorded["reward/mean"]) == [1, 2, 3]
    assert sorted(recorded["eval/pass@1"]) == [0, 2, 3]
    assert got.doubled == []
    assert got.numbers.keys() == recorded.keys()
    for metric, values in recorded.items():  # TensorBoard keeps float32
        assert got.numbers[metric] == pytest.approx(values, rel=1e-7), metric
    assert [e for e in run.events() if e["kind"] == "recorder_failed"] == []


def test_a_service_that_fails_is_said_once_and_the_run_goes_on(gspo, small, monkeypatch):
    monkeypatch.setitem(services.SERVICES, "tensorboard", Broken)
    monkeypatch.setattr("gspo.recipes.prepare.require", lambda names: None)
    result = gspo("train", "demo", "name=a", "record.to=[tensorboard]", *small)
    assert result.exit_code == 0, result.stderr
    said = "tensorboard failed (RuntimeError: the disk is full)"
    assert " ".join(result.stderr.split()).count(said) == 1
    run = open_run("runs/a")
    assert run.status == "finished"
    assert run.steps() == [1, 2]
    (event,) = [e for e in run.events() if e["kind"] == "recorder_failed"]
    assert (event["recorder"], event["reason"]) == ("tensorboard", "RuntimeError: the disk is full")


def test_a_package_that_is_missing_stops_before_anything_is_trained(gspo, small, monkeypatch):
    monkeypatch.setattr(services, "find_spec", lambda name: None)
    result = gspo("train", "demo", "record.to=[trackio]", "--dry-run", *small)
    assert result.exit_code == 2
    assert "pip install 'gspo[trackio]'" in result.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [("[tensorbord]", "tensorboard"), ("[wandb,wandb]", "more than once"), ("wandb", "record.to")],
)
def test_a_wrong_name_is_a_recipe_error(gspo, small, given, said):
    result = gspo("train", "demo", f"record.to={given}", "--dry-run", *small)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
