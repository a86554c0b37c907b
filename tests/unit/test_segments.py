"""Segments by hand."""

import inspect

import pytest
import torch

from gspo.errors import GspoError
from gspo.segments import Segments


def test_mean_sum_and_spread_by_hand():
    segments = Segments.from_lengths([2, 0, 1])
    values = torch.tensor([1.0, 3.0, 5.0])
    assert segments.sum(values).tolist() == [4.0, 0.0, 5.0]
    assert segments.mean(values).tolist() == [2.0, 0.0, 5.0]
    assert segments.spread(torch.tensor([7, 8, 9])).tolist() == [7, 7, 9]
    assert (segments.num_responses, segments.num_tokens) == (3, 3)


def test_take_picks_the_masked_positions_row_by_row():
    mask = torch.tensor([[False, True, True], [False, False, False], [True, False, True]])
    segments = Segments.from_mask(mask)
    assert segments.lengths.tolist() == [2, 0, 2]
    assert segments.take(torch.arange(9).view(3, 3)).tolist() == [1, 2, 6, 8]


def test_messages_name_what_was_given():
    with pytest.raises(GspoError, match=r"lengths are \[2, -1\]"):
        Segments.from_lengths([2, -1])
    with pytest.raises(GspoError, match=r"use Segments.from_mask"):
        Segments.from_lengths([1]).take(torch.zeros(1, 1))
    unchecked = inspect.unwrap(Segments.from_mask.__func__)  # past the check that only tests have
    with pytest.raises(GspoError, match=r"mask is torch.int64 of shape \(1, 2\).*mask.bool\(\)"):
        unchecked(Segments, torch.ones(1, 2, dtype=torch.int64))
    with pytest.raises(GspoError, match=r"of shape \(2,\)"):
        unchecked(Segments, torch.ones(2, dtype=torch.bool))


def test_a_padded_batch_without_columns_has_no_tokens():
    segments = Segments.from_mask(torch.zeros(2, 0, dtype=torch.bool))
    assert segments.lengths.tolist() == [0, 0]
    assert segments.take(torch.zeros(2, 0)).shape == (0,)
