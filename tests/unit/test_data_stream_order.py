"""Data order: every prompt once an epoch, the same order after any interruption."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspo.data.stream_order import prompt_indices, prompt_places, prompts_at
from gspo.errors import DataError
from gspo.types import Prompt


def prompts(count):
    return [Prompt(id=f"p{k}", text=f"{k}", ids=(k,)) for k in range(count)]


def test_the_order_is_fixed_for_good():
    assert prompt_indices(12, seed=0, cursor=0, count=12) == [6, 8, 11, 2, 9, 5, 3, 4, 0, 10, 1, 7]


def test_epochs_seeds_and_runs_differ():
    first = prompt_indices(50, seed=1, cursor=0, count=50)
    assert first != prompt_indices(50, seed=1, cursor=50, count=50)
    assert first != prompt_indices(50, seed=2, cursor=0, count=50)
    assert first == prompt_indices(50, seed=1, cursor=0, count=50)


@given(
    num_prompts=st.integers(1, 40),
    seed=st.integers(-(2**70), 2**70),
    cuts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
def test_however_it_is_cut_each_epoch_holds_every_prompt_once(num_prompts, seed, cuts):
    whole = prompt_indices(num_prompts, seed, 0, sum(cuts))
    parts, cursor = [], 0
    for count in cuts:
        parts += prompt_indices(num_prompts, seed, cursor, count)
        cursor += count
    assert parts == whole
    for start in range(0, len(whole) - num_prompts + 1, num_prompts):
        assert sorted(whole[start : start + num_prompts]) == list(range(num_prompts))


@pytest.mark.parametrize("saved_after_steps", [2, 3, 4, 9])
def test_resume_at_or_near_an_epoch_boundary_goes_on(saved_after_steps):
    """12 rows, batch 4, 3 epochs: 9 steps, whichever step was saved."""
    straight = [prompt_indices(12, 7, 4 * step, 4) for step in range(9)]
    resumed = [prompt_indices(12, 7, 4 * step, 4) for step in range(saved_after_steps, 9)]
    assert straight[:saved_after_steps] + resumed == straight
    assert Counter(i for batch in straight for i in batch) == dict.fromkeys(range(12), 3)


def test_no_row_is_lost_when_the_batch_does_not_divide_the_data():
    """5 rows, batch 4: the last partial batch is filled from the next epoch."""
    assert set(prompt_indices(5, 0, 0, 4) + prompt_indices(5, 0, 4, 4)) == set(range(5))


def next_prompts(prompts, seed, cursor, count):
    return prompts_at(prompts, prompt_places(len(prompts), seed, cursor, count))


def test_copies_in_one_step_have_ids_of_their_own():
    chosen = next_prompts(prompts(3), seed=0, cursor=0, count=7)
    assert len({prompt.id for prompt in chosen}) == 7
    assert Counter(prompt.id.split("#")[0] for prompt in chosen[:6]) == {"p0": 2, "p1": 2, "p2": 2}
    assert all(prompt.id == f"p{prompt.text}" for prompt in chosen[:3])
    assert [prompt.id for prompt in next_prompts(prompts(9), 0, 0, 9) if "#" in prompt.id] == []


def test_no_data_is_an_error_not_a_run_of_no_steps():
    with pytest.raises(DataError, match="the data has 0 prompts"):
        prompt_indices(0, seed=0, cursor=0, count=4)
    with pytest.raises(DataError, match="asked for 0 prompts at position -1"):
        prompt_indices(3, seed=0, cursor=-1, count=0)


def test_the_order_is_uniform():
    """Over 3000 epochs of 4, each prompt comes first 750 times; sd 23.7, five of them allowed."""
    firsts = Counter(prompt_indices(4, 0, 4 * epoch, 1)[0] for epoch in range(3000))
    assert all(abs(count - 750) < 119 for count in firsts.values())
