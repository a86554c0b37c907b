"""Checkpoints are whole or absent."""

import json
from pathlib import Path

import pytest

from gspo.errors import DataError
from gspo.trainer.checkpoint import MANIFEST, CheckpointStore, fault
from gspo.trainer.state import TrainState


def write_model(draft: Path) -> None:
    (draft / "model").mkdir()
    (draft / "model" / "weights").write_bytes(b"12345")


def refuse_warning(text: str) -> None:
    raise AssertionError(text)


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints", keep=2)


def save(store, *steps):
    return [
        store.save(TrainState(seed=7, step=step, cursor=step * 4), write_model) for step in steps
    ]


def test_a_saved_step_comes_back(store):
    save(store, 3)
    latest = store.latest(refuse_warning)
    assert (latest.step, latest.state()) == (3, TrainState(seed=7, step=3, cursor=12))
    assert (latest.model / "weights").read_bytes() == b"12345"


def test_start_and_the_newest_two_are_kept(store):
    save(store, 0, 1, 2, 3)
    assert [c.step for c in store.list()] == [0, 2, 3]
    assert sorted(p.name for p in store.list()[0].folder.parent.iterdir()) == [
        "step-000000",
        "step-000002",
        "step-000003",
    ]


def break_one_byte(folder):
    (folder / "model" / "weights").write_bytes(b"12346")


def truncate(folder):
    (folder / "model" / "weights").write_bytes(b"1234")


def delete_a_file(folder):
    (folder / "model" / "weights").unlink()


def no_manifest(folder):
    (folder / MANIFEST).unlink()


def half_a_manifest(folder):
    (folder / MANIFEST).write_text('{"files": ')


def manifest_of_another_kind(folder):
    (folder / MANIFEST).write_text("[]")


@pytest.mark.parametrize(
    "harm",
    [
        break_one_byte,
        truncate,
        delete_a_file,
        no_manifest,
        half_a_manifest,
        manifest_of_another_kind,
    ],
)
def test_a_broken_checkpoint_is_left_out_and_named(store, harm):
    older, newer = save(store, 1, 2)
    harm(newer.folder)
    warnings = []
    assert fault(newer.folder) is not None
    assert store.latest(warnings.append).step == older.step
    if harm is not no_manifest:
        assert "step-000002" in warnings[0]


def test_only_broken_ones_never_mean_a_start_from_scratch(store):
    (only,) = save(store, 1)
    truncate(only.folder)
    with pytest.raises(DataError, match="none is whole"):
        store.latest(lambda text: None)
    assert CheckpointStore(only.folder.parent / "empty", keep=1).latest(refuse_warning) is None


def test_a_failed_write_leaves_nothing(store, tmp_path):
    save(store, 1)

    def fail(draft: Path) -> None:
        write_model(draft)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.save(TrainState(seed=7, step=2), fail)
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-000001"]


def test_a_whole_step_is_not_written_again_and_a_broken_one_is(store):
    (first,) = save(store, 1)
    stamp = (first.folder / MANIFEST).stat().st_mtime_ns
    save(store, 1)
    assert (first.folder / MANIFEST).stat().st_mtime_ns == stamp
    truncate(first.folder)
    save(store, 1)
    assert fault(first.folder) is None


def test_state_refuses_what_it_does_not_know():
    text = json.dumps({"seed": 1, "stepp": 2, "verdicts": []})
    with pytest.raises(DataError, match=r"state\.json is not a training state"):
        TrainState.from_json(text, "state.json")
    state = TrainState(seed=1, step=2, clip={"low": 0.1})
    assert TrainState.from_json(state.to_json(), "here") == state
