"""Runs that live, die, are empty or broken; and the list of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gspo.dashboard import answers, tables
from gspo.dashboard.answers import NotFoundError, RunIndex, open_view
from gspo.dashboard.tables import SCALARS, TEXTS, StepTables
from gspo.errors import DataError
from gspo.recorders.reader import list_runs
from gspo.recorders.run_folder import RunFolder
from tests.browser.recorded import Recording, make_large_run, make_run
from tests.recorder_rows import row


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made"), "a", steps=3, responses=16)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run folder that a test may break."""
    return Path(shutil.copytree(made, tmp_path / "runs" / "a"))


def listed(folder: Path) -> dict[str, dict[str, object]]:
    return {found["name"]: found for found in answers.runs(RunIndex([folder]))["runs"]}


def test_the_list_is_that_of_the_reader(tmp_path: Path) -> None:
    for seed, name in enumerate(("a", "b", "c")):
        make_run(tmp_path, name, steps=2, responses=16, seed=seed, finished=name != "b")
    found = answers.runs(RunIndex([tmp_path]))
    assert found["folder"] == str(tmp_path)
    assert [(r["name"], r["status"], r["step"]) for r in found["runs"]] == [
        ("c", "finished", 2),
        ("b", "interrupted", 2),
        ("a", "finished", 2),
    ]
    for ours, theirs in zip(found["runs"], list_runs(tmp_path), strict=True):
        assert (ours["name"], ours["started"]) == (theirs.name, theirs.started)
        assert (ours["reward"], ours["pass_at_1"]) == (theirs.reward, theirs.pass_at_1)
        assert (ours["objective"], ours["total_steps"]) == ("gspo", 2)
        assert ours["num_alarms"] == 1


def test_a_live_run_shows_each_step_at_once(tmp_path: Path) -> None:
    index = RunIndex([tmp_path])
    assert answers.runs(index)["runs"] == []
    with Recording(tmp_path, "live", responses=16) as recording:
        (found,) = answers.runs(index)["runs"]
        assert (found["status"], found["step"], found["problem"]) == ("running", 0, None)
        tokens = set()
        for step in (1, 2, 3):
            recording.add_step()
            pulse = answers.pulse(index, [found["id"], "unknown"])
            (state,) = pulse["runs"].values()
            assert (state["step"], state["status"]) == (step, "running")
            assert answers.pulse(index, [found["id"]]) == pulse
            tokens |= {(pulse["list"], state["version"])}
            run = index.find(found["id"])
            assert answers.metrics(run, ["reward/mean"], after=step - 1)["step"] == [step]
            assert run.steps() == [*range(1, step + 1)]
        assert len({a for a, _ in tokens}) == len({b for _, b in tokens}) == 3
    assert answers.pulse(index, [found["id"]])["runs"][found["id"]]["status"] == "interrupted"


def test_a_line_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    with Recording(tmp_path, "live", responses=16) as recording:
        recording.add_step()
        view = open_view(recording.path)
        with (recording.path / "metrics.jsonl").open("a") as file:
            file.write('{"step": 2, "rew')
        assert view.metrics().steps == [1]
        assert view.damaged() == []
    (damage,) = view.damaged()
    assert damage["file"] == "metrics.jsonl"
    assert "half-written" in damage["reason"]


def test_a_resume_that_goes_back_is_followed(run: Path) -> None:
    view = open_view(run)
    assert (view.metrics().steps, view.steps()) == ([0, 1, 2, 3], [1, 2, 3])
    RunFolder.resume(run, step=1, info={}, recipe="objective: grpo\n").close()
    assert (view.metrics().steps, view.steps()) == ([0, 1], [1])
    assert view.recipe() == {"objective": "grpo"}
    assert answers.overview(view)["status"] == "interrupted"


def test_a_run_without_a_step_is_empty_and_says_so(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a", info={}, recipe="").close()
    found = listed(tmp_path)["a"]
    assert (found["status"], found["step"], found["reward"]) == ("empty", 0, None)
    assert "no step was recorded" in str(found["problem"])
    answer = answers.overview(open_view(tmp_path / "a"))
    assert (answer["steps"], answer["names"], answer["headline"]["reward"]) == ([], [], None)


def test_an_error_that_stopped_the_run_is_told(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="")
    folder.step(1, {}, [row()])
    folder.event("stopped", step=1, reason="the verifier broke")
    folder.close()
    assert listed(tmp_path)["a"]["problem"] == "the verifier broke"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no run.json"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"format": 2}', "its format is 2"),
        (b" " * (2**22 + 1), "more than"),
    ],
)
def test_a_run_that_cannot_be_read_says_why(run: Path, content: bytes | None, why: str) -> None:
    (run / "run.json").unlink()
    if content is not None:
        (run / "run.json").write_bytes(content)
    found = listed(run.parent)["a"]
    assert found["status"] == "broken"
    assert why in str(found["problem"])
    with pytest.raises(DataError, match="no run folder"):
        open_view(run)
    answers.overview(RunIndex([run.parent]).find(str(found["id"])))


def test_damage_is_named_and_the_rest_is_shown(run: Path) -> None:
    (run / "steps" / "000001.parquet").write_bytes(b"PAR1 half")
    (run / "steps" / "notes.parquet").write_bytes(b"PAR1PAR1")
    (run / "steps" / ".000009.parquet.77.tmp").write_bytes(b"")
    (run / "recipe.yaml").write_text("{")
    with (run / "alarms.jsonl").open("a") as file:
        file.write("nonsense\n")
    view = open_view(run)
    answer = answers.overview(view)
    assert sorted(damage["file"] for damage in answer["damaged"]) == [
        "alarms.jsonl", "recipe.yaml", "steps/000001.parquet", "steps/notes.parquet",
    ]  # fmt: skip
    assert answer["steps"] == [2, 3]
    assert len(answer["alarms"]) == 1
    assert answers.recipe(view, view) == {"text": "{", "differences": []}
    with pytest.raises(DataError, match="steps/000001.parquet is damaged"):
        answers.units(view, 1)
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop_columns(["group"]), "no column 'group'"),
        (lambda table: table.set_column(0, "prompt_id", pa.array(range(16))), "is int64"),
        (
            lambda table: table.set_column(
                table.schema.get_field_index("length"), "length", pa.nulls(16, pa.int32())
            ),
            "has nulls",
        ),
        (
            lambda table: table.set_column(
                0, "prompt_id", pa.array([b"\xff"] * 16).view(pa.string())
            ),
            "damaged",
        ),
    ],
)
def test_a_table_of_another_shape_is_damage(run: Path, change, why: str) -> None:
    path = run / "steps" / "000001.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(DataError, match=why):
        answers.units(open_view(run), 1)


def test_a_table_that_claims_too_much_is_not_opened(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_TABLE_BYTES", 100)
    with pytest.raises(DataError, match="bytes uncompressed"):
        answers.units(open_view(run), 1)


def test_what_was_opened_is_kept_until_it_changes_or_others_need_the_room(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = open_view(run)
    first = view.table(1, SCALARS)
    assert view.table(1, SCALARS) is first
    assert view.table(1, TEXTS) is not first
    shutil.copy(run / "steps" / "000002.parquet", run / "steps" / "000001.parquet")
    assert view.table(1, SCALARS) is not first
    monkeypatch.setattr(tables, "MAX_KEPT_BYTES", 0)
    kept = StepTables()
    assert kept.get(view.files, "000001.parquet", 1, SCALARS) is not kept.get(
        view.files, "000001.parquet", 1, SCALARS
    )


# ----------------------------------------------------------------------------------------- index


def test_folders_of_runs_and_run_folders_may_be_given(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "more", "b", steps=1, responses=16)
    (tmp_path / "more" / "no run").mkdir()
    index = RunIndex([run, tmp_path / "more", run.parent])
    assert sorted(found.name for found in index.runs()) == ["a", "b"]
    assert len({found.id for found in index.runs()}) == 2
    assert index.find(open_view(other).id).name == "b"
    shutil.rmtree(other)
    assert [found.name for found in index.runs()] == ["a"]
    with pytest.raises(NotFoundError):
        index.find("b" * 10)
    with pytest.raises(DataError, match="there is no folder"):
        RunIndex([tmp_path / "nothing"])


def test_the_default_folder_need_not_be_there_yet(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    index = RunIndex([])
    assert answers.runs(index) == {"folder": "runs", "runs": []}
    shutil.copytree(run, tmp_path / "home" / "runs" / "a")
    assert [found.name for found in index.runs()] == ["a"]


def test_an_id_says_nothing_of_the_path(run: Path) -> None:
    (found,) = RunIndex([run.parent]).runs()
    assert len(found.id) == 10
    assert set(found.id) <= set("0123456789abcdef")


def test_thousands_of_steps(tmp_path: Path) -> None:
    path = make_large_run(tmp_path, "large", steps=300, recorded=2, responses=16)
    view = open_view(path)
    assert view.steps() == [*range(1, 301)]
    assert view.metrics().steps == [*range(301)]
    assert view.status() == "finished"
    assert len(answers.units(view, 300)["row"]) == 16
