"""Statistics that add: over micro-batches, ranks and steps."""

import math

import pytest
import torch

from gspo.errors import GspoError
from gspo.stats import (
    LOG_RATIO_EDGES,
    Histogram,
    Max,
    Mean,
    Min,
    Quantile,
    Spread,
    Statistic,
    Sum,
    merge,
    symmetric_log_edges,
)


def test_a_mean_is_no_mean_of_means():
    """Field failure 94: 3 of 12 and 3 of 4 are 6 of 16, in every split."""
    assert (Mean(3, 12) + Mean(3, 4)).value() == 0.375
    assert (Mean(torch.tensor(1.0), torch.tensor(5)) + Mean(5, 11)).value() == 0.375


def test_no_data_is_none():
    """Field failure 93: neither NaN nor 0."""
    assert Mean(0, 0).value() is None
    assert Max(None).value() is None
    assert Min(None).value() is None
    assert Spread(torch.zeros(1)).value() is None
    assert Quantile(torch.zeros(0), 0.5).value() is None


def test_extremes_are_neither_averaged_nor_scaled():
    """Field failure 96: updates with ratios [.9, 1.1] and [.7, 1.3]; held at a band of .2."""
    updates = [torch.tensor([0.9, 1.1]), torch.tensor([0.7, 1.3])]
    held = [update.clamp(0.8, 1.2) for update in updates]
    lows, highs = ([Min(u.min()) for u in updates], [Max(u.max()) for u in updates])
    assert (lows[0] + lows[1]).value() == pytest.approx(0.7)
    assert (highs[0] + highs[1]).value() == pytest.approx(1.3)
    assert (Min(held[0].min()) + Min(held[1].min())).value() == pytest.approx(0.8)
    assert (Max(held[0].max()) + Max(held[1].max())).value() == pytest.approx(1.2)


@pytest.mark.parametrize("kind", [Max, Min])
def test_extremes_skip_parts_without_data_and_keep_nan(kind):
    assert (kind(None) + kind(2.0)).value() == 2.0
    assert (kind(2.0) + kind(None)).value() == 2.0
    assert math.isnan((kind(math.nan) + kind(2.0)).value())
    assert math.isnan((kind(2.0) + kind(math.nan)).value())


def test_merge_adds_by_name():
    merged = merge(
        [{"a": Mean(1, 2), "b": Sum(1)}, {"a": Mean(1, 2), "b": Sum(2)}, {"c": Max(3.0)}]
    )
    assert {name: stat.value() for name, stat in merged.items()} == {"a": 0.5, "b": 3.0, "c": 3.0}
    assert merge([]) == {}
    assert all(isinstance(stat, Statistic) for stat in merged.values())


def test_a_spread_of_parts_is_the_spread_of_all():
    values = torch.tensor([1.0, 2.0, 4.0, 9.0])
    parts = Spread(values[:1]) + Spread(values[1:])
    assert parts.value() == pytest.approx(float(values.double().std()), rel=1e-14)


def test_a_quantile_of_parts_is_the_quantile_of_all():
    values = torch.arange(11.0)
    assert (Quantile(values[:3], 0.9) + Quantile(values[3:], 0.9)).value() == 9.0
    with pytest.raises(GspoError, match=r"quantiles 0.9 and 0.5 cannot be added"):
        _ = Quantile(values, 0.9) + Quantile(values, 0.5)


def test_edges_are_mirrored_around_zero():
    edges = symmetric_log_edges(0.01, 1.0, per_decade=1)
    assert edges == pytest.approx((-1.0, -0.1, -0.01, 0.01, 0.1, 1.0))
    assert LOG_RATIO_EDGES[0] == -10.0
    assert len(LOG_RATIO_EDGES) == 58


def test_histogram_bins_by_hand():
    edges = (-1.0, 0.0, 1.0, 2.0)
    values = torch.tensor([-5.0, -1.0, 0.0, 0.5, 1.0, 7.0, math.nan, math.inf])
    first = Histogram.of(values, edges)
    assert first.counts.tolist() == [2, 2, 2]
    assert first.num_nonfinite == 2
    both = first + Histogram.of(torch.tensor([0.5]), edges)
    assert both.value() == {"edges": list(edges), "counts": [2, 3, 2]}
    assert both.num_nonfinite == 2
    with pytest.raises(GspoError, match="histograms of 4 and 58 edges"):
        _ = first + Histogram.of(values)
