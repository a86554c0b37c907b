"""The distribution of log s by hand."""

import math

import pytest
import torch

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.histogram import log_s_stats
from gspo.stats import merge


def step(log_s, advantage, lengths, minibatch) -> UpdatedResponses:
    minibatch_S = torch.tensor(minibatch, dtype=torch.int64)
    nothing = torch.zeros(len(log_s), dtype=torch.int64)
    return UpdatedResponses(
        log_s=torch.tensor(log_s),
        advantage=torch.tensor(advantage),
        lengths=torch.tensor(lengths, dtype=torch.int64),
        minibatch=minibatch_S,
        off_policy=minibatch_S > 1,
        cut_low=nothing,
        cut_high=nothing,
        unit="sequence",
    )


STEP = step(
    log_s=[0.0, 0.5, -0.25, 0.0, 0.25, math.nan, 9.0],
    advantage=[1.0, 1.0, -1.0, 1.0, 1.0, 0.0, 0.0],
    lengths=[8, 8, 8, 2, 3, 8, 8],
    minibatch=[1, 2, 2, 2, 3, 2, 2],
)


def values(responses: UpdatedResponses) -> dict:
    return {name: stat.value() for name, stat in log_s_stats(responses).items()}


def test_the_headline_is_off_policy_responses_with_an_advantage():
    got = values(STEP)  # 0.5, -0.25, 0, 0.25
    assert got["log_s/mean"] == 0.125
    assert got["log_s/std"] == pytest.approx(math.sqrt(0.3125 / 3))
    assert (got["log_s/min"], got["log_s/max"]) == (-0.25, 0.5)
    assert (got["log_s/q50"], got["log_s/q25"], got["log_s/q75"]) == (0.125, -0.0625, 0.3125)
    assert got["log_s/q01"] == pytest.approx(-0.25 + 0.03 * 0.25)
    assert got["log_s/mean_all"] == 0.1
    assert got["log_s/q50_all"] == 0.0
    assert got["log_s/unmeasured"] == 0


def test_histograms_count_every_measured_response_once():
    got = values(STEP)
    edges, counts = got["log_s/histogram"]["edges"], got["log_s/histogram"]["counts"]
    filled = {edges[k]: count for k, count in enumerate(counts) if count}
    assert list(filled.values()) == [1, 1, 1, 1]
    assert filled[-1e-6] == 1
    assert sum(got["log_s/histogram_all"]["counts"]) == 5


def test_moments_by_sign_minibatch_and_length():
    got = values(STEP)
    assert got["log_s/mean_positive"] == 0.25
    assert got["log_s/mean_negative"] == -0.25
    assert got["log_s/std_positive"] == pytest.approx(0.25)
    assert got["log_s/std_negative"] is None
    assert (got["log_s/mean_mb1"], got["log_s/count_mb1"]) == (0.0, 1)
    assert (got["log_s/mean_mb2"], got["log_s/count_mb2"]) == (pytest.approx(0.25 / 3), 3)
    assert (got["log_s/mean/len_8-15"], got["log_s/count/len_8-15"]) == (0.125, 2)
    assert got["log_s/std/len_2-3"] == pytest.approx(0.25 / math.sqrt(2))


def test_no_off_policy_minibatch_is_no_data():
    got = values(step([0.0, 0.0], [1.0, -1.0], [4, 4], [1, 1]))
    for name in ("mean", "std", "min", "max", "q50", "mean_positive"):
        assert got[f"log_s/{name}"] is None, name
    assert sum(got["log_s/histogram"]["counts"]) == 0
    assert (got["log_s/mean_all"], got["log_s/max_all"]) == (0.0, 0.0)


def test_what_is_not_finite_is_counted_and_poisons_nothing():
    got = values(step([math.nan, math.inf, 0.5], [1.0, -1.0, 1.0], [4, 4, 4], [2, 2, 2]))
    assert got["log_s/unmeasured"] == 2
    assert got["log_s/mean"] == got["log_s/max"] == 0.5


def test_two_parts_of_a_step_add_up_to_the_whole():
    parts = merge(
        log_s_stats(step(*(column[rows] for column in COLUMNS)))
        for rows in (slice(0, 3), slice(3, None))
    )
    whole = log_s_stats(step(*COLUMNS))
    assert parts.keys() == whole.keys()
    for name, stat in whole.items():
        expected = stat.value()
        got = parts[name].value()
        assert got == (expected if isinstance(expected, dict) else pytest.approx(expected)), name


COLUMNS = (
    [0.1, -0.2, 0.0, 0.3, -0.4, 0.7],
    [1.0, -1.0, 1.0, 1.0, -1.0, 1.0],
    [8, 2, 8, 3, 8, 2],
    [2, 2, 1, 3, 3, 2],
)
