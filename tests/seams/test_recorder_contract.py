"""What every recorder must do, whatever it does with what it is given."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rich.console import Console

from gspo.recorders.base import Recorder
from gspo.recorders.console import ConsoleRecorder
from gspo.recorders.run_folder import RunFolder
from gspo.recorders.services import SERVICES, mirrors
from gspo.stats import Histogram, Max, Mean, Quantile, Spread, Statistic, Sum
from gspo.types import Alarm
from tests.recorder_rows import row

HOSTILE = "\x1b]8;;x\x1b\\\ud800\u202e\0[red]" + "long " * 1000


def run_folder(tmp_path: Path) -> Recorder:
    return RunFolder.create(tmp_path / "run", info={}, recipe="")


def plain_console(tmp_path: Path) -> Recorder:
    return ConsoleRecorder(9, console=Console(file=io.StringIO(), force_terminal=False))


def live_console(tmp_path: Path) -> Recorder:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    return ConsoleRecorder(9, console=console)


def mirror(name: str) -> Callable[[Path], Recorder]:
    """In front of the real package; a failure there is a failure of the test."""

    def make(tmp_path: Path) -> Recorder:
        pytest.importorskip(name, reason=f"{name} is not installed")
        RunFolder.create(tmp_path / "run", info={}, recipe="").close()
        return mirrors([name], tmp_path / "run", pytest.fail)[0]

    return make


MAKERS = {
    "run folder": run_folder,
    "plain console": plain_console,
    "live console": live_console,
    **{name: mirror(name) for name in SERVICES},
}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS.keys())
def recorder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Recorder:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    make: Callable[[Path], Recorder] = request.param
    return make(tmp_path)


def stats() -> dict[str, Statistic]:
    return {
        "reward/mean": Mean(torch.tensor(3.0), torch.tensor(8)),
        "reward/pass_rate": Mean(0, 0),
        "clip/cut_share": Mean(math.nan, 1),
        "clip/cut_low": Mean(torch.tensor(1), 3),
        "clip/cut_high": Sum(math.inf),
        "speed/tokens_per_s": Sum(torch.tensor(1.5, dtype=torch.bfloat16)),
        "ratio/max": Max(None),
        "log_s/std": Spread(torch.tensor([0.0])),
        "log_s/q50": Quantile(torch.tensor([1.0, 2.0]), 0.5),
        "log_s/histogram": Histogram.of(torch.tensor([0.0, math.nan])),
    }


def test_it_is_a_recorder(recorder: Recorder) -> None:
    assert isinstance(recorder, Recorder)
    recorder.close()


def test_it_takes_a_run(recorder: Recorder) -> None:
    given = stats()
    rows = [row(text=HOSTILE, prompt=HOSTILE, failure=HOSTILE), row(reward=None, logp=None)]
    kept = copy.deepcopy(rows)
    recorder.step(0, {"eval/pass@1": Mean(1, 2)}, [])
    recorder.step(1, given, rows)
    recorder.step(2, {}, [])
    recorder.alarm(Alarm(2, "clip/never", math.nan, None, HOSTILE, HOSTILE))
    recorder.step(3, given, rows)
    assert rows == kept, "a recorder changes nothing"
    recorder.close()
    recorder.close()


def test_it_may_close_before_anything_happened(recorder: Recorder) -> None:
    recorder.close()
