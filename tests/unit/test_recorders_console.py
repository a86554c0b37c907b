"""One plain line a step off a terminal; a live display on one. Nothing of it on stdout."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

from gspo.recorders.console import ConsoleRecorder, duration
from gspo.stats import Mean, Statistic, Sum
from gspo.types import Alarm
from tests.recorder_rows import row

STATS: dict[str, Statistic] = {
    "reward/mean": Mean(431, 1000),
    "reward/pass_rate": Mean(42, 100),
    "clip/cut_share": Mean(14, 100),
    "clip/cut_low": Mean(8, 100),
    "clip/cut_high": Mean(6, 100),
    "speed/tokens_per_s": Sum(1420.4),
    "time/step_s": Sum(2.0),
    "loss/policy": Mean(1, 1),
}


def plain() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=False, width=40), out


def live(width: int = 100) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=True, width=width, _environ={"TERM": "xterm"}), out


def ticking(*seconds: float) -> Callable[[], float]:
    times = iter(seconds)
    return lambda: next(times)


def test_a_plain_line_worked_by_hand() -> None:
    console, out = plain()
    recorder = ConsoleRecorder(4, console=console, clock=ticking(100.0, 104.0))
    recorder.step(1, STATS, [row()])
    recorder.step(2, {"reward/mean": Mean(0, 0), "clip/cut_share": Mean(0, 0)}, [])
    recorder.step(2, {"eval/pass@1": Mean(5, 8)}, [])
    recorder.step(3, {"loss/policy": Mean(1, 1)}, [])
    recorder.close()
    # step 1 began at 98 s; after step 2 six seconds have gone into two steps
    assert out.getvalue().splitlines() == [
        "step 1/4  reward 0.431  pass 0.42  cut 0.14 (low 0.08, high 0.06)  1,420 tok/s  2 s  "
        "2.0 s elapsed, 6.0 s left",
        "step 2/4  reward -  cut -  6.0 s elapsed, 6.0 s left",
        "step 2  eval pass@1 0.625",
    ]


def test_a_resumed_run_counts_its_own_steps() -> None:
    console, out = plain()
    recorder = ConsoleRecorder(14, console=console, clock=ticking(10.0))
    recorder.step(13, STATS, [])
    assert out.getvalue().endswith("2.0 s elapsed, 2.0 s left\n")


def test_an_alarm_says_what_and_what_to_try_and_obeys_nothing() -> None:
    console, out = plain()
    recorder = ConsoleRecorder(4, console=console)
    recorder.alarm(Alarm(3, "clip/never", 0.001, None, "[red]\x1b[31mWide\nband.", "calibrate"))
    assert out.getvalue() == (
        "alarm at step 3: clip/never 0.001 (threshold -). [red]␛[31mWide␊band. Try: calibrate\n"
    )


def test_nothing_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = ConsoleRecorder(4)
    recorder.step(1, STATS, [])
    recorder.note("cold start [done]")
    recorder.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "cold start [done]" in captured.err
    assert "\x1b" not in captured.err


def test_a_long_task_prints_at_most_ten_plain_lines() -> None:
    console, out = plain()
    recorder = ConsoleRecorder(4, console=console)
    with recorder.progress("cold start", 280) as advance:
        for number in range(280):
            advance(note=f"loss {number}")
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "cold start 28/280  loss 27"
    assert lines[-1] == "cold start 280/280  loss 279"


def seen(out: io.StringIO) -> str:
    """The output without its control sequences."""
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", out.getvalue())


def test_the_live_display_shows_the_step_and_the_latest_alarm() -> None:
    console, out = live()
    recorder = ConsoleRecorder(4, console=console, clock=ticking(2.0))
    with recorder.progress("cold [start]", 10) as advance:
        advance(5, note="loss [1]")
    recorder.note("a line above")
    recorder.step(1, STATS, [row()])
    recorder.alarm(Alarm(1, "clip/never", 0.5, 0.25, "Wide [band]\x1b[31m.", "calibrate"))
    recorder.close()
    recorder.close()
    text = seen(out)
    assert "a line above" in text
    assert "cold [start]" in text
    last = text.split("step ")[-2:]
    assert "1/4" in last[0]
    assert "2.0 s elapsed, 6.0 s left" in last[0]
    assert "cut 0.14 (low 0.08, high 0.06)" in last[0]
    assert "Wide [band]␛[31m. Try: calibrate" in last[1]
    assert "\x1b[31mW" not in out.getvalue()
    assert out.getvalue().rstrip().endswith("\x1b[?25h"), "the cursor is back"


def test_stdout_is_left_alone_while_the_display_runs(capsys: pytest.CaptureFixture[str]) -> None:
    console, out = live()
    recorder = ConsoleRecorder(4, console=console)
    recorder.step(1, STATS, [])
    sys.stdout.write('{"json": 1}\n')
    recorder.close()
    assert capsys.readouterr().out == '{"json": 1}\n'
    assert "json" not in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (3599.6, "1 h 0 min"),
        (7380.0, "2 h 3 min"),
        (float("nan"), "-"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
