"""Packed float32 products give the plain ones' numbers, and stand back where they do not."""

from __future__ import annotations

import pytest
import torch

from gspo.engines import linear
from gspo.engines.linear import float32_map, packs_float32


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("num_rows", [1, 8, 65])
@pytest.mark.parametrize("with_bias", [True, False])
def test_it_is_the_plain_product(
    packs: bool, num_rows: int, with_bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packs:
        monkeypatch.setattr(linear, "packs_float32", lambda: False)
    generator = torch.Generator().manual_seed(0)
    rows, weight = (torch.randn(n, 40, generator=generator) for n in (num_rows, 24))
    bias = torch.randn(24, generator=generator) if with_bias else None
    exact = rows.double() @ weight.double().T + (bias.double() if bias is not None else 0)
    found = float32_map(weight, bias)(rows)
    assert torch.allclose(found.double(), exact, rtol=0, atol=2e-5)


@pytest.mark.parametrize("failure", [AttributeError, RuntimeError, "other numbers"])
def test_a_packed_product_that_fails_is_not_used(
    failure: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(weight: torch.Tensor, bias: torch.Tensor | None) -> linear.LinearMap:
        if failure == "other numbers":
            return lambda rows: torch.nn.functional.linear(rows, weight, bias) + 1e-3
        raise failure("no such operator")

    monkeypatch.setattr(linear, "packed", packed)
    packs_float32.cache_clear()
    assert not packs_float32()
    monkeypatch.undo()
    packs_float32.cache_clear()
