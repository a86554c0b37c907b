"""The range that a run's responses ask for, how sure it is, and whether length matters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.calibrate.samples import Samples, samples_of_records, samples_of_run
from gspo.diagnostics.bootstrap import group_draws, interval, quantile_replicates
from gspo.diagnostics.calibration import (
    CEILING,
    MIN_RESPONSES,
    Calibration,
    fit_range,
    is_provisional,
    noise_floor,
)
from gspo.diagnostics.exponent import LengthLaw, fit_length_law
from gspo.diagnostics.lengths import present_buckets
from gspo.errors import DataError
from gspo.recorders.reader import Run, open_run
from gspo.settings import ClipRange, LengthFairClip, SequenceClip

#: Fewer resampled groups tell nothing about the spread between groups.
MIN_GROUPS = 32
NUM_SPANS = 4  # parts of the run whose ranges stand beside one another
MIN_SPAN_RESPONSES = 64  # of each sign: standard error of a share of 0.15: 0.045

Interval = tuple[float, float]
Side = Literal["low", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFit:
    """One length bucket: its share of responses that the fitted ranges cut, and that lie outside
    the fixed one whatever their sign. spread: standard deviation; None for one response."""

    length: str
    count: int
    mean: float
    mean_positive: float | None
    mean_negative: float | None
    spread: float | None
    cut_share: float
    cut_share_length_fair: float
    outside_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanFit:
    """The range of one part of the run alone; None where it has too few responses."""

    first_step: int
    last_step: int
    low: float | None
    high: float | None
    cut_in_run: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipFit:
    """What `fit_clip_range` found. interval: 95 %, over groups. length_fair: the other form, for
    the same wanted share. cut_in_run: share that the run's own clip cut. notes: what to know
    before using it."""

    fixed: Calibration
    interval: Mapping[Side, Interval]
    length_fair: LengthFairClip
    law: LengthLaw
    buckets: tuple[BucketFit, ...]
    spans: tuple[SpanFit, ...]
    cut_share: float
    cut_in_run: float
    num_responses: int
    num_groups: int
    num_steps: int
    notes: tuple[str, ...]
    samples: Samples

    @property
    def low(self) -> float:
        """Distance below ratio 1."""
        return self.fixed.low

    @property
    def high(self) -> float:
        """Distance above ratio 1."""
        return self.fixed.high

    @property
    def recommend(self) -> Literal["fixed", "length_fair"]:
        """Which of the two forms to train with."""
        return "fixed" if self.law.against_length_fair else "length_fair"

    @property
    def clip(self) -> SequenceClip:
        """The recommended range."""
        return self.length_fair if self.recommend == "length_fair" else self.fixed.clip


def fit_clip_range(run_or_records: Any, cut_share: float = 0.15) -> ClipFit:
    """The clip range that would have cut `cut_share` of these responses.

    run_or_records: a run folder, an open run, or rows with log_s, advantage, length and where
    there are any group, step, minibatch (mappings, or a table with these columns).

    Raises:
        DataError: no run folder, or fewer than 256 responses of either sign of the advantage, or
            fewer than 32 groups, off-policy.
        RecipeError: cut_share is not above 0 and below 0.5.
    """
    if isinstance(run_or_records, str | Path):
        run_or_records = open_run(run_or_records)
    if not isinstance(run_or_records, Run):
        return fit_samples(samples_of_records(run_or_records), cut_share)
    samples = samples_of_run(run_or_records)
    return fit_samples(samples, cut_share, _notes_on(run_or_records))


def fit_samples(samples: Samples, cut_share: float, notes: tuple[str, ...] = ()) -> ClipFit:
    """As `fit_clip_range`, of samples. notes: what is known of the run."""
    fixed = _fit(samples, cut_share, MIN_RESPONSES)
    if fixed is None or samples.num_groups < MIN_GROUPS:
        raise _too_few(samples, notes)
    draws = group_draws(samples.num_groups)
    length_fair = _length_fair(samples, cut_share)
    return ClipFit(
        fixed=fixed,
        interval={
            "high": _interval(samples, samples.advantage > 0, 1 - cut_share, draws, sign=1),
            "low": _interval(samples, samples.advantage < 0, cut_share, draws, sign=-1),
        },
        length_fair=length_fair,
        law=fit_length_law(samples.log_s, samples.advantage, samples.length, samples.group, draws),
        buckets=_buckets(samples, fixed.clip, length_fair),
        spans=_spans(samples, cut_share),
        cut_share=cut_share,
        cut_in_run=_share(samples.cut),
        num_responses=samples.log_s.numel(),
        num_groups=samples.num_groups,
        num_steps=samples.step.unique().numel(),
        notes=(*notes, *_notes_on_fit(fixed)),
        samples=samples,
    )


def _fit(samples: Samples, cut_share: float, min_responses: int) -> Calibration | None:
    return fit_range(
        samples.log_s,
        samples.advantage,
        floor=noise_floor(),
        cut_share=cut_share,
        min_responses=min_responses,
    )


def _interval(
    samples: Samples, rows: Bool[Tensor, "S"], q: float, draws: Int[Tensor, "R P"], sign: int
) -> Interval:
    """Of a side's distance from ratio 1, between floor and ceiling as the distance itself."""
    group = samples.group[rows]
    replicates = quantile_replicates(samples.log_s[rows], group, q, draws)
    ends = sorted(sign * math.expm1(end) for end in interval(replicates, group.unique().numel()))
    low, high = (min(max(end, noise_floor()), CEILING) for end in ends)
    return low, high


def _length_fair(samples: Samples, cut_share: float) -> LengthFairClip:
    """The quantiles of log s x sqrt(L), held between floor and ceiling at the mean length."""
    root = samples.length.double().sqrt()
    scaled = samples.log_s * root
    floor, ceiling = (float(root.mean()) * bound for bound in (noise_floor(), CEILING))
    high = float(scaled[samples.advantage > 0].quantile(1 - cut_share))
    low = -float(scaled[samples.advantage < 0].quantile(cut_share))
    return LengthFairClip(low=min(max(low, floor), ceiling), high=min(max(high, floor), ceiling))


def cut_by(samples: Samples, clip: SequenceClip) -> Bool[Tensor, "S"]:
    """Which of these responses a range would cut."""
    low, high = clip.band(samples.length)
    upper = (samples.advantage > 0) & (samples.log_s > high)
    return upper | ((samples.advantage < 0) & (samples.log_s < low))


def _buckets(
    samples: Samples, fixed: ClipRange, length_fair: LengthFairClip
) -> tuple[BucketFit, ...]:
    low, high = fixed.band(samples.length)
    outside = (samples.log_s < low) | (samples.log_s > high)
    cut, cut_fair = cut_by(samples, fixed), cut_by(samples, length_fair)
    return tuple(
        BucketFit(
            length=name,
            count=int(rows.sum()),
            mean=float(samples.log_s[rows].mean()),
            mean_positive=_mean(samples.log_s[rows & (samples.advantage > 0)]),
            mean_negative=_mean(samples.log_s[rows & (samples.advantage < 0)]),
            spread=float(samples.log_s[rows].std()) if int(rows.sum()) > 1 else None,
            cut_share=_share(cut[rows]),
            cut_share_length_fair=_share(cut_fair[rows]),
            outside_share=_share(outside[rows]),
        )
        for name, rows in present_buckets(samples.length).items()
    )


def _mean(values: Float[Tensor, "R"]) -> float | None:
    return float(values.mean()) if values.numel() else None


def _share(rows: Bool[Tensor, "R"]) -> float:
    return float(rows.double().mean())


def _spans(samples: Samples, cut_share: float) -> tuple[SpanFit, ...]:
    """The run in parts of equally many steps: the range moves with reward and learning rate."""
    steps = samples.step.unique()
    spans: list[SpanFit] = []
    for part in steps.tensor_split(min(NUM_SPANS, steps.numel())):
        first, last = int(part[0]), int(part[-1])
        inside = samples.where((samples.step >= first) & (samples.step <= last))
        fitted = _fit(inside, cut_share, MIN_SPAN_RESPONSES)
        spans.append(
            SpanFit(
                first_step=first,
                last_step=last,
                low=fitted.low if fitted else None,
                high=fitted.high if fitted else None,
                cut_in_run=_share(inside.cut),
            )
        )
    return tuple(spans)


def _too_few(samples: Samples, notes: tuple[str, ...]) -> DataError:
    positive, negative = (int((sign * samples.advantage > 0).sum()) for sign in (1, -1))
    said = "".join(f" ({note})" for note in notes)
    return DataError(
        f"{positive} responses of positive and {negative} of negative advantage in {samples.num_groups} groups "
        f"are off-policy and have a log s; wanted {MIN_RESPONSES} of each sign in {MIN_GROUPS} groups: "
        f"record more steps, with trainer.minibatches of 2 or more{said}"
    )


def _notes_on(run: Run) -> tuple[str, ...]:
    """The range in force shapes what is measured; what could not be read is missing from it."""
    notes: list[str] = []
    for event in run.events():
        sides = [side for side in ("low", "high") if event.get(f"{side}_held") == "ceiling"]
        if sides:
            notes.append(
                f"after step {event['step']} the {' and the '.join(sides)} side in force was held at the ceiling of {CEILING:g}: "
                "responses moved further than any range should allow; lower optimizer.lr and measure again"
            )
    if not notes and _in_force(run, CEILING):
        notes.append(
            f"the range in force reached the ceiling of {CEILING:g} and held nothing: this is the drift of a run without a clip"
        )
    notes += [f"left out: {damage.path.name}: {damage.reason}" for damage in run.damaged]
    return tuple(notes)


def _in_force(run: Run, distance: float) -> bool:
    """Whether the last recorded range was at least so wide on a side."""
    for row in reversed(run.metrics()):
        low, high = row.get("clip/low"), row.get("clip/high")
        if isinstance(low, float) and isinstance(high, float):
            return max(low, high) >= distance and not is_provisional(low, high)
    return False


def _notes_on_fit(fixed: Calibration) -> tuple[str, ...]:
    sides = (
        ("low", fixed.low_held, fixed.low_against_advantage, "negative"),
        ("high", fixed.high_held, fixed.high_against_advantage, "positive"),
    )
    notes: list[str] = []
    for side, held, against, sign in sides:
        if against:
            notes.append(
                f"{side} is the noise floor: most responses of {sign} advantage moved against it"
            )
        elif held != "measured":
            notes.append(f"{side} is held at the {held}: the measured quantile lies beyond it")
    return tuple(notes)
