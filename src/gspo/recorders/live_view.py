"""The essentials of a run on one screen: plain data in, rich renderables out. Never imports torch.

The data are the answers of the dashboard, so that a number is the same in a terminal and on its
page. Texts from a run are made visible before they are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gspo.recorders.chart import Band, LogRatioChart
from gspo.recorders.sanitize import visible
from gspo.recorders.wording import ABSENT, duration, number

BARS = "▁▂▃▄▅▆▇█"
SPARK_CHARS = 32
MAX_ALARMS = 3  # the newest
NAME_CHARS, TEXT_CHARS = 60, 300
PARTS = ("rollout", "judge", "score", "update", "publish", "other")
REWARD = "reward/mean"
BY_LENGTH = "clip/cut_share/len_"
STYLES = {"running": "bold green", "finished": "bold", "interrupted": "bold yellow"}

#: What `LiveView` reads of the statistics.
NAMES = (
    REWARD,
    "reward/strict_mean",
    "reward/strict_gap",
    "clip/cut_share",
    "clip/cut_low",
    "clip/cut_high",
    f"{BY_LENGTH}*",
    "gap/log_s_std",
    "gate/open",
    "gate/bias",
    "gate/noise",
    "length/mean",
    "time/step_s",
    *(f"time/{part}_s" for part in PARTS),
    "speed/tokens_per_s",
    "memory/peak_rss_gib",
)
HISTOGRAM = "log_s/histogram"


@dataclass(frozen=True, slots=True)
class LiveView:
    """overview, metrics, histograms: the dashboard's answers about one run; metrics with the
    columns NAMES. histograms: of HISTOGRAM, None where it was never recorded."""

    overview: Mapping[str, Any]
    metrics: Mapping[str, Any]
    histograms: Mapping[str, Any] | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        yield self._head(width)
        if not self._column(REWARD):
            yield Text("no step was recorded yet")
        else:
            yield self._numbers(width)
        yield from self._alarms()
        for damage in self.overview["damaged"][:MAX_ALARMS]:
            yield Text(_clean(f"skipped {damage['file']}: {damage['reason']}"), style="yellow")
        if self.histograms and self.histograms["counts"]:
            yield self._log_s()

    def _head(self, width: int) -> RenderableType:
        view = self.overview
        step, total, status = view["step"], view["total_steps"], view["status"]
        text = Text(visible(view["name"], max_chars=NAME_CHARS, one_line=True), style="bold cyan")
        text.append("  ").append(status, style=STYLES.get(status, "bold red"))
        text.append(f"  step {step:,}" + (f"/{total:,}" if total else ""), style="default")
        if status == "running" and view["time_left_s"] is not None:
            text.append(f"  {duration(view['time_left_s'])} left", style="dim")
        elif view["elapsed_s"] is not None:
            text.append(f"  {duration(view['elapsed_s'])}", style="dim")
        done = width if not total else round(width * min(step / total, 1.0))
        bar = Text("━" * done, style="green", no_wrap=True).append("─" * (width - done), "dim")
        return Group(text, bar) if total else text

    def _numbers(self, width: int) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        lines = {
            "reward": self._reward(width),
            "pass@1": self._passes(),
            "strict": self._strict(),
            "cut": self._cut(width),
            "range": self._range(),
            "by length": self._by_length(),
            "engine gap": self._gap(),
            "speed": self._speed(),
        }
        for label, line in lines.items():
            if line:
                table.add_row(label, line)
        return table

    def _reward(self, width: int) -> str:
        head = self.overview["headline"]
        said = f"{number(head['reward'])} (first step {number(head['reward_before'])})"
        return f"{said}  {_sparkline(self._column(REWARD), width)}"

    def _passes(self) -> str:
        head = self.overview["headline"]
        now, before = head["pass_at_1"], head["pass_at_1_before"]
        if now is None:
            return ""
        interval = f"[{_share(now['low'])}, {_share(now['high'])}]"
        text = f"{_share(now['value'])} {interval} after step {now['step']}"
        if before is not None:
            text += f" (before {_share(before['value'])})"
        others = {f"pass@{k}": value for k, value in head["pass_at_k"].items()}
        others["greedy"] = head["greedy"]
        return text + "".join(f"  {n} {_share(v)}" for n, v in others.items() if v is not None)

    def _strict(self) -> str:
        reward, gap = self._last("reward/strict_mean"), self._last("reward/strict_gap")
        return "" if reward is None else f"reward {number(reward)}, training reward {_above(gap)}"

    def _cut(self, width: int) -> str:
        share = self._last("clip/cut_share")
        if share is None:
            return ""
        low, high = self._last("clip/cut_low"), self._last("clip/cut_high")
        wanted = self.overview["cut_share_wanted"]
        text = f"{_share(share)}: low {_share(low)}, high {_share(high)}"
        text += "" if wanted is None else f"; wanted {_share(wanted)}"
        return f"{text}  {_sparkline(self._column('clip/cut_share'), width)}"

    def _range(self) -> str:
        band = self.overview["band"]
        if band is None:
            return ""
        low, high = number(band["low"]), number(band["high"])
        auto = ", measured" if self.overview["cut_share_wanted"] is not None else ""
        forms = {
            "range": f"low {low}, high {high} around ratio 1{auto}",
            "length_fair": f"low {low}, high {high} nats over √length{auto}",
            "log": f"low {low}, high {high} nats",
        }
        return forms[band["form"]]

    def _by_length(self) -> str:
        buckets = self.overview["buckets"]
        shares = [(bucket, self._last(BY_LENGTH + bucket)) for bucket in buckets]
        return "  ".join(f"{visible(b)}: {v:.0%}" for b, v in shares if v is not None)

    def _gap(self) -> str:
        gap, is_open = self._last("gap/log_s_std"), self._last("gate/open")
        text = "" if gap is None else f"std {number(gap)} nats"
        if is_open is None:
            return text
        said = "gate open" if is_open else "gate closed: scored twice"
        bias, noise = self._last("gate/bias"), self._last("gate/noise")
        evidence = [
            f"{name} {number(value)}"
            for name, value in (("bias", bias), ("noise", noise))
            if value is not None
        ]
        return "; ".join([part for part in (text, said) if part]) + (
            f" ({', '.join(evidence)})" if evidence else ""
        )

    def _speed(self) -> str:
        step_s = self._last("time/step_s")
        if not step_s:
            return ""
        times = [(part, self._last(f"time/{part}_s")) for part in PARTS]
        shares = ", ".join(f"{part} {t / step_s:.0%}" for part, t in times if t is not None)
        text = (
            f"{number(self._last('speed/tokens_per_s'))} tok/s, {number(step_s)} s a step: {shares}"
        )
        memory = self._last("memory/peak_rss_gib")
        return text if memory is None else f"{text}; {number(memory)} GiB"

    def _alarms(self) -> list[RenderableType]:
        alarms = self.overview["alarms"]
        if not alarms:
            return []
        said = f"{len(alarms)} alarm{'s' if len(alarms) > 1 else ''}"
        more = f", the newest {MAX_ALARMS}" if len(alarms) > MAX_ALARMS else ""
        return [
            Rule(Text(said + more, style="bold yellow"), align="left", style="yellow"),
            *(_alarm(alarm) for alarm in reversed(alarms[-MAX_ALARMS:])),
        ]

    def _log_s(self) -> RenderableType:
        found = self.histograms or {}
        step, band = found["step"][-1], self._band_of_log_s()
        chart = LogRatioChart(found["edges"], found["counts"][-1], [band] if band else [])
        title = Text(f"log s of step {step}, nats", style="bold")
        return Group(Rule(title, align="left", style="dim"), chart)

    def _band_of_log_s(self) -> Band | None:
        """In nats; a length-fair band at the step's mean length."""
        band = self.overview["band"]
        if band is None:
            return None
        low, high = band["low"], band["high"]
        if band["form"] == "log":
            return Band("band", -low, high)
        if band["form"] == "range":
            return Band("band", math.log1p(-low) if low < 1 else -math.inf, math.log1p(high))
        root = math.sqrt(self._last("length/mean") or 1.0)
        return Band("mean", -low / root, high / root)

    def _column(self, name: str) -> list[float]:
        """Its values, without the steps that have none."""
        return [v for v in self.metrics["columns"].get(name, ()) if v is not None]

    def _last(self, name: str) -> float | None:
        """Its value in the last step that was trained; None where that step has none."""
        columns = self.metrics["columns"]
        trained = [i for i, v in enumerate(columns.get(REWARD, ())) if v is not None]
        return columns[name][trained[-1]] if trained and name in columns else None


def _alarm(alarm: Mapping[str, Any]) -> Text:
    value, threshold = (_figure(alarm.get(name)) for name in ("value", "threshold"))
    text = Text(_clean(f"step {alarm['step']}: {alarm.get('rule')}"), style="yellow")
    text.append(f" {value} (threshold {threshold}). ", style="default")
    text.append(f"{_clean(alarm.get('cause'))} ", style="default")
    return text.append(f"Try: {_clean(alarm.get('advice'))}", style="bold")


def _figure(value: object) -> str:
    """A damaged file may hold anything where a number belongs."""
    return number(value) if isinstance(value, int | float) else ABSENT


def _share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def _clean(text: object) -> str:
    return visible(str(text), max_chars=TEXT_CHARS, one_line=True)


def _above(gap: float | None) -> str:
    if gap is None:
        return ABSENT
    return f"{number(abs(gap))} {'above' if gap >= 0 else 'below'}"


def _sparkline(values: Sequence[float], width: int) -> str:
    """Means of equal parts of the run, from its lowest to its highest; level is a row of middles.

    >>> _sparkline([0.0, 1.0, 2.0, 7.0], 80)
    '▁▂▃█'
    """
    num_chars = min(SPARK_CHARS, max(width // 3, 1), len(values))
    if not num_chars:
        return ""
    cuts = [len(values) * part // num_chars for part in range(num_chars + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, spread = min(means), max(means) - min(means)
    if not spread:
        return BARS[len(BARS) // 2 - 1] * num_chars
    return "".join(BARS[round((mean - low) / spread * (len(BARS) - 1))] for mean in means)
