"""How a step's responses are dealt to its K minibatches."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from gspo.types import RolloutBatch


def minibatch_rows(
    batch: RolloutBatch, num_minibatches: int, by: str, *, seed: int, step: int
) -> list[Int[Tensor, "_"]]:
    """Rows of each minibatch, seeded shuffle from (seed, step).

    by "group": whole groups. by "response": responses of all groups mixed. Parts differ in size
    by at most one unit; a minibatch left empty by dropped responses is not returned.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    units = batch.group.unique() if by == "group" else torch.arange(batch.num_responses)
    shuffled = units[torch.randperm(units.numel(), generator=generator)]
    parts = shuffled.tensor_split(num_minibatches)
    if by == "group":
        parts = [torch.isin(batch.group, part).nonzero().squeeze(1) for part in parts]
    return [part for part in parts if part.numel()]
