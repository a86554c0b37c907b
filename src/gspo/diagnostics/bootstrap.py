"""Intervals by resampling whole groups: responses to one prompt are not independent.

A replicate draws as many groups as there are, with replacement; what it drew is a function of the
seed and its own number alone. A quantile of a replicate is that of its responses, each as often as
its group was drawn. The interval is the middle of the replicates, widened for few groups: for a
quantile it needs no density, and it follows any rescaling of log s.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import torch
from jaxtyping import Float, Int
from torch import Tensor

NUM_REPLICATES = 1000  # 25 of them beyond each end of a 95 % interval
LEVEL = 0.95
CHUNK_ELEMENTS = 1 << 22  # responses times replicates at once: 16 MB of int32
_SEED_STRIDE = 1_000_003  # torch's CPU generator takes the low 32 bits of a seed: no power of two
_NORMAL = NormalDist()


def group_draws(
    num_groups: int, *, num_replicates: int = NUM_REPLICATES, seed: int = 0
) -> Int[Tensor, "R P"]:
    """How often each replicate drew each group; rows add up to `num_groups`.

    >>> group_draws(4, num_replicates=3).sum(1).tolist()
    [4, 4, 4]
    """
    draws = torch.empty(num_replicates, num_groups, dtype=torch.int16)
    for replicate in range(num_replicates):
        generator = torch.Generator().manual_seed(seed * _SEED_STRIDE + replicate)
        drawn = torch.randint(num_groups, (num_groups,), generator=generator)
        draws[replicate] = torch.bincount(drawn, minlength=num_groups)
    return draws


def quantile_replicates(
    values: Float[Tensor, "S"], group: Int[Tensor, "S"], q: float, draws: Int[Tensor, "R P"]
) -> Float[Tensor, "R"]:
    """The q-quantile (linear interpolation) of each replicate; NaN for one that drew no value.

    group: of each value, from 0 to P - 1. Values need not come from every group.
    """
    ordered, order = values.double().sort()
    group = group[order]
    rows = max(CHUNK_ELEMENTS // max(values.numel(), 1), 1)
    parts = [_quantiles(ordered, part[:, group], q) for part in draws.split(rows)]
    return torch.cat(parts)


def _quantiles(
    ordered: Float[Tensor, "S"], times: Int[Tensor, "R S"], q: float
) -> Float[Tensor, "R"]:
    """The quantile of sorted values, each taken `times`."""
    reached = times.cumsum(1, dtype=torch.int32)  # position after the last copy of each value
    total = reached[:, -1:]
    position = (total - 1).clamp(min=0).double() * q
    below = position.floor()
    above = torch.minimum(below + 1, (total - 1).clamp(min=0))
    last = ordered.numel() - 1
    low, high = (
        ordered[torch.searchsorted(reached, at.int(), right=True).clamp(max=last)]
        for at in (below, above)
    )
    value = low + (high - low) * (position - below)
    return value.masked_fill(total == 0, torch.nan).squeeze(1)


def interval(
    replicates: Float[Tensor, "R"], num_groups: int, level: float = LEVEL
) -> tuple[float, float]:
    """The middle of the replicates that are numbers: NaN, NaN if there are none.

    The plain percentile interval is too narrow for few groups: it stands for a normal interval
    with the standard deviation over n. Its tails are those of Student's t and n - 1 instead
    (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.1.3).
    """
    degrees = max(num_groups - 1, 1)
    z = _NORMAL.inv_cdf((1 + level) / 2)
    student = z + (z**3 + z) / (4 * degrees)  # Cornish-Fisher, within 1 % from 8 groups on
    tail = _NORMAL.cdf(-student * math.sqrt((degrees + 1) / degrees))
    ends = torch.tensor([tail, 1 - tail], dtype=torch.float64)
    low, high = replicates.double().nanquantile(ends)
    return float(low), float(high)
