"""Length buckets in powers of two, the same for every run, so that runs can be compared.

A response of L trained tokens lies in bucket floor(log2 L): 1, 2-3, 4-7, 8-15, ... Doubling L
halves the variance of a mean of independent token noise, so one step up is one factor of sqrt(2)
in the spread of log s. An empty response lies in no bucket.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

MAX_POWER = 30  # bucket 30 starts at 2^30 tokens, beyond every context window


def bucket_index(lengths: Int[Tensor, "S"]) -> Int[Tensor, "S"]:
    """Number of each response's bucket, 0 for one token; -1 for an empty response.

    >>> bucket_index(torch.tensor([0, 1, 3, 16])).tolist()
    [-1, 0, 1, 4]
    """
    starts = 2 ** torch.arange(MAX_POWER + 1, device=lengths.device)
    return torch.bucketize(lengths, starts, right=True) - 1


def bucket_name(index: int) -> str:
    """Its first and last length, in tokens.

    >>> bucket_name(0), bucket_name(4)
    ('1', '16-31')
    """
    return "1" if index == 0 else f"{2**index}-{2 ** (index + 1) - 1}"


def present_buckets(lengths: Int[Tensor, "S"]) -> dict[str, Bool[Tensor, "S"]]:
    """Name -> its responses, for the buckets that hold any, shortest first."""
    index = bucket_index(lengths)
    return {bucket_name(k): index == k for k in sorted(set(index.tolist())) if k >= 0}
