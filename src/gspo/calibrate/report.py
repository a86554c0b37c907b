"""What a fit says: the object of `--json`, the recipe lines, the histogram that goes with them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gspo.calibrate.fit import ClipFit
from gspo.diagnostics.exponent import Exponent
from gspo.recorders.chart import Band, LogRatioChart
from gspo.settings import ClipRange, SequenceClip
from gspo.stats import Histogram

SIGNIFICANT = 3  # digits in a recipe: the interval is wider than the fourth


def as_json(fit: ClipFit) -> dict[str, Any]:
    """The keys of `gspo calibrate --json`; docs/metrics.md explains them."""
    law = fit.law
    return {
        "low": fit.low,
        "high": fit.high,
        "interval": {side: list(fit.interval[side]) for side in ("low", "high")},
        "length_fair": asdict(fit.length_fair),
        "recommend": fit.recommend,
        "against_length_fair": law.against_length_fair,
        "exponent": value_of(law.noise)[0],
        "exponent_interval": value_of(law.noise)[1:],
        "overall_exponent": value_of(law.overall)[0],
        "overall_exponent_interval": value_of(law.overall)[1:],
        "shared_variance": law.shared,
        "mean_share": law.mean_share,
        "cut_share": fit.cut_share,
        "cut_in_run": fit.cut_in_run,
        "held": {"low": fit.fixed.low_held, "high": fit.fixed.high_held},
        "num_responses": fit.num_responses,
        "num_positive": fit.fixed.num_positive,
        "num_negative": fit.fixed.num_negative,
        "num_groups": fit.num_groups,
        "num_steps": fit.num_steps,
        "buckets": [asdict(bucket) for bucket in fit.buckets],
        "spans": [asdict(span) for span in fit.spans],
        "recipe": recipe_lines(fit.clip),
        "notes": list(fit.notes),
    }


def value_of(exponent: Exponent) -> list[float | None]:
    """Value, low and high end; None where lengths do not tell."""
    known = [exponent.value, exponent.low, exponent.high]
    return [*known] if exponent.is_known else [None, None, None]


def recipe_lines(clip: SequenceClip) -> str:
    """The lines of a recipe that set this range.

    >>> print(recipe_lines(ClipRange(low=0.00123456, high=0.0004)))
    objective:
      name: gspo
      clip: {low: 0.00123, high: 0.0004}
    """
    band = f"{{low: {_plain(clip.low)}, high: {_plain(clip.high)}}}"
    value = band if isinstance(clip, ClipRange) else f"{{length_fair: {band}}}"
    return f"objective:\n  name: gspo\n  clip: {value}"


def _plain(number: float) -> str:
    """Without an exponent, which YAML 1.1 readers take for text."""
    rounded = float(f"{number:.{SIGNIFICANT}g}")
    return f"{rounded:.10f}".rstrip("0").rstrip(".")


def terminal_chart(fit: ClipFit) -> LogRatioChart:
    """All log s with the fitted range, as the console draws a step's."""
    histogram = Histogram.of(fit.samples.log_s)
    low, high = fit.fixed.clip.band(fit.samples.length)
    return LogRatioChart(
        edges=histogram.edges,
        counts=histogram.counts.tolist(),
        bands=[Band("fitted", low, high)],
    )
