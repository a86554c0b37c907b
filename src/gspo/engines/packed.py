"""bfloat16 products with weights packed for this processor, and whether they pay on it.

A product of few rows, as decoding has, is short beside the work of bringing its weights into the
order its kernel reads. oneDNN can do that once. Inputs, weights and results are rounded to 8 bits,
sums are not; what comes from such products is good for sampling, never as old log-probs.

The operators are private to torch: they are tried once on numbers that have to come out right, and
where they do not, the plain product of the same weights stands in, with the same rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from gspo.engines.linear import LinearMap, float32_map, packed

PAYS = 1.2  # times as fast: attention, norms and sampling stay float32 and dilute the gain
PROBE_S = 0.05  # for two or three shapes nobody notices it, and minima of it repeat within 5 %
MIN_ROUNDS = 3
MAX_PROBE_SIZE = 2048  # wider layers have the same rates and take seconds to pack
ONE_ROUNDING = 2.0**-7  # the last of bfloat16's 8 bits at 1


@dataclass(frozen=True, slots=True)
class Rates:
    """GFLOP/s at one shape, float32 in and out: weights in float32, and in bfloat16."""

    float32: float
    bfloat16: float

    @property
    def bfloat16_pays(self) -> bool:
        """It is faster by the margin PAYS."""
        return self.bfloat16 >= PAYS * self.float32


def packed_linear(
    weight: Float[Tensor, "N D"], bias: Float[Tensor, "N"] | None, num_rows: int
) -> LinearMap:
    """Float32 rows [*, D] to float32 rows [*, N] by a bfloat16 copy of weight, packed for about
    num_rows rows; any other number gives the same results. The bias is added in float32.

    New weights need a new call: 0.1 s for 135 M parameters on 2 cores, casting them included. No
    gradient passes.
    """
    copy = weight.detach().bfloat16().contiguous()
    offset = None if bias is None else bias.detach().float()
    packs = weight.device.type == "cpu" and packs_bfloat16()
    multiply = packed(copy, None, num_rows) if packs else partial(linear, weight=copy)

    def apply(rows: Tensor) -> Tensor:
        product = multiply(rows.bfloat16()).float()
        return product if offset is None else product.add_(offset)

    return apply


@cache
def packs_bfloat16() -> bool:
    """oneDNN's packed product is there, and gives the numbers of the plain one."""
    if not torch.backends.mkldnn.is_available():
        return False
    rows = torch.linspace(-1, 1, 5 * 48).view(5, 48).bfloat16()
    weight = torch.linspace(-1, 1, 32 * 48).view(32, 48).sin().bfloat16()
    try:
        found = packed(weight, None, 5)(rows)
    except (AttributeError, RuntimeError, TypeError):  # private operators, gone or changed
        return False
    wanted = linear(rows, weight)
    return torch.allclose(found.float(), wanted.float(), rtol=ONE_ROUNDING, atol=ONE_ROUNDING)


def measure_rates(hidden: int, intermediate: int, num_rows: int) -> Rates:
    """How fast this machine takes num_rows rows through an MLP's two matrices, as the engine would
    in either precision, with torch's threads as they are set. Anything else that runs disturbs it.
    """
    hidden, intermediate = min(hidden, MAX_PROBE_SIZE), min(intermediate, MAX_PROBE_SIZE)
    rows = torch.linspace(-1, 1, num_rows * hidden).view(num_rows, hidden)
    up = torch.linspace(-1, 1, intermediate * hidden).view(intermediate, hidden) / hidden
    down = up.t().contiguous()

    def layer(first: LinearMap, second: LinearMap) -> Callable[[], Any]:
        return lambda: second(first(rows))

    with torch.inference_mode():
        seconds = fastest_s(
            [
                layer(float32_map(up, None), float32_map(down, None)),
                layer(packed_linear(up, None, num_rows), packed_linear(down, None, num_rows)),
            ]
        )
    operations = 4 * num_rows * hidden * intermediate
    return Rates(*(operations / took_s / 1e9 for took_s in seconds))


def fastest_s(ways: list[Callable[[], Any]]) -> list[float]:
    """Shortest time of each, taken in turns for PROBE_S; the first round is left out: it warms up."""
    best = [float("inf")] * len(ways)
    num_rounds, end_s = 0, time.perf_counter() + PROBE_S
    while num_rounds <= MIN_ROUNDS or time.perf_counter() < end_s:
        for number, way in enumerate(ways):
            start_s = time.perf_counter()
            way()
            took_s = time.perf_counter() - start_s
            best[number] = min(best[number], took_s) if num_rounds else best[number]
        num_rounds += 1
    return best
