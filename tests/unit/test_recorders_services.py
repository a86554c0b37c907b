"""The real packages: what was recorded is read back from what they wrote, in the run folder and
without a network."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from gspo.recorders.mirror import Mirror
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from gspo.recorders.services import SERVICES, mirrors
from gspo.stats import Histogram, Mean, Statistic
from gspo.types import Alarm

EDGES = (-0.5, -0.25, 0.25, 0.5, 1.0)
ALARM = Alarm(2, "reward_collapse", 0.25, 0.5, "One <b>update</b> moved too far.", "lower the rate")


def stats(step: int) -> dict[str, Statistic]:
    return {
        "reward/mean": Mean(step, 4),
        "clip/cut_share/len_16-31": Mean(1, 8),
        "loss/policy": Mean(math.nan, 1),
        "reward/strict_mean": Mean(0, 0),
        "log_s/histogram": Histogram(torch.tensor([0, 3, step, 0]), EDGES),
    }


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its name; a connection to another machine would fail the test."""
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"), address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "add"


def opened(service: str, path: Path) -> Mirror:
    return mirrors([service], path, lambda name, reason: pytest.fail(f"{name}: {reason}"))[0]


def record(service: str, path: Path, steps: range, folder: RunFolder) -> None:
    """As the session does it: the folder first, then the copy."""
    mirror = opened(service, path)
    for step in steps:
        folder.step(step, stats(step), [])
        mirror.step(step, stats(step), [])
        if step == 2:
            folder.alarm(ALARM)
            mirror.alarm(ALARM)
    last = {"eval/pass@1": Mean(1, 2)}
    folder.step(steps[-1], last, [])
    mirror.step(steps[-1], last, [])
    mirror.close()
    folder.close()


def test_what_was_recorded_can_be_read_back(service, path):
    folder = RunFolder.create(path, info={}, recipe="objective: {name: gspo}\n")
    record(service, path, range(1, 4), folder)
    got = READERS[service](path)
    assert got.numbers["reward/mean"] == {1: 0.25, 2: 0.5, 3: 0.75}
    assert got.numbers["clip/cut_share/len_16-31"] == {1: 0.125, 2: 0.125, 3: 0.125}
    assert got.numbers["eval/pass@1"] == {3: 0.5}
    assert all(math.isnan(float(v)) for v in got.numbers["loss/policy"].values())
    assert len(got.numbers["loss/policy"]) == 3
    assert "reward/strict_mean" not in got.numbers
    assert got.histograms["log_s/histogram"][2] == ([-0.25, 0.25, 0.5], [3, 2])
    assert sorted(got.histograms["log_s/histogram"]) == [1, 2, 3]
    ((title, text),) = got.alarms
    assert "reward_collapse" in title
    assert "One <b>update</b> moved too far." in text
    assert "lower the rate" in text
    assert {p.name for p in path.iterdir()} >= {service}


def test_a_resume_goes_on_without_doubling_a_step(service, path):
    """Steps 3 and 4 were recorded after the checkpoint that the run goes on from."""
    record(service, path, range(1, 5), RunFolder.create(path, info={}, recipe=""))
    folder = RunFolder.resume(path, step=2, info={}, recipe="")
    record(service, path, range(3, 4), folder)
    got = READERS[service](path)
    assert got.numbers["reward/mean"] == {1: 0.25, 2: 0.5, 3: 0.75}
    assert got.doubled == []
    assert got.numbers["eval/pass@1"] == {3: 0.5}
    assert sorted(got.histograms["log_s/histogram"]) == [1, 2, 3]
    assert len(got.alarms) == 1
    recorded = {row["step"]: row["reward/mean"] for row in open_run(path).metrics()}
    assert got.numbers["reward/mean"] == recorded


class Read:
    """What a service wrote: values by name and step, alarms as title and text."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[int, Any]] = {}
        self.histograms: dict[str, dict[int, tuple[list[float], list[int]]]] = {}
        self.alarms: list[tuple[str, str]] = []
        self.doubled: list[tuple[str, int]] = []

    def put(self, name: str, step: int, value: Any) -> None:
        is_histogram = isinstance(value, tuple)
        steps = (self.histograms if is_histogram else self.numbers).setdefault(name, {})
        if step in steps:
            self.doubled.append((name, step))
        steps[step] = value


def read_tensorboard(path: Path) -> Read:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    everything = {"scalars": 0, "histograms": 0, "tensors": 0}
    events = EventAccumulator(str(path / "tensorboard"), size_guidance=everything)
    events.Reload()
    got = Read()
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            got.put(tag, event.step, event.value)
    for tag in events.Tags()["histograms"]:
        for event in events.Histograms(tag):
            value = event.histogram_value
            got.put(tag, event.step, ([value.min, *value.bucket_limit], list(value.bucket)))
    for tag in events.Tags()["tensors"]:
        for event in events.Tensors(tag):
            got.alarms.append((tag, make_ndarray(event.tensor_proto).item().decode()))
    return got


def wandb_records(path: Path) -> list[Any]:
    """The records of an offline run: a log in blocks of 32 KiB, as LevelDB writes it, after a
    header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole, records = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = Record()
            record.ParseFromString(whole)
            records.append(record)
            whole = b""
    return records


def read_wandb(path: Path) -> Read:
    got = Read()
    for file in sorted((path / "wandb").glob("offline-run-*/run-*.wandb")):
        for record in wandb_records(file):
            if record.HasField("alert"):
                got.alarms.append((record.alert.title, record.alert.text))
            if not record.HasField("history"):
                continue
            row: dict[str, dict[str, Any]] = {}
            for item in record.history.item:  # a histogram has one item a part
                name, *part = item.nested_key
                row.setdefault(name, {})["".join(part)] = json.loads(item.value_json)
            for name, parts in row.items():
                value = (parts["bins"], parts["values"]) if "bins" in parts else parts[""]
                if not name.startswith("_"):
                    got.put(name, record.history.step.num, value)
    return got


def read_trackio(path: Path) -> Read:
    from trackio.utils import deserialize_values

    got = Read()
    with sqlite3.connect(path / "trackio" / "gspo.db") as database:
        for step, text in database.execute("SELECT step, metrics FROM metrics ORDER BY id"):
            for name, value in deserialize_values(json.loads(text)).items():
                bins = (value["bins"], value["values"]) if isinstance(value, dict) else value
                got.put(name, step, bins)
        got.alarms = database.execute("SELECT title, text FROM alerts").fetchall()
    database.close()
    return got


READERS = {"tensorboard": read_tensorboard, "wandb": read_wandb, "trackio": read_trackio}


def test_an_open_tensorboard_forgets_what_a_resume_removed(path):
    """It has read the old file; the new one says so from its first event on."""
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    record("tensorboard", path, range(1, 5), RunFolder.create(path, info={}, recipe=""))
    (old,) = (path / "tensorboard").iterdir()
    kept = old.read_bytes()
    folder = RunFolder.resume(path, step=2, info={}, recipe="")
    record("tensorboard", path, range(3, 4), folder)
    old.write_bytes(kept)
    assert read_tensorboard(path).numbers["reward/mean"] == {1: 0.25, 2: 0.5, 3: 0.75}


def test_a_disk_that_is_full_stops_the_copy_and_says_so(path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    RunFolder.create(path, info={}, recipe="").close()
    said: list[tuple[str, str]] = []
    (mirror,) = mirrors(["tensorboard"], path, lambda *words: said.append(words))
    writer = mirror._service._writer  # type: ignore[union-attr]
    writer._writer = Path("/dev/full").open("wb")  # noqa: SIM115 - closed by the mirror
    for step in (1, 2):
        mirror.step(step, stats(step), [])
    mirror.close()
    assert said == [("tensorboard", "OSError: [Errno 28] No space left on device")]


@pytest.mark.parametrize(
    ("environment", "reason"),
    [({"WANDB_MODE": "online"}, "there is no key"), ({"WANDB_MODE": "onlin"}, "wanted one of")],
)
def test_wandb_never_asks_for_a_login(path, monkeypatch, environment, reason):
    pytest.importorskip("wandb", reason="wandb is not installed")
    for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(path / "none"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    RunFolder.create(path, info={}, recipe="").close()
    said: list[tuple[str, str]] = []
    mirrors(["wandb"], path, lambda *words: said.append(words))
    ((name, text),) = said
    assert name == "wandb"
    assert reason in text
    assert not (path / "wandb").exists()


def test_wandb_starts_again_where_its_process_has_ended(path):
    """A second run in one process, after the package's own process was killed or went away."""
    pytest.importorskip("wandb", reason="wandb is not installed")
    RunFolder.create(path, info={}, recipe="").close()
    said: list[Any] = []
    for _ in range(2):
        for one in mirrors(["wandb"], path, lambda *words: said.append(words)):
            one.close()
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                text = status.read_text()
                if "wandb-core" in text and f"PPid:\t{os.getpid()}\n" in text:
                    os.kill(int(status.parent.name), signal.SIGKILL)
    assert said == []
