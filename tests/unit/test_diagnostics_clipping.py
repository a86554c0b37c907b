"""Clip shares by hand, then the laws they obey."""

import math

import pytest
import torch

from gspo.diagnostics.clipping import UpdatedResponses, clip_stats
from gspo.errors import GspoError
from gspo.settings import ClipRange, LengthFairClip
from gspo.stats import merge


def step(**given) -> UpdatedResponses:
    """Off-policy responses of 10 tokens in minibatch 2, nothing cut, unless said."""
    num = len(given["advantage"])
    fields = {
        "log_s": [0.0] * num,
        "lengths": [10] * num,
        "minibatch": [2] * num,
        "off_policy": [True] * num,
        "cut_low": [0] * num,
        "cut_high": [0] * num,
        "unit": "sequence",
        **given,
    }
    floats, plain = ("log_s", "advantage"), ("unit",)
    return UpdatedResponses(
        **{
            k: v if k in plain else torch.tensor(v, dtype=torch.float32 if k in floats else None)
            for k, v in fields.items()
        }
    )


def values(responses: UpdatedResponses, band=None) -> dict[str, float | None]:
    return {name: stat.value() for name, stat in clip_stats(responses, band).items()}


FOUR_RATIOS = step(
    log_s=[math.log(1.5), math.log(1.5), math.log(0.5), math.log(0.5)],
    advantage=[1.0, -1.0, 1.0, -1.0],
    cut_high=[1, 0, 0, 0],
    cut_low=[0, 0, 0, 1],
)


def test_only_the_first_and_fourth_of_four_ratios_are_cut_and_all_are_outside():
    got = values(FOUR_RATIOS, ClipRange(low=0.2, high=0.2).band(FOUR_RATIOS.lengths))
    assert (got["clip/cut_share"], got["clip/cut_high"], got["clip/cut_low"]) == (0.5, 0.25, 0.25)
    assert got["clip/cut_share_positive"] == got["clip/cut_share_negative"] == 0.5
    assert got["clip/outside_share"] == 1.0
    assert got["clip/outside_low"] == got["clip/outside_high"] == 0.5


def test_the_headline_leaves_out_the_first_minibatch_and_zero_advantage():
    got = values(
        step(
            advantage=[1.0, -1.0, 0.0, 1.0, 1.0],
            minibatch=[1, 1, 2, 2, 2],
            off_policy=[False, False, True, True, True],
            cut_high=[0, 0, 0, 1, 0],
        )
    )
    assert got["clip/cut_share"] == 1 / 2
    assert got["clip/cut_share_all"] == 1 / 5
    assert got["clip/cut_share_mb1"] == 0.0
    assert got["clip/cut_share_mb2"] == 1 / 2
    assert got["clip/cut_high_mb2"] == 1 / 2
    assert got["clip/cut_low_mb2"] == 0.0


def test_no_data_is_none_and_not_zero():
    on_policy = values(step(advantage=[1.0], minibatch=[1], off_policy=[False]))
    assert on_policy["clip/cut_share"] is None
    assert on_policy["clip/cut_share_tokens"] is None
    assert on_policy["clip/cut_share_all"] == 0.0
    no_signal = values(step(advantage=[0.0, 0.0]), (-0.1, 0.1))
    assert no_signal["clip/cut_share"] is None
    assert no_signal["clip/outside_share"] is None
    assert no_signal["clip/cut_share_negative"] is None
    empty = values(step(advantage=[1.0], lengths=[0]))
    assert empty["clip/cut_share"] is None
    assert empty["clip/cut_share_all"] is None


def test_an_empty_response_is_no_unit():
    got = values(step(advantage=[1.0, 1.0], lengths=[0, 4], cut_high=[0, 1]))
    assert got["clip/cut_share"] == got["clip/cut_share_all"] == 1.0


def test_a_sequence_objective_weighs_a_response_by_its_length_in_tokens_form():
    got = values(step(advantage=[1.0, -1.0], lengths=[10, 30], cut_high=[1, 0]))
    assert got["clip/cut_share"] == 0.5
    assert got["clip/cut_share_tokens"] == got["clip/cut_high_tokens"] == 10 / 40
    assert got["clip/cut_low_tokens"] == 0.0


def test_a_token_objective_averages_cut_shares_of_responses_or_counts_tokens():
    got = values(
        step(
            advantage=[1.0, -1.0, 0.0],
            lengths=[2, 8, 10],
            cut_high=[1, 0, 0],
            cut_low=[0, 2, 0],
            unit="token",
        )
    )
    assert got["clip/cut_share"] == (1 / 2 + 2 / 8) / 2
    assert got["clip/cut_share_tokens"] == 3 / 10
    assert got["clip/cut_share_all"] == (1 / 2 + 2 / 8 + 0) / 3
    assert got["clip/cut_share_all_tokens"] == 3 / 20
    assert got["clip/cut_share_negative"] == 2 / 8


def test_length_buckets_hold_their_own_responses():
    got = values(
        step(
            advantage=[1.0, 1.0, 1.0, 0.0],
            lengths=[16, 31, 32, 40],
            cut_high=[1, 0, 1, 0],
            off_policy=[True, True, True, False],
        )
    )
    assert got["clip/cut_share/len_16-31"] == 1 / 2
    assert got["clip/cut_share/len_32-63"] == 1.0
    assert got["clip/cut_share_all/len_32-63"] == 1 / 2
    assert got["clip/cut_low/len_16-31"] == 0.0
    assert "clip/cut_share/len_8-15" not in got


def test_outside_needs_a_measured_log_s_and_takes_one_band_per_response():
    responses = step(
        log_s=[0.06, 0.06, math.nan, 0.0],
        advantage=[-1.0, -1.0, 1.0, 1.0],
        lengths=[1, 4, 9, 9],
    )
    got = values(responses, LengthFairClip(low=0.1, high=0.1).band(responses.lengths))
    assert got["clip/outside_share"] == got["clip/outside_high"] == 1 / 3
    assert got["clip/outside_low"] == 0.0


def test_a_band_on_log_s_is_refused_for_token_objectives():
    with pytest.raises(GspoError, match=r"unit 'token'.*leave band out"):
        clip_stats(step(advantage=[1.0], unit="token"), (-0.1, 0.1))


def random_step(unit: str, rows: slice) -> UpdatedResponses:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, 40, (60,), generator=generator)
    minibatch = torch.randint(1, 4, (60,), generator=generator)
    cut = torch.randint(0, 2, (60,), generator=generator) * (1 if unit == "sequence" else lengths)
    fields = {
        "log_s": torch.randn(60, generator=generator),
        "advantage": torch.randint(-1, 2, (60,), generator=generator).float(),
        "lengths": lengths,
        "minibatch": minibatch,
        "off_policy": minibatch > 1,
        "cut_low": cut,
        "cut_high": 0 * cut,
    }
    return UpdatedResponses(**{k: v[rows] for k, v in fields.items()}, unit=unit)


@pytest.mark.parametrize("unit", ["sequence", "token"])
def test_two_parts_of_a_step_add_up_to_the_whole(unit):
    whole = clip_stats(random_step(unit, slice(None)))
    parts = merge(clip_stats(random_step(unit, rows)) for rows in (slice(0, 7), slice(7, None)))
    assert parts.keys() == whole.keys()
    for name, stat in whole.items():
        assert parts[name].value() == pytest.approx(stat.value(), rel=1e-12), name
    assert whole["clip/cut_share"].value() > 0
