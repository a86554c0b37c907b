"""The reader: no torch, no crash, and everything skipped is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gspo.errors import DataError
from gspo.recorders.reader import list_runs, open_run
from gspo.recorders.run_folder import RunFolder
from gspo.recorders.tables import read_table
from gspo.stats import Mean
from tests.recorder_rows import row

READ = """
import sys
from gspo.recorders.reader import list_runs, open_run
heavy = {"torch", "transformers", "rich", "pandas"} & set(sys.modules)
assert not heavy, heavy
assert "pyarrow" not in sys.modules, "pyarrow is loaded before a step is opened"
run = open_run(sys.argv[1])
run.metrics(), run.events(), run.alarms(), run.steps(), run.recipe, run.status
list_runs(run.path.parent)
assert run.step(1).num_rows == 1
assert "torch" not in sys.modules
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "add4"
    writer = RunFolder.create(path, info={"seed": 7}, recipe="objective:\n  name: gspo\nseed: 7\n")
    for step in (1, 2, 3):
        writer.step(step, {"reward/mean": Mean(step, 4)}, [row(group=step)])
    writer.step(2, {"eval/pass@1": Mean(3, 8)}, [])
    writer.close()
    return path


def test_it_never_imports_torch(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_run_read_back(folder: Path) -> None:
    run = open_run(str(folder))
    assert (run.name, run.info["seed"], run.recipe["objective"]) == ("add4", 7, {"name": "gspo"})
    assert run.columns("reward/mean", "eval/pass@1") == {
        "step": [1, 2, 3],
        "reward/mean": [0.25, 0.5, 0.75],
        "eval/pass@1": [None, 0.375, None],
    }
    assert run.step(2, columns=["group", "text"]).to_pylist() == [{"group": 2, "text": "2"}]
    assert [(n, t["group"].to_pylist()) for n, t in run.responses(["group"])] == [
        (1, [1]),
        (2, [2]),
        (3, [3]),
    ]
    assert (run.steps(), run.evals(), run.checkpoints(), run.damaged) == ([1, 2, 3], [], {}, [])


def test_an_evaluation_joins_its_step(folder: Path) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 9, "a": null, "nonfinite": ["a"]}\n')
        file.write('{"step": 9, "b": null, "c": 1, "nonfinite": ["b"]}\n')
    last = open_run(folder).metrics()[-1]
    assert last == {"step": 9, "a": None, "b": None, "c": 1, "nonfinite": ["a", "b"]}


def test_wrong_names_are_answered_with_the_nearest(folder: Path) -> None:
    run = open_run(folder)
    with pytest.raises(DataError, match="no metric 'reward/men'; did you mean 'reward/mean'"):
        run.columns("reward/men")
    with pytest.raises(DataError, match="no column 'advantag'; did you mean 'advantage'"):
        run.step(1, columns=["advantag"])
    with pytest.raises(DataError, match=r"no 000009.parquet in .*steps: this run has 1 to 3"):
        run.step(9)
    with pytest.raises(DataError, match="this run has none yet"):
        run.evaluation(1)
    with pytest.raises(DataError, match=r"there is no folder .*; did you mean 'add4'"):
        open_run(folder.parent / "ad4")


def test_what_is_no_run_is_refused(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("")
    with pytest.raises(
        DataError, match=r"not a run folder: looked for run.json in it, found a.txt"
    ):
        open_run(tmp_path / "notes")
    with pytest.raises(DataError, match="holds no runs"):
        open_run(tmp_path / "nothing" / "x")
    with pytest.raises(DataError, match="there is no folder"):
        list_runs(tmp_path / "none")
    (folder / "run.json").write_text('{"format": 2}')
    with pytest.raises(DataError, match="format 2; this gspo reads 1"):
        open_run(folder)


def test_damage_is_skipped_and_named(folder: Path) -> None:
    steps = folder / "steps"
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 4, "reward/me')
    (folder / "recipe.yaml").write_text("a: [")
    (folder / "run.json").write_text("{")
    whole = (steps / "000001.parquet").read_bytes()
    (steps / "000001.parquet").write_bytes(whole[: len(whole) // 2])
    (steps / "000004.parquet").write_bytes(b"")
    (steps / "extra.parquet").write_bytes(whole)
    flipped = bytearray((steps / "000002.parquet").read_bytes())
    flipped[200] ^= 1
    (steps / "000002.parquet").write_bytes(flipped)

    run = open_run(folder)
    assert (run.info, run.name, run.recipe) == ({}, "add4", {})
    assert [m["step"] for m in run.metrics()] == [1, 2, 3]
    assert run.steps() == [2, 3]
    assert [step for step, _ in run.responses()] == [3]
    with pytest.raises(DataError, match=r"000002.parquet is damaged"):
        run.step(2)
    assert sorted(damage.path.name for damage in run.damaged) == [
        "000001.parquet",
        "000002.parquet",
        "000004.parquet",
        "extra.parquet",
        "metrics.jsonl",
        "recipe.yaml",
        "run.json",
    ]
    assert "half-written last line" in {d.path.name: d.reason for d in run.damaged}["metrics.jsonl"]
    (summary,) = list_runs(folder.parent)
    assert (summary.name, summary.steps, summary.objective) == ("add4", 2, None)


def test_no_changed_byte_of_the_data_goes_unnoticed(folder: Path) -> None:
    path = folder / "steps" / "000001.parquet"
    whole = path.read_bytes()
    table = read_table(path, None)
    data_ends = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # the footer follows
    num_refused = 0
    for position in range(4, data_ends, 23):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        read = read_table(path, None)
        num_refused += isinstance(read, str)
        assert isinstance(read, str) or read.equals(table), position
    assert num_refused > 20


def test_a_line_being_written_is_damage_only_until_it_is_whole(folder: Path) -> None:
    run = open_run(folder)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 4')
        file.flush()
        assert len(run.metrics()) == 3
        assert len(run.damaged) == 1
        file.write(b"}\n")
    assert len(run.metrics()) == 4
    assert run.damaged == []


def test_status_follows_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "run"
    writer = RunFolder.create(path, info={}, recipe="")
    assert open_run(path).status == "running"
    writer.close()
    assert open_run(path).status == "interrupted"
    writer = RunFolder.resume(path, step=0, info={}, recipe="")
    writer.finished(5)
    assert open_run(path).status == "running"
    writer.close()
    assert open_run(path).status == "finished"
    RunFolder.resume(path, step=5, info={}, recipe="").close()
    assert open_run(path).status == "interrupted"


def test_runs_in_a_list(tmp_path: Path, folder: Path) -> None:
    later = RunFolder.create(folder.parent / "later", info={}, recipe="objective: grpo\n")
    (folder.parent / "no_run").mkdir()
    (folder.parent / "newer").mkdir()
    (folder.parent / "newer" / "run.json").write_text('{"format": 2, "started": "1999"}')
    first, second, third = list_runs(folder.parent)
    later.close()
    assert (first.name, first.status, first.steps) == ("later", "running", 0)
    assert (first.objective, first.reward, first.pass_at_1) == ("grpo", None, None)
    assert (second.name, second.status, second.objective) == ("add4", "interrupted", "gspo")
    assert (second.reward, second.pass_at_1) == (0.75, 0.375)
    assert second.started is not None
    assert second.started.startswith("20")
    assert third.name == "newer"


def test_checkpoints_are_folders_with_a_model(folder: Path) -> None:
    for name in ("step-000002/model", "step-000001/model", "step-000003", ".tmp-step-000004/model"):
        os.makedirs(folder / "checkpoints" / name)
    os.makedirs(folder / "checkpoints" / "step-000005.del" / "model")
    base = folder / "checkpoints"
    assert open_run(folder).checkpoints() == {
        1: base / "step-000001",
        2: base / "step-000002",
    }


def test_a_folder_and_a_dead_link_in_place_of_files_are_named(folder: Path) -> None:
    (folder / "steps" / "000003.parquet").unlink()
    (folder / "steps" / "000003.parquet").mkdir()
    (folder / "steps" / "000004.parquet").symlink_to(folder / "gone")
    run = open_run(folder)
    assert [step for step, _ in run.responses(["text"])] == [1, 2]
    assert sorted(d.path.name for d in run.damaged) == ["000003.parquet", "000004.parquet"]


def test_a_step_without_a_column_is_left_out_and_a_wrong_name_is_an_error(folder: Path) -> None:
    import pyarrow.parquet as pq

    path = folder / "steps" / "000002.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["log_s"]), path)
    run = open_run(folder)
    assert [step for step, _ in run.responses(["log_s"])] == [1, 3]
    assert [d.path.name for d in run.damaged] == ["000002.parquet"]
    with pytest.raises(DataError, match="no column 'logs'; did you mean 'log_s'"):
        list(run.responses(["logs"]))
