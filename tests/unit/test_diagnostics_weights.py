"""Weights of two responses by hand, then the law that ties them to the update's own numbers."""

import math

import pytest
import torch

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.weights import (
    EffectiveShare,
    ResponseWeights,
    response_weights,
    surrogate_of,
    weight_stats,
)
from gspo.policy.step import Accumulated, Part, statistics
from gspo.segments import Segments
from gspo.settings import DAPO, GRPO, GSPO, OBJECTIVES, ClipRange, LogClip
from tests.docs.glossary import documented


def weights_of(objective, moved, advantage, lengths) -> ResponseWeights:
    logp, advantage_S = torch.tensor(moved), torch.tensor(advantage)
    old_logp, segments = torch.zeros_like(logp), Segments.from_lengths(lengths)
    surrogate = surrogate_of(objective, logp, old_logp, advantage_S, segments)
    return response_weights(objective, surrogate, advantage_S)


def responses(lengths, **given) -> UpdatedResponses:
    num = len(lengths)
    fields = {
        "log_s": torch.zeros(num),
        "advantage": torch.ones(num),
        "lengths": torch.tensor(lengths),
        "minibatch": torch.full((num,), 2),
        "off_policy": torch.ones(num, dtype=torch.bool),
        "cut_low": torch.zeros(num, dtype=torch.int64),
        "cut_high": torch.zeros(num, dtype=torch.int64),
        "unit": "sequence",
    }
    return UpdatedResponses(**(fields | given))


def given_weights(kept, unclipped=None) -> ResponseWeights:
    kept = torch.tensor(kept, dtype=torch.float64)
    return ResponseWeights(kept, kept if unclipped is None else torch.tensor(unclipped))


def test_gspo_weighs_a_kept_response_by_its_ratio_and_advantage_whatever_its_length():
    clip = ClipRange(low=0.05, high=0.05)
    found = weights_of(GSPO(clip=clip), [0.1, 0.1, 0.0], [1.0, -2.0], [2, 1])
    assert found.kept.tolist() == [0.0, 2.0]  # the first is cut: e^0.1 is above 1.05
    assert found.unclipped.tolist() == pytest.approx([math.exp(0.1), 2.0], rel=1e-6)


def test_a_sum_over_tokens_weighs_by_length_and_a_mean_does_not():
    still, advantage, lengths = [0.0] * 4, [1.0, -1.0], [3, 1]
    summed = weights_of(DAPO(), still, advantage, lengths)
    averaged = weights_of(GRPO(), still, advantage, lengths)
    assert summed.kept.tolist() == summed.unclipped.tolist() == [3.0, 1.0]
    assert averaged.kept.tolist() == pytest.approx([1.0, 1.0], rel=1e-6)
    assert averaged.unclipped.tolist() == [1.0, 1.0]


def test_a_token_clip_takes_a_part_of_a_response():
    moved = [math.log(1.5), 0.0]
    found = weights_of(GRPO(clip=ClipRange(low=0.2, high=0.2)), moved, [1.0], [2])
    assert found.kept.tolist() == pytest.approx([0.5], rel=1e-6)
    assert found.unclipped.tolist() == pytest.approx([1.25], rel=1e-6)


@pytest.mark.parametrize(
    ("kept", "share"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([7.0, 0.0, 0.0, 0.0], 0.25),
        ([1.0, 2.0], 0.9),  # 3^2 / (2 x 5)
        ([0.0, 0.0], 0.0),
    ],
)
def test_effective_share_by_hand(kept, share):
    stats = weight_stats(responses([4] * len(kept)), given_weights(kept))
    assert stats["weight/ess_share"].value() == share


def test_effective_shares_add_by_their_sums():
    first, second = EffectiveShare(1.0, 1.0, 1), EffectiveShare(2.0, 4.0, 1)
    assert (first + second).value() == 0.9
    assert EffectiveShare(0.0, 0.0, 0).value() is None


def test_statistics_are_about_measured_off_policy_responses_with_a_signal():
    stats = weight_stats(
        responses(
            [1, 1, 2, 2, 2],
            advantage=torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0]),
            off_policy=torch.tensor([True, True, True, True, False]),
        ),
        given_weights([1.0, 2.0, math.nan, 5.0, 5.0], [2.0, 4.0, math.nan, 5.0, 5.0]),
    )
    assert stats["weight/kept_share"].value() == 0.5
    assert stats["weight/ess_share"].value() == 0.9
    assert stats["weight/kept_share/len_1"].value() == 0.5
    assert stats["weight/ess_share/len_1"].value() == 0.9
    assert stats["weight/kept_share/len_2-3"].value() is None
    assert stats["weight/ess_share/len_2-3"].value() is None
    assert all(documented(name) for name in stats)


def make(name: str):
    """Each objective with a range that this noise crosses."""
    settings = {"max_tokens": 64} if name == "dr_grpo" else {}
    if name == "gmpo":
        settings["clip"] = LogClip(0.05, 0.05)
    elif name != "sapo":
        settings["clip"] = ClipRange(low=0.02, high=0.02)
    return OBJECTIVES[name](**settings)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_the_kept_share_is_the_one_that_the_update_records(name):
    objective = make(name)
    generator = torch.Generator().manual_seed(4)
    segments = Segments.from_lengths([1, 7, 30, 2, 12])
    old_logp = -torch.rand(segments.num_tokens, generator=generator)
    logp = old_logp + 0.1 * torch.randn(segments.num_tokens, generator=generator)
    advantage = torch.tensor([1.0, -1.0, 0.5, 0.0, -2.0])
    surrogate = surrogate_of(objective, logp, old_logp, advantage, segments)
    per_token = objective.advantage_per == "token"
    part = Part(
        dead=False,
        rows=torch.arange(5),
        advantage=segments.spread(advantage) if per_token else advantage,
        logp=logp,
        old_logp=old_logp,
        moved=True,
        surrogate=surrogate,
        penalty=None,
    )
    recorded = statistics(objective, Accumulated(5, [part], None, 0))["weight/kept_share"].value()
    ours = weight_stats(
        responses(segments.lengths.tolist(), advantage=advantage),
        response_weights(objective, surrogate, advantage),
    )["weight/kept_share"].value()
    assert ours == pytest.approx(recorded, rel=1e-6)
    assert ours != 1.0
