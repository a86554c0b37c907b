"""Every candidate over every step of a run folder, a few steps in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from gspo.errors import DataError
from gspo.replay.candidates import Candidate, own_candidate
from gspo.replay.own import Own
from gspo.replay.record import COLUMNS, RecordedStep, Responses, read_step
from gspo.replay.totals import Outcome, Shares, Totals, outcome, totals
from gspo.settings import ObjectiveSettings

if TYPE_CHECKING:
    from gspo.recorders.reader import Run

#: Buckets with fewer responses say nothing about fairness: the standard error of a share of 0.15
#: is then above 0.06.
FEWEST_IN_BUCKET = 32

#: Evaluated together: tensors of this many float32 fit a core's cache, and the fixed cost of an
#: operation no longer counts.
TOKENS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a candidate would have done. loss: mean over optimizer steps. num_steps: steps for
    which its range is known."""

    candidate: Candidate
    overall: Shares
    buckets: Sequence[Shares]
    loss: float | None
    num_steps: int

    @property
    def length_gap(self) -> float | None:
        """Largest less smallest cut share of the length buckets with enough responses; None where
        fewer than two have."""
        shares = [
            bucket.cut_share
            for bucket in self.buckets
            if bucket.num_responses >= FEWEST_IN_BUCKET and bucket.cut_share is not None
        ]
        return max(shares) - min(shares) if len(shares) > 1 else None


@dataclass(slots=True, kw_only=True)
class Reproduction:
    """How far the run's own objective, replayed, is from what was recorded. loss: largest
    difference of a response's loss, over 1 + its size. cuts: responses whose cut units differ.
    kept_weight: largest difference of a step's `weight/kept_share`. num_responses: compared."""

    loss: float = 0.0
    cuts: int = 0
    kept_weight: float = 0.0
    num_responses: int = 0

    def add(self, step: RecordedStep, done: Outcome, ours: Totals, metrics: dict[str, Any]) -> None:
        """Compare one step."""
        recorded = step.loss.isfinite()
        loss = step.loss[recorded]
        if loss.numel():
            difference = (done.loss.double()[recorded] - loss).abs() / (1 + loss.abs())
            self.loss = max(self.loss or 0.0, float(difference.max()))
        differs = (done.cut_low != step.cut_low) | (done.cut_high != step.cut_high)
        self.cuts += int(differs.sum())
        self.num_responses += step.cut_low.numel()
        theirs, kept = metrics.get("weight/kept_share"), ours.overall().kept_weight
        # An update that was skipped reports no weights, though some responses may have run.
        if theirs is not None and kept is not None and not metrics.get("update/skipped_steps"):
            self.kept_weight = max(self.kept_weight or 0.0, abs(theirs - kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """steps: first and last one read. num_responses: replayed. num_left_out: without log-probs.
    damaged: files that could not be used, and why. own: the run as it was."""

    steps: tuple[int, int]
    num_steps: int
    num_responses: int
    num_left_out: int
    damaged: Sequence[str]
    own: Row
    reproduction: Reproduction
    rows: Sequence[Row]


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    steps: list[int] = field(default_factory=list)
    num_responses: int = 0
    num_left_out: int = 0
    damaged: list[str] = field(default_factory=list)


@torch.inference_mode()
def replay(
    run: Run,
    own: Own,
    candidates: Sequence[Candidate],
    *,
    steps: Sequence[int],
    on_step: Callable[[], None] = lambda: None,
) -> Replay:
    """Replay these steps. on_step: called after each of them.

    Raises DataError when none could be read.
    """
    as_it_was = own_candidate(own)
    everyone = [as_it_was, *(c for c in candidates if c != as_it_was)]
    sums = [Totals.none() for _ in everyone]
    metrics = {row["step"]: row for row in run.metrics()}
    reproduction, reading = Reproduction(), _Reading()
    for together in _portions(_recorded(run, steps, reading, on_step)):
        joined = Responses.join([step.responses for step in together])
        for number, candidate in enumerate(everyone):
            if number and candidate.ranges is None:
                sums[number] += _evaluate(candidate, candidate.objective, joined)[1]
                continue
            for step in together:
                objective = candidate.at(step.step)
                if objective is None:
                    continue
                done, added = _evaluate(candidate, objective, step.responses)
                sums[number] += added
                if number == 0:
                    reproduction.add(step, done, added, metrics.get(step.step, {}))
    damaged = _damage(run, reading)
    if not reading.steps:
        raise DataError(_nothing(run, reading.damaged or damaged))
    own_row, *others = (_row(c, total) for c, total in zip(everyone, sums, strict=True))
    remaining = iter(others)
    return Replay(
        steps=(reading.steps[0], reading.steps[-1]),
        num_steps=len(reading.steps),
        num_responses=reading.num_responses,
        num_left_out=reading.num_left_out,
        damaged=damaged,
        own=own_row,
        reproduction=reproduction,
        rows=[own_row if c == as_it_was else next(remaining) for c in candidates],
    )


def _evaluate(
    candidate: Candidate, objective: ObjectiveSettings, responses: Responses
) -> tuple[Outcome, Totals]:
    done = outcome(candidate, objective, responses)
    return done, totals(candidate, objective, responses, done)


def _portions(steps: Iterator[RecordedStep]) -> Iterator[list[RecordedStep]]:
    """Steps in order, about TOKENS_AT_ONCE at a time."""
    portion: list[RecordedStep] = []
    num_tokens = 0
    for step in steps:
        portion.append(step)
        num_tokens += step.responses.segments.num_tokens
        if num_tokens >= TOKENS_AT_ONCE:
            yield portion
            portion, num_tokens = [], 0
    if portion:
        yield portion


def _recorded(
    run: Run, steps: Sequence[int], reading: _Reading, on_step: Callable[[], None]
) -> Iterator[RecordedStep]:
    """Steps that can be replayed; the others are named in `reading`."""
    for number in steps:
        try:
            read = read_step(number, run.step(number, COLUMNS))
        except DataError as error:
            reading.damaged.append(str(error))
            continue
        finally:
            on_step()
        if isinstance(read, str):
            reading.damaged.append(f"step {number}: {read}")
            continue
        reading.steps.append(number)
        reading.num_responses += read.cut_low.numel()
        reading.num_left_out += read.num_left_out
        yield read


def _row(candidate: Candidate, done: Totals) -> Row:
    return Row(
        candidate=candidate,
        overall=done.overall(),
        buckets=done.buckets(),
        loss=done.loss.value(),
        num_steps=done.num_steps,
    )


def _damage(run: Run, reading: _Reading) -> list[str]:
    """Each file once: what the reader says of it stands before what its refusal said."""
    paths = [str(damage.path) for damage in run.damaged]
    return [f"{damage.path}: {damage.reason}" for damage in run.damaged] + [
        text for text in reading.damaged if not any(path in text for path in paths)
    ]


def _nothing(run: Run, damaged: Sequence[str]) -> str:
    why = f"; the first file that could not be used: {damaged[0]}" if damaged else ""
    known = run.steps()
    has = f"steps {known[0]} to {known[-1]}" if known else "no step yet"
    return f"{run.path} has {has}, and none of those asked for could be replayed{why}"
