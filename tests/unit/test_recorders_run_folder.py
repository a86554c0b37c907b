"""What is recorded comes back as it was; a kill or a resume leaves whole files."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from gspo.errors import DataError
from gspo.recorders import jsonl
from gspo.recorders.base import ResponseRow
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from gspo.recorders.schema import EVAL_COLUMNS, RESPONSE_COLUMNS, EvalRow
from gspo.stats import Histogram, Mean, Sum
from gspo.types import Alarm
from tests.recorder_rows import GROUP, row

INFO = {"versions": {"torch": "2.13"}, "seed": 7, "dtype": "float32"}
ALARM = Alarm(2, "clip/never", math.nan, 0.01, "The band is too wide.", "gspo calibrate")


def start(path: Path) -> RunFolder:
    return RunFolder.create(path, info=INFO, recipe="objective: gspo\n")


def test_the_columns_are_those_of_the_rows() -> None:
    assert list(RESPONSE_COLUMNS) == [f.name for f in dataclasses.fields(ResponseRow)]
    assert list(EVAL_COLUMNS) == [f.name for f in dataclasses.fields(EvalRow)]


def test_a_row_worked_by_hand_comes_back(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    untrained = row(
        sample=1,
        text="\x1b[31m\0 中文\n",
        tokens=[],
        reward=None,
        parts={},
        failure="worker killed after 2 s",
        advantage=0.0,
        length=0,
        finish="length",
        minibatch=None,
        engine_logp=[],
        old_logp=None,
        logp=None,
        log_s=None,
        cut_high=0,
        loss=None,
        skipped="no reward",
    )
    folder.step(12, {"reward/mean": Mean(1, 1)}, [row(), untrained])
    folder.close()
    table = open_run(folder.path).step(12)
    assert table.schema.metadata == {b"gspo.format": b"1", b"gspo.step": b"12"}
    back = table.to_pylist(maps_as_pydicts="strict")
    assert back == [dataclasses.asdict(row()), dataclasses.asdict(untrained)]


def test_missing_and_odd_numbers_are_kept_apart(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    folder.step(1, {}, [row(engine_logp=[None, -math.inf], logp=[math.nan, -0.0], loss=math.nan)])
    folder.close()
    (back,) = open_run(folder.path).step(1).to_pylist()
    assert back["engine_logp"] == [None, -math.inf]
    assert math.isnan(back["logp"][0])
    assert math.copysign(1, back["logp"][1]) == -1
    assert math.isnan(back["loss"])


def test_text_that_is_not_utf8_is_written_all_the_same(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    bad = row(text="a\ud800b", prompt="\udfff", parts={"\ud800": 1.0}, failure="\ud83c\udf89")
    folder.step(1, {"a\ud800": Sum(1)}, [bad])
    folder.event("note", step=1, text="a\ud800b")
    folder.close()
    (back,) = open_run(folder.path).step(1).to_pylist()
    assert (back["text"], back["prompt"], back["failure"]) == ("a\ufffdb", "\ufffd", "🎉")
    assert back["parts"] == [("\ufffd", 1.0)]


def test_a_null_where_none_is_allowed_is_an_error_not_a_file(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    broken = row()
    object.__setattr__(broken, "advantage", None)
    with pytest.raises(pa.ArrowInvalid, match="advantage"):
        folder.step(1, {}, [broken])
    folder.close()
    assert list((folder.path / "steps").iterdir()) == []
    assert open_run(folder.path).metrics() == []


def test_every_file_of_a_run(tmp_path: Path) -> None:
    folder = start(tmp_path / "runs" / "add4")
    histogram = Histogram.of(torch.tensor([1e-3, -1e-3, 0.0]))
    folder.evaluation(0, [GROUP], [GROUP])
    folder.step(0, {"eval/pass@1": Mean(37, 100)}, [])
    folder.step(1, {"loss/policy": Mean(math.nan, 2), "log_s/histogram": histogram}, [row()])
    folder.alarm(ALARM)
    folder.event("clip_fixed", step=1, low=3e-4, high=torch.tensor(0.5))
    folder.finished(1)
    folder.close()
    folder.close()
    names = sorted(str(p.relative_to(folder.path)) for p in folder.path.rglob("*") if p.is_file())
    assert names == [
        "alarms.jsonl",
        "eval/000000.parquet",
        "events.jsonl",
        "metrics.jsonl",
        "recipe.yaml",
        "run.json",
        "run.lock",
        "steps/000001.parquet",
    ]
    info = json.loads((folder.path / "run.json").read_text())
    assert {k: info[k] for k in ("format", "name", *INFO)} == {"format": 1, "name": "add4", **INFO}
    for name in ("metrics", "events", "alarms"):
        for line in (folder.path / f"{name}.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=lambda c: pytest.fail(f"{c} is not JSON"))
    run = open_run(folder.path)
    metrics = run.metrics()
    assert [(m["step"], m.get("eval/pass@1")) for m in metrics] == [(0, 0.37), (1, None)]
    assert metrics[1]["loss/policy"] is None
    assert metrics[1]["nonfinite"] == ["loss/policy"]
    assert metrics[1]["log_s/histogram"] == histogram.value()
    (alarm,) = run.alarms()
    assert (alarm["rule"], alarm["value"], alarm["nonfinite"]) == ("clip/never", None, ["value"])
    assert [(e["kind"], e.get("low"), e.get("high")) for e in run.events()] == [
        ("started", None, None),
        ("clip_fixed", 3e-4, 0.5),
        ("finished", None, None),
    ]
    answers = run.evaluation(0).to_pylist()
    assert [(a["greedy"], a["answer"], a["text"], a["reward"]) for a in answers] == [
        (False, "2", "3", 0.0),
        (True, "2", "3", 0.0),
    ]


def test_a_step_is_small(tmp_path: Path) -> None:
    random.seed(0)
    folder = start(tmp_path / "run")

    def noise() -> list[float]:
        return [-random.random() for _ in range(64)]

    rows = [
        row(
            tokens=[random.randrange(1024) for _ in range(64)],
            text=str(noise()[:12]),
            length=64,
            engine_logp=noise(),
            old_logp=noise(),
            logp=noise(),
        )
        for _ in range(32)
    ]
    folder.step(1, {}, rows)
    folder.step(2, {}, rows[:1])
    folder.close()
    sizes = [(folder.path / f"steps/00000{n}.parquet").stat().st_size for n in (1, 2)]
    assert sizes[0] / (32 * 64) < 20
    assert sizes[1] / 64 < 200


def test_a_recorded_step_is_not_overwritten(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    folder.step(1, {}, [row()])
    folder.step(1, {"eval/pass@1": Mean(1, 2)}, [])
    with pytest.raises(DataError, match=r"000001.parquet exists: step 1 was recorded before"):
        folder.step(1, {}, [row()])
    with pytest.raises(DataError, match="may not be named time"):
        folder.step(2, {"time": Sum(1)}, [])
    folder.close()
    assert open_run(folder.path).columns("eval/pass@1") == {"step": [1], "eval/pass@1": [0.5]}


@pytest.mark.parametrize("name", ["run.json", "notes.txt", ".draft.tmp"])
def test_a_folder_with_content_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match=f"holds {name}.*--resume, or choose another name"):
        start(tmp_path)
    left = {p.name for p in tmp_path.iterdir()}
    if name != "run.json":
        assert left == {name}, "no lock file in a folder that is no run"
    else:
        assert left == {name, "run.lock"}
        RunFolder.resume(tmp_path, step=0, info=INFO, recipe="").close()  # the lock was let go


def test_what_a_killed_start_leaves_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("")
    (tmp_path / ".run.json.77.tmp").write_text("{")
    start(tmp_path).close()
    assert list(tmp_path.glob(".*")) == []
    with pytest.raises(DataError, match="a file is in the way"):
        start(tmp_path / "run.json")


def test_resume_removes_what_lies_past_the_step(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    for step in (1, 2, 3, 4):
        folder.step(step, {"reward/mean": Mean(step, 1)}, [row()])
        folder.evaluation(step, [GROUP], [])
        folder.event("checkpoint", step=step)
    folder.alarm(ALARM)
    folder.alarm(dataclasses.replace(ALARM, step=3))
    folder.close()
    with (folder.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 5, "rewa')
    (folder.path / "steps" / ".000005.parquet.9.tmp").write_bytes(b"PAR1half")

    info = {**INFO, "seed": 8}
    again = RunFolder.resume(folder.path, step=2, info=info, recipe="objective: grpo\n")
    again.step(3, {"reward/mean": Mean(30, 1)}, [row()])
    again.close()
    run = open_run(folder.path)
    assert run.columns("reward/mean") == {"step": [1, 2, 3], "reward/mean": [1, 2, 30]}
    assert (run.steps(), run.evals(), len(run.alarms())) == ([1, 2, 3], [1, 2], 1)
    assert sorted(p.name for p in (folder.path / "steps").iterdir())[0] == "000001.parquet"
    assert run.damaged == []
    assert (run.info["seed"], run.recipe_text) == (7, "objective: grpo\n")
    event = run.events()[-1]
    assert [e["kind"] for e in run.events()] == ["started", "checkpoint", "checkpoint", "resume"]
    assert event["removed"] == {"metrics": 3, "events": 2, "alarms": 1, "steps": 2, "eval": 2}
    assert event["changed"] == {"seed": 8, "previous_recipe": "objective: gspo\n"}


def test_a_resume_of_nothing_or_beside_a_live_writer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        RunFolder.resume(tmp_path / "none", step=0, info=INFO, recipe="")
    folder = start(tmp_path / "run")
    folder.step(1, {}, [row()])
    with pytest.raises(DataError, match="is being written by process"):
        RunFolder.resume(folder.path, step=0, info=INFO, recipe="")
    with pytest.raises(DataError, match="is being written by process"):
        start(folder.path)
    folder.close()
    assert open_run(folder.path).steps() == [1]


KILLED = """
import os, sys
from pathlib import Path
from tests.recorder_rows import row
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Sum

def die_at(path, number):
    folder = RunFolder.create(path, info={}, recipe="")
    for step in range(1, 4):
        folder.step(step, {"step/responses": Sum(1)}, [row()])
    left = [number]
    def sync_or_die(descriptor):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), 9)
    os.fsync = sync_or_die
    folder.step(4, {"step/responses": Sum(1)}, [row()])

for number in (1, 2, 3):
    if not os.fork():
        die_at(Path(sys.argv[1]) / str(number), number)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_kill_at_any_point_of_a_step_leaves_what_was_acknowledged(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["-9"] * 3, "each child was meant to be killed"
    assert list((tmp_path / "1" / "steps").glob(".*.tmp")), "the kill was meant to hit a write"
    found = []
    for number in (1, 2, 3):
        run = open_run(tmp_path / str(number))
        assert (run.status, run.damaged) == ("interrupted", [])
        found.append((run.steps(), run.columns()["step"]))
    # before the file is renamed, before its line, after it
    assert found == [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 3, 4], [1, 2, 3]),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
    ]
    for number in (1, 2, 3):
        path = tmp_path / str(number)
        folder = RunFolder.resume(path, step=3, info={}, recipe="")
        folder.step(4, {}, [row()])
        folder.close()
        run = open_run(path)
        assert (run.steps(), run.columns()["step"]) == ([1, 2, 3, 4], [1, 2, 3, 4])
        assert list((path / "steps").glob(".*.tmp")) == []
        assert run.events()[-1]["taken_over_from"]["pid"] > 0


def test_the_page_explains_every_column_and_file(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "run-folder.md").read_text()
    for name in (*RESPONSE_COLUMNS, *EVAL_COLUMNS):
        assert f"`{name}`" in page, name
    folder = start(tmp_path / "run")
    folder.close()
    for path in folder.path.iterdir():
        assert path.name in page, path.name


def test_plain_parquet(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    folder.step(1, {}, [row()])
    folder.close()
    column = pq.ParquetFile(folder.path / "steps/000001.parquet").metadata.row_group(0).column(0)
    assert column.compression == "ZSTD"
    frame = open_run(folder.path).step(1).to_pandas()
    assert frame["engine_logp"][0].tolist() == [-0.5, -0.25]


def test_lines_are_written_one_by_one(tmp_path: Path) -> None:
    folder = start(tmp_path / "run")
    folder.step(1, {}, [])
    rows, reasons = jsonl.read(folder.path / "metrics.jsonl")
    assert ([r["step"] for r in rows], reasons) == ([1], [])
    folder.close()
