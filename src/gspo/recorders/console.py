"""The terminal: a live display while somebody watches, one plain line a step when nobody does.

Everything goes to stderr unless a console is given, so stdout stays free for --json.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from gspo.recorders.base import ResponseRow
from gspo.recorders.sanitize import visible
from gspo.recorders.wording import duration, number
from gspo.stats import Statistic
from gspo.types import Alarm

REFRESHES_PER_S = 4.0
LINES_A_TASK = 10  # lines a long task prints off a terminal
ALARM_CHARS = 500

#: Metric -> label. The order is that of the line.
SHOWN = {
    "reward/mean": "reward",
    "reward/pass_rate": "pass",
    "clip/cut_share": "cut",
    "clip/cut_low": "low",
    "clip/cut_high": "high",
    "speed/tokens_per_s": "tok/s",
    "time/step_s": "s",
    "eval/pass@1": "eval pass@1",
}


@runtime_checkable
class Advance(Protocol):
    """Moves a progress display on."""

    def __call__(self, amount: int = 1, note: str = "") -> None: ...


class ConsoleRecorder:
    """A recorder that shows. num_steps: of the whole run.

    clock: seconds; for the time left, which counts evaluations and checkpoints in.
    """

    def __init__(
        self,
        num_steps: int,
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or Console(stderr=True)
        self._watched = self._console.is_terminal and not self._console.is_dumb_terminal
        self._num_steps = num_steps
        self._clock = clock
        self._started: tuple[int, float] | None = None  # first step seen, when it began
        self._line = Text()
        self._alarm = Text()
        self._progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", style="cyan", markup=False),
            console=self._console,
            expand=True,
        )
        self._steps: TaskID | None = None
        self._live: Live | None = None

    def step(
        self, step: int, stats: Mapping[str, Statistic], responses: Sequence[ResponseRow]
    ) -> None:
        """One finished step, or with evaluation statistics alone one evaluation."""
        values = {name: stats[name].value() for name in SHOWN if name in stats}
        if "reward/mean" not in values:
            if values:
                self.note(f"step {step}  {_described(values)}")
            return
        times = self._times(step, values.get("time/step_s") or 0.0)
        if not self._watched:
            self._print(Text(f"step {step}/{self._num_steps}  {_described(values)}  {times}"))
            return
        self._line = Text(_described(values))
        self._start_live()
        if self._steps is None:
            self._steps = self._progress.add_task("step", total=self._num_steps, note="")
        self._progress.update(self._steps, completed=step, note=times)

    def alarm(self, alarm: Alarm) -> None:
        """Printed once, and kept in sight on a terminal."""
        evidence = f" {number(alarm.value)} (threshold {number(alarm.threshold)})"
        text = (
            f"alarm at step {alarm.step}: {alarm.rule}{evidence}. {alarm.cause} Try: {alarm.advice}"
        )
        self._alarm = Text(visible(text, max_chars=ALARM_CHARS, one_line=True), style="yellow")
        if self._watched and self._live is not None:
            self._live.refresh()
        else:
            self._print(self._alarm)

    def note(self, text: str) -> None:
        """One line above the display."""
        self._print(Text(visible(text)))

    @contextmanager
    def progress(self, description: str, total: int) -> Iterator[Advance]:
        """Shows how far a long task is: `with recorder.progress("evaluate", 256) as advance:`.

        advance(amount, note) moves it on; the note is a few words such as "loss 0.12".
        """
        if not self._watched:
            yield self._plain_progress(description, total)
            return
        live = self._start_live()
        task = self._progress.add_task(visible(description, one_line=True), total=total, note="")
        live.refresh()

        def advance(amount: int = 1, note: str = "") -> None:
            self._progress.update(task, advance=amount, note=visible(note, one_line=True))

        try:
            yield advance
        finally:
            self._progress.remove_task(task)

    def close(self) -> None:
        """Leave the last state of the display on the terminal. Closing twice is fine."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start_live(self) -> Live:
        if self._live is None:
            self._live = Live(
                get_renderable=self._display,
                console=self._console,
                refresh_per_second=REFRESHES_PER_S,
                redirect_stdout=False,  # stdout may carry --json
            )
            self._live.start()
        return self._live

    def _display(self) -> Group:
        lines = [text for text in (self._line, self._alarm) if text]
        return Group(self._progress.get_renderable(), *lines)

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)

    def _plain_progress(self, description: str, total: int) -> Advance:
        done, printed = 0, 0

        def advance(amount: int = 1, note: str = "") -> None:
            nonlocal done, printed
            done += amount
            if done * LINES_A_TASK // max(total, 1) > printed:
                printed = done * LINES_A_TASK // max(total, 1)
                self.note(f"{description} {done}/{total}  {note}".rstrip())

        return advance

    def _times(self, step: int, step_s: float) -> str:
        now = self._clock()
        if self._started is None:
            self._started = step, now - step_s
        first, began = self._started
        left_s = (now - began) / (step - first + 1) * (self._num_steps - step)
        return f"{duration(now - began)} elapsed, {duration(left_s)} left"


def _described(values: Mapping[str, Any]) -> str:
    texts = {name: number(value) for name, value in values.items()}
    parts = []
    for name, label in SHOWN.items():
        if name not in texts or name in ("clip/cut_low", "clip/cut_high"):
            continue
        if name in ("speed/tokens_per_s", "time/step_s"):
            parts.append(f"{texts[name]} {label}")
        else:
            parts.append(f"{label} {texts[name]}")
        if name == "clip/cut_share" and "clip/cut_low" in texts and "clip/cut_high" in texts:
            parts[-1] += f" (low {texts['clip/cut_low']}, high {texts['clip/cut_high']})"
    return "  ".join(parts)
