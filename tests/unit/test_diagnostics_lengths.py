"""Length buckets by hand."""

import torch

from gspo.diagnostics.lengths import MAX_POWER, bucket_index, bucket_name, present_buckets


def test_every_length_lies_in_the_bucket_that_names_it():
    lengths = torch.tensor([1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 4095, 4096])
    names = [bucket_name(k) for k in bucket_index(lengths).tolist()]
    assert names == [
        *("1", "2-3", "2-3", "4-7", "4-7", "8-15", "8-15", "16-31", "16-31", "32-63"),
        *("2048-4095", "4096-8191"),
    ]


def test_edges_are_exact_where_a_float_logarithm_is_not():
    powers = torch.tensor([2**k for k in range(1, MAX_POWER + 1)])
    assert bucket_index(powers).tolist() == list(range(1, MAX_POWER + 1))
    assert bucket_index(powers - 1).tolist() == list(range(MAX_POWER))


def test_only_buckets_with_responses_are_present_and_empty_responses_have_none():
    buckets = present_buckets(torch.tensor([20, 0, 1, 17]))
    assert {name: rows.tolist() for name, rows in buckets.items()} == {
        "1": [False, False, True, False],
        "16-31": [True, False, False, True],
    }
    assert list(buckets) == ["1", "16-31"]
