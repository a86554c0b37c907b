"""`gspo watch`: the numbers of the run folder, at any width, until q, Ctrl-C or the end."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.cli.watch import follow
from gspo.dashboard.folder import open_view
from gspo.recorders.live_view import LiveView
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Histogram, Mean, Statistic, Sum
from gspo.types import Alarm

RECIPE = """objective: {name: gspo, clip: auto, cut_share: 0.15}
trainer: {steps: 4, minibatches: 4}
rollout: {group: 8}
"""
ALARM = Alarm(2, "reward_collapse", 0.25, 0.5, "One update moved too far.", "lower optimizer.lr")


def stats(reward: float) -> dict[str, Statistic]:
    return {
        "reward/mean": Mean(reward, 1),
        "reward/strict_mean": Mean(reward - 0.125, 1),
        "reward/strict_gap": Mean(0.125, 1),
        "clip/cut_share": Mean(3, 16),
        "clip/cut_low": Mean(1, 16),
        "clip/cut_high": Mean(1, 8),
        "clip/low": Mean(0.003, 1),
        "clip/high": Mean(0.002, 1),
        "clip/cut_share/len_8-15": Mean(1, 4),
        "clip/cut_share/len_16-31": Mean(1, 8),
        "log_s/histogram": Histogram.of(torch.tensor([-0.01, -0.001, 0.0001, 0.001])),
        "gap/log_s_std": Mean(2e-7, 1),
        "gate/open": Mean(1, 1),
        "gate/bias": Mean(0.01, 1),
        "gate/noise": Mean(0.02, 1),
        "time/step_s": Sum(2.0),
        "time/rollout_s": Sum(0.5),
        "time/update_s": Sum(1.5),
        "speed/tokens_per_s": Sum(1234.0),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    """A run of two steps of four; this process writes it."""
    folder = RunFolder.create(tmp_path / "a", info={}, recipe=RECIPE)
    numbers = {"eval/pass@1": 0.5, "eval/pass@2": 0.75, "eval/greedy": 0.625}
    folder.event("evaluated", step=0, num_prompts=8, interval=[0.25, 0.75], **numbers)
    folder.step(1, stats(0.25), [])
    folder.step(2, stats(0.5), [])
    yield folder
    folder.close()


def watched(path: Path, *options: str) -> Any:
    return CliRunner(env={"COLUMNS": "100"}).invoke(build_app(), ["watch", str(path), *options])


def lines(text: str) -> dict[str, str]:
    """Label -> what stands beside it."""
    rows = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return {label.strip(): rest.strip() for label, rest in rows}


def test_the_numbers_are_those_of_the_folder(folder):
    folder.alarm(ALARM)
    result = watched(folder.path)
    assert result.exit_code == 0, result.stderr
    shown = lines(result.stdout)
    assert result.stdout.splitlines()[0].split()[:4] == ["a", "running", "step", "2/4"]
    assert shown["reward"] == "0.5 (first step 0.25)  ▁█"
    assert shown["pass@1"] == "0.500 [0.250, 0.750] after step 0  pass@2 0.750  greedy 0.625"
    assert shown["strict"] == "reward 0.375, training reward 0.125 above"
    assert shown["cut"] == "0.188: low 0.062, high 0.125; wanted 0.150  ▄▄"
    assert shown["range"] == "low 0.003, high 0.002 around ratio 1, measured"
    assert shown["by length"] == "8-15: 25%  16-31: 12%"
    assert shown["engine gap"] == "std 2e-07 nats; gate open (bias 0.01, noise 0.02)"
    assert shown["speed"] == "1,234 tok/s, 2 s a step: rollout 25%, update 75%"
    text = " ".join(result.stdout.split())
    assert "1 alarm" in text
    assert (
        "step 2: reward_collapse 0.25 (threshold 0.5). One update moved too far. "
        "Try: lower optimizer.lr" in text
    )
    assert "log s of step 2, nats" in text
    assert "-0.003 … +0.002" in text


def test_off_a_terminal_it_prints_once_and_ends(folder):
    assert watched(folder.path).stdout == watched(folder.path, "--once").stdout


def test_json(folder):
    report = json.loads(watched(folder.path, "--json").stdout)
    assert (report["step"], report["total_steps"], report["status"]) == (2, 4, "running")
    assert report["headline"]["reward"] == 0.5


def test_a_run_without_a_step_says_so(tmp_path):
    folder = RunFolder.create(tmp_path / "new", info={}, recipe=RECIPE)
    assert "no step was recorded yet" in watched(folder.path).stdout
    folder.close()


def test_no_run_is_an_error_that_says_what_was_wanted(tmp_path):
    result = watched(tmp_path)
    assert result.exit_code == 3
    assert "run.json" in result.stderr


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(folder, width):
    folder.alarm(ALARM)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    console.print(view_of(folder.path))
    assert max(len(line) for line in out.getvalue().splitlines()) <= width


def view_of(path: Path) -> LiveView:
    from gspo.cli.watch import _read

    return _read(open_view(path))


def test_a_hostile_run_moves_no_cursor(tmp_path):
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e[red]x" + "y" * 5000
    folder = RunFolder.create(tmp_path / "a\x1b[31m", info={}, recipe=RECIPE)
    folder.step(1, stats(0.25), [])
    folder.alarm(Alarm(1, hostile, None, None, hostile, hostile))
    with (folder.path / "alarms.jsonl").open("a") as file:
        file.write('{"step": 2, "rule": 3, "value": "\\u001b[2J"}\n')
    folder.close()
    shown = watched(folder.path).stdout
    assert shown.count("␛") >= 4
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "[red]" in shown
    assert "y" * 1000 not in shown.replace("\n", "")


def test_it_follows_until_the_run_ends(folder):
    """Each look for a key is a second; in the first one a step comes, in the second one the end."""
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    seen: list[str] = []

    def second(wait_s: float) -> str:
        seen.append(out.getvalue())
        out.truncate(0)
        if len(seen) == 1:
            folder.step(3, stats(0.75), [])
        else:
            folder.finished(3)
            folder.close()
        return ""

    follow(open_view(folder.path), console, second)
    assert "step 2/4" in seen[0]
    assert "step 3/4" in seen[1]
    assert "finished" in out.getvalue()
    assert len(seen) == 2


def test_q_leaves_while_the_run_goes_on(folder):
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    keys = iter(["x", "Q"])
    follow(open_view(folder.path), console, lambda wait_s: next(keys))
    assert list(keys) == []


@contextlib.contextmanager
def in_a_terminal(path: Path, term: str = "xterm") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, with a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gspo.cli.main", "watch", str(path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": term},
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def until(descriptor: int, text: bytes) -> bytes:
    """What came, up to this text or the end."""
    came = b""
    with contextlib.suppress(OSError):  # the other side has gone
        while text not in came and (part := os.read(descriptor, 4096)):
            came += part
    return came


LEAVE: dict[str, Callable[[subprocess.Popen[bytes], int], object]] = {
    "q": lambda process, terminal: os.write(terminal, b"q"),
    "ctrl-c": lambda process, terminal: process.send_signal(signal.SIGINT),
}


@pytest.mark.parametrize("way", LEAVE)
def test_a_person_leaves_with_exit_code_0(folder, way):
    with in_a_terminal(folder.path) as (process, terminal):
        assert b"2/4" in until(terminal, b"tok/s")
        LEAVE[way](process, terminal)
        rest = until(terminal, b"no such text")
        assert process.wait(timeout=60) == 0, rest


def test_a_dumb_terminal_gets_the_run_once(folder):
    with in_a_terminal(folder.path, term="dumb") as (process, terminal):
        came = until(terminal, b"no such text")
        assert process.wait(timeout=60) == 0
    assert came.count(b"2/4") == 1
    assert b"\x1b" not in came


def test_it_never_loads_torch(folder):
    script = (
        "import sys; from gspo.cli.main import build_app; from typer.testing import CliRunner; "
        f"r = CliRunner().invoke(build_app(), ['watch', {str(folder.path)!r}]); "
        "print(r.exit_code, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["0", "False"], done.stderr
