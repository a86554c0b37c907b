"""A linear map as the decode loop applies it: the same weight, token after token, to few rows.

oneDNN can keep a weight in the order in which its kernel reads it. On a processor with AVX-512 that
is 1.2 times as fast as the plain product at 64 and 128 rows, and twice at 8 (2 cores). The packed
copy costs one pass over the weight and its size in memory, so an engine holds it for one request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

LinearMap = Callable[[Tensor], Tensor]
LinearMaps = Callable[[Tensor, Tensor | None], LinearMap]

PACK_FOR_ROWS = 64  # a hint; one layout comes out for every hint from 8 rows on, a worse one for 1
SAME = 1e-5  # relative: two ways to sum a few hundred float32 products


def float32_map(weight: Float[Tensor, "N D"], bias: Float[Tensor, "N"] | None) -> LinearMap:
    """x [B, D] to x weight^T + bias, [B, N], in float32.

    The map may hold `weight` itself: build it again after the weight has changed.
    """
    if weight.device.type != "cpu" or not packs_float32():
        return partial(linear, weight=weight, bias=bias)
    return packed(weight, bias, PACK_FOR_ROWS)


@cache
def packs_float32() -> bool:
    """oneDNN's packed product is there, and gives the numbers of the plain one."""
    if not torch.backends.mkldnn.is_available():
        return False
    rows = torch.linspace(-1, 1, 5 * 48).view(5, 48)
    weight = torch.linspace(-1, 1, 32 * 48).view(32, 48).sin()
    bias = torch.linspace(0, 1, 32)
    try:
        found = packed(weight, bias, PACK_FOR_ROWS)(rows)
    except (AttributeError, RuntimeError, TypeError):  # private operators, gone or changed
        return False
    return torch.allclose(found, linear(rows, weight, bias), rtol=SAME, atol=SAME)


def packed(
    weight: Float[Tensor, "N D"], bias: Float[Tensor, "N"] | None, num_rows: int
) -> LinearMap:
    """oneDNN's product with a copy of the weight laid out for about num_rows rows, in the weight's
    dtype. Its operators are private to torch: `packs_float32` and `packs_bfloat16` try them."""
    operators = torch.ops.mkldnn
    copy = operators._reorder_linear_weight(weight.detach().contiguous(), num_rows)
    apply = operators._linear_pointwise.default
    return lambda rows: apply(rows, copy, bias, "none", [], "")
