"""The closing picture of a training run: what changed, what the trust region did, what is next.

Plain data in, rich renderables out; without a terminal it prints as plain text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gspo.recorders.chart import Band, LogRatioChart
from gspo.recorders.sanitize import visible
from gspo.settings import PAPER_CLIP

ABSENT = "-"
MAX_SAMPLES = 3
ANSWER_CHARS = 320  # of one answer; a handful of lines at 80 columns
PROMPT_CHARS = 200
BAR_CHARS = 50  # of a share of 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An evaluation. pass_at_1: mean at temperature 1, with its 95 % interval; pass_at_k: by k."""

    num_prompts: int
    pass_at_1: float
    interval: tuple[float, float]
    pass_at_k: Mapping[int, float]
    greedy: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAnswer:
    """One held-out prompt, answered before and after; before is None where there is no before."""

    prompt: str
    expected: str | None
    before: str | None
    after: str
    reward_before: float | None
    reward_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What the picture shows; what is None or empty is left out.

    log_s: {"edges", "counts"} over the run's off-policy minibatches. band: lower and upper bound
    on log s that were used, nats. cut_share: by minibatch, the first one first.
    """

    before: Score | None
    after: Score | None
    samples: Sequence[SampleAnswer]
    log_s: Mapping[str, Sequence[Any]] | None
    band: tuple[float, float] | None
    cut_share: Sequence[float | None]
    run_path: str
    next_command: str


def closing_picture(closing: Closing) -> Group:
    """Everything, top to bottom."""
    parts: list[RenderableType] = []
    if closing.before or closing.after:
        parts += [_heading("Accuracy"), _scores(closing.before, closing.after)]
    if closing.samples:
        parts.append(_heading("Answers to held-out prompts"))
        parts += [sample_picture(sample) for sample in closing.samples[:MAX_SAMPLES]]
    if closing.log_s:
        parts += [_heading("log s of responses (length-normalised log-ratio, nats)")]
        parts.append(
            LogRatioChart(closing.log_s["edges"], closing.log_s["counts"], _bands(closing.band))
        )
    if closing.cut_share:
        parts += [_heading("Share of responses cut, by minibatch"), _cut_bars(closing.cut_share)]
    parts += [_heading("Run"), _next(closing)]
    return Group(*parts)


def _heading(text: str) -> RenderableType:
    return Group(Text(), Rule(Text(text, style="bold"), align="left", style="dim"))


def _scores(before: Score | None, after: Score | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    old, new = _rows(before), _rows(after)
    for name in sorted({*old, *new}, key=_order):
        a, b = old.get(name), new.get(name)
        cells = [_share(a), _share(b)]
        if name == "pass@1":
            cells = [
                cell + _interval(score) for cell, score in zip(cells, (before, after), strict=True)
            ]
        table.add_row(name, *cells, _change(a, b))
    counts = dict.fromkeys(f"{score.num_prompts:,}" for score in (before, after) if score)
    table.caption = f"{' and '.join(counts)} held-out prompts"
    table.caption_justify = "left"
    return table


def _rows(score: Score | None) -> dict[str, float | None]:
    if score is None:
        return {}
    others = {f"pass@{k}": share for k, share in score.pass_at_k.items()}
    return {**others, "pass@1": score.pass_at_1, "greedy": score.greedy}


def _order(name: str) -> float:
    return float(name.removeprefix("pass@")) if name.startswith("pass@") else math.inf


def _share(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def _interval(score: Score | None) -> str:
    return "" if score is None else f"  [{score.interval[0]:.3f}, {score.interval[1]:.3f}]"


def _change(old: float | None, new: float | None) -> Text:
    if old is None or new is None:
        return Text(ABSENT)
    change = round(new - old, 3)
    return Text(f"{change:+.3f}", style="green" if change > 0 else "red" if change < 0 else "")


def sample_picture(sample: SampleAnswer) -> RenderableType:
    """The prompt, and its answers side by side."""
    prompt = Text("\n" + visible(sample.prompt.strip(), max_chars=PROMPT_CHARS), style="bold")
    if sample.expected is not None:
        expected = visible(sample.expected, max_chars=PROMPT_CHARS, one_line=True)
        prompt.append(f"   (expected: {expected})", style="dim")
    table = Table(box=box.ROUNDED, expand=True)
    answers = [("after", sample.after, sample.reward_after)]
    if sample.before is not None:
        answers.insert(0, ("before", sample.before, sample.reward_before))
    for name, _, reward in answers:
        table.add_column(_verdict(name, reward), ratio=1, overflow="fold")
    table.add_row(*(Text(visible(text.strip(), max_chars=ANSWER_CHARS)) for _, text, _ in answers))
    return Group(prompt, table)


def _verdict(name: str, reward: float | None) -> Text:
    if reward is None:
        return Text(f"{name}: not judged")
    return Text(f"{name}: reward {reward:g}", style="green" if reward > 0 else "red")


def _bands(band: tuple[float, float] | None) -> list[Band]:
    paper = Band("paper", math.log1p(-PAPER_CLIP.low), math.log1p(PAPER_CLIP.high))
    return [paper] if band is None else [Band("used", *band), paper]


def _cut_bars(shares: Sequence[float | None]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column()
    for number, share in enumerate(shares, start=1):
        bar = "█" * round(BAR_CHARS * share) if share else ""
        note = "the ratio is 1 here, nothing to cut" if number == 1 and not share else ""
        table.add_row(
            str(number), ABSENT if share is None else f"{share:.1%}", Text(bar or note, style="dim")
        )
    return table


def _next(closing: Closing) -> Group:
    return Group(
        Text.assemble(("run folder  ", "dim"), closing.run_path),
        Text("next", style="dim"),
        Text(_in_lines(closing.next_command), style="bold cyan"),
    )


def _in_lines(command: str) -> str:
    """One setting a line, so that it can be copied at any width.

    >>> print(_in_lines("gspo train own-data a=1 b=2"))
    gspo train own-data \\
      a=1 \\
      b=2
    """
    return re.sub(r" (?=\S+=)", " \\\\\n  ", command)
