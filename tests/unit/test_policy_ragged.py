"""The row without padding: by hand, then every token of every batch, wherever it is cut."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gspo.errors import RecipeError
from gspo.policy.packing import pack_rollouts
from gspo.policy.ragged import Bucket, Ragged, Segment, shared_microbatches
from gspo.segments import Segments
from gspo.types import Group, Prompt, Rollout, Verdict

CPU = torch.device("cpu")


def batch_of(*groups):
    """Each group: (prompt ids, response ids, response ids, ...)."""
    packed = [
        Group(
            Prompt(id=str(number), text="", ids=prompt),
            [
                Rollout(
                    prompt_ids=prompt, response_ids=ids, trained=[True] * len(ids),
                    engine_logp=[None] * len(ids), text="", finish="stop", version=0,
                    verdict=Verdict(1.0),
                )
                for ids in responses
            ],
        )
        for number, (prompt, *responses) in enumerate(groups)
    ]  # fmt: skip
    advantages = torch.ones(sum(len(group.rollouts) for group in packed))
    return pack_rollouts(packed, advantages, temperature=1.0).batch


def test_a_row_by_hand():
    """17 prompt tokens, the first 16 shared (the 17th predicts); responses of 3 and 1 tokens, whose
    last ones predict nothing. A second group of one response shares nothing."""
    prompt = list(range(100, 117))
    row = Ragged.of(batch_of((prompt, [1, 2, 3], [4]), ([50, 51], [5, 6])), CPU)
    assert row.input_ids.tolist() == [[*prompt[:16], 116, 1, 2, 116, 50, 51, 5]]
    assert row.positions.tolist() == [[*range(16), 16, 17, 18, 16, 0, 1, 2]]
    assert row.predicts.tolist() == [16, 17, 18, 19, 21, 22]
    prefix = Segment(0, 16)
    assert row.layout.crosses == ((prefix, Segment(16, 4, prefix)),)
    assert (row.layout.num_tokens, row.layout.longest) == (23, 19)


def test_a_beginning_that_saves_too_little_is_repeated():
    row = Ragged.of(batch_of((list(range(16)), [1, 2], [3])), CPU)  # 15 tokens, 1 repetition
    assert (row.layout.crosses, row.layout.num_tokens) == ((), 17 + 16)


def test_what_only_looks_shared_is_not():
    """Two rows of a group that begin differently, in ids or in positions, share what is alike."""
    batch = batch_of((list(range(30)), [1], [2]))
    ids, positions = batch.input_ids.clone(), batch.positions.clone()
    ids[31 + 20] = 99  # token 20 of the second row
    assert Ragged.of(replace(batch, input_ids=ids), CPU).layout.crosses[0][0].length == 20
    positions[31:] += 1
    assert Ragged.of(replace(batch, positions=positions), CPU).layout.crosses == ()


def test_tokens_that_an_environment_wrote_may_be_shared_only_where_they_predict_nothing():
    batch = batch_of((list(range(17)), [1, 2, 3], [1, 2, 4]))
    untrained = replace(
        batch,
        target=batch.target[[1, 2, 4, 5]],
        engine_logp=batch.engine_logp[:4],
        segments=Segments.from_lengths([2, 2]),
    )
    row = Ragged.of(untrained, CPU)
    assert row.layout.crosses[0][0].length == 17  # the prompt; token 1 predicts
    assert row.input_ids[0, 17:].tolist() == [1, 2, 1, 2]


def test_a_bucket_by_hand():
    bucket = Bucket.of([Segment(5, 3), Segment(0, 2)])
    assert bucket.index.tolist() == [5, 6, 7, 0, 1, 0]
    assert bucket.real.tolist() == [0, 1, 2, 3, 4]
    assert bucket.places.tolist() == [5, 6, 7, 0, 1]
    assert bucket.padding.tolist() == [5]
    assert Bucket.of([Segment(2, 2), Segment(0, 2)]).real is None


SHAPES = st.lists(
    st.tuples(st.integers(1, 24), st.lists(st.integers(1, 12), min_size=1, max_size=6)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(shapes=SHAPES, budget=st.integers(36, 120), good=st.none() | st.integers(1, 60))
def test_every_response_is_in_one_micro_batch_and_every_target_has_its_predictor(
    shapes, budget, good
):
    groups = [(list(range(n)), *[[7] * k for k in lengths]) for n, lengths in shapes]
    batch = batch_of(*groups)
    cuts = shared_microbatches(batch, budget, good)
    assert sorted(torch.cat(cuts).tolist()) == list(range(batch.num_responses))
    longest = int(batch.sequence_lengths.max())
    for rows in cuts:
        part = batch.select(rows)
        row = Ragged.of(part, CPU)
        assert row.layout.num_tokens <= max(min(budget, good or budget), longest)
        assert row.input_ids[0, row.predicts].tolist() == part.input_ids[part.target - 1].tolist()
        assert row.positions[0, row.predicts].tolist() == part.positions[part.target - 1].tolist()
        places = torch.cat([bucket.places for bucket in row.layout.buckets])
        assert sorted(places.tolist()) == list(range(row.layout.num_tokens))


def test_a_group_beyond_the_budget_is_cut_between_responses_and_keeps_its_prompt():
    batch = batch_of((list(range(17)), *[[k] * 5 for k in range(4)]))  # 16 + 4 x 5 tokens
    assert [rows.tolist() for rows in shared_microbatches(batch, 36)] == [[0, 1, 2, 3]]
    assert [rows.tolist() for rows in shared_microbatches(batch, 35)] == [[0, 1, 2], [3]]


def test_a_sequence_beyond_the_budget_names_length_budget_and_setting():
    batch = batch_of((list(range(10)), [1, 2]))
    with pytest.raises(RecipeError, match="12 tokens do not fit the micro-batch budget of 11") as e:
        shared_microbatches(batch, 11)
    assert "trainer.max_tokens_per_microbatch to 12" in str(e.value)
