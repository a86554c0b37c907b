"""Packing by hand: what is dropped, what stays, and how rows become micro-batches."""

import math

import pytest
import torch

from gspo.errors import DataError, RecipeError
from gspo.policy.packing import Padded, in_batch_order, microbatches, pack_rollouts
from gspo.types import Group, Prompt, Rollout, Verdict


def rollout(prompt_ids, response_ids, *, reward=1.0, **changes):
    fields = {
        "trained": [True] * len(response_ids),
        "engine_logp": [-0.5] * len(response_ids),
        "text": "",
        "finish": "stop",
        "version": 3,
        "verdict": Verdict(reward),
    }
    return Rollout(prompt_ids, response_ids, **(fields | changes))


def group(prompt_ids, *rollouts):
    return Group(Prompt(id="p", text="", ids=prompt_ids), rollouts)


def packed(*groups, temperature=1.0):
    num = sum(len(g.rollouts) for g in groups)
    return pack_rollouts(groups, torch.arange(1.0, num + 1), temperature=temperature)


def of_lengths(*lengths):
    """A batch of responses with this many tokens, after a prompt of one."""
    return packed(group([7], *(rollout([7], list(range(n))) for n in lengths))).batch


def test_a_batch_by_hand():
    first = group(
        [5, 6],
        rollout([5, 6], [7, 8, 9], trained=[True, False, True], engine_logp=[-0.1, None, None]),
        rollout([5, 6], [4], reward=0.0, finish="length", version=2),
    )
    batch = packed(first, group([1], rollout([1], [2, 3])), temperature=0.7).batch
    assert batch.input_ids.tolist() == [5, 6, 7, 8, 9, 5, 6, 4, 1, 2, 3]
    assert batch.positions.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2]
    assert batch.sequence_lengths.tolist() == [5, 3, 3]
    assert batch.target.tolist() == [2, 4, 7, 9, 10]  # the environment's token 8 is no target
    assert batch.segments.lengths.tolist() == [2, 1, 2]
    assert batch.engine_logp[0] == pytest.approx(-0.1)
    assert math.isnan(batch.engine_logp[1])  # unknown is NaN, never 0
    assert batch.engine_logp.dtype == torch.float32
    assert batch.advantage.tolist() == [1, 2, 3]
    assert batch.reward.tolist() == [1, 0, 1]
    assert batch.group.tolist() == [0, 0, 1]
    assert batch.version.tolist() == [3, 2, 3]
    assert batch.truncated.tolist() == [False, True, False]
    assert (batch.temperature, batch.old_logp) == (0.7, None)


def test_failed_and_empty_responses_leave_before_packing_and_are_named():
    result = packed(
        group(
            [1],
            rollout([1], [2], verdict=Verdict.failed("killed after 2 s")),
            rollout([1], [], finish="stop", verdict=None),
            rollout([1], [2, 3], trained=[False, False]),
            rollout([1], [2], finish="failed", verdict=None),
            rollout([1], [9, 2]),
        )
    )
    assert [(d.sample, d.reason) for d in result.dropped] == [
        (0, "verifier failed: killed after 2 s"),
        (1, "empty response"),
        (2, "no trained token"),
        (3, "request failed"),
    ]
    assert result.kept == [(0, 4)]
    assert result.batch.advantage.tolist() == [5]
    assert result.batch.input_ids.tolist() == [1, 9, 2]


def test_a_zero_advantage_stays():
    groups = [group([1], rollout([1], [2]), rollout([1], [3]))]
    assert pack_rollouts(groups, torch.zeros(2), temperature=1.0).batch.num_responses == 2


def test_nothing_left_is_an_empty_batch_without_micro_batches():
    batch = packed(group([1], rollout([1], []))).batch
    assert (batch.num_responses, batch.num_tokens, microbatches(batch, 8)) == (0, 0, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"engine_logp": [-0.1]},
            "response 0 of prompt 'p' has 2 token ids, 2 trained flags and 1",
        ),
        ({"trained": [True]}, "1 trained flags"),
        ({"verdict": None}, "response 0 of prompt 'p' was not judged"),
    ],
)
def test_a_broken_response_is_named(changes, message):
    with pytest.raises(DataError, match=message):
        packed(group([1], rollout([1], [2, 3], **changes)))


def test_other_refusals():
    with pytest.raises(DataError, match="no prompt tokens"):
        packed(group([], rollout([], [2])))
    with pytest.raises(RecipeError, match=r"temperature is 0.0"):
        packed(temperature=0.0)
    with pytest.raises(DataError, match="3 advantages for 1 responses"):
        pack_rollouts([group([1], rollout([1], [2]))], torch.zeros(3), temperature=1.0)


def test_micro_batches_by_hand():
    batch = of_lengths(1, 4, 1, 3, 4)  # sequences of 2, 5, 2, 4, 5 tokens
    assert [rows.tolist() for rows in microbatches(batch, 10)] == [[1, 4], [3, 0], [2]]
    assert [rows.tolist() for rows in microbatches(batch, 5)] == [[1], [4], [3], [0, 2]]
    assert [rows.tolist() for rows in microbatches(batch, 1000)] == [[1, 4, 3, 0, 2]]


@pytest.mark.parametrize("budget", [17, 23, 40, 64, 1000])
def test_every_row_is_in_one_micro_batch_within_the_budget(budget):
    batch = of_lengths(*[3, 16, 1, 1, 9, 16, 2, 7, 12] * 3)
    cuts = microbatches(batch, budget)
    assert sorted(torch.cat(cuts).tolist()) == list(range(batch.num_responses))
    for rows in cuts:
        assert Padded.of(batch.select(rows)).input_ids.numel() <= budget


def test_a_sequence_beyond_the_budget_names_length_budget_and_setting():
    with pytest.raises(
        RecipeError, match=r"5 tokens.*budget of 4.*trainer\.max_tokens_per_microbatch to 5"
    ):
        microbatches(of_lengths(4, 1), 4)


def test_token_values_return_to_the_batch_order():
    batch = of_lengths(2, 1, 3)
    cuts = microbatches(batch, 4)
    parts = [(rows, batch.select(rows).target.float() * 0 + rows[0]) for rows in cuts]
    assert in_batch_order(batch, parts).tolist() == [0, 0, 1, 2, 2, 2]
    assert in_batch_order(batch, parts[1:])[3:].isnan().all()  # the longest did not run


def test_padding_by_hand():
    batch = packed(
        group([5, 0], rollout([5, 0], [0, 8], trained=[False, True]), rollout([5, 0], [0]))
    ).batch
    padded = Padded.of(batch, pad_id=9)  # the id 0 is a real token here
    assert padded.input_ids.tolist() == [[5, 0, 0, 8], [5, 0, 0, 9]]
    assert padded.positions.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert padded.predicts.tolist() == [[False, False, True, False], [False, True, False, False]]


def test_a_target_nothing_predicts_is_refused():
    batch = of_lengths(2, 2)
    for wrong in ([0, 1, 4, 5], [1, 2, 3, 5], [2, 1, 4, 5]):
        with pytest.raises(DataError, match="targets must ascend"):
            Padded.of(type(batch)(**{**fields(batch), "target": torch.tensor(wrong)}))


def fields(batch):
    return {name: getattr(batch, name) for name in batch.__slots__}
