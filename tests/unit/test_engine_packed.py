"""Packed bfloat16 products: the numbers of plain ones, and when they are worth it."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear
from torch.testing import assert_close

from gspo.engines import packed
from gspo.engines.packed import Rates, fastest_s, measure_rates, packed_linear, packs_bfloat16

ONE_ROUNDING = {"rtol": 2.0**-8, "atol": 2.0**-8}


@pytest.fixture(params=["packed", "plain"], autouse=True)
def way(request, monkeypatch):
    """With the private operators, where this machine has them, and without."""
    if request.param == "plain":
        monkeypatch.setattr(packed, "packs_bfloat16", lambda: False)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_small_whole_numbers_come_out_exactly() -> None:
    """8 bits hold them: [1, 2] by rows [3, 4] and [5, -6], plus a bias that bfloat16 has not."""
    weight, bias = torch.tensor([[3.0, 4.0], [5.0, -6.0]]), torch.tensor([0.001, 1.0])
    product = packed_linear(weight, bias, 1)(torch.tensor([[1.0, 2.0]]))
    assert_close(product, torch.tensor([[11.001, -6.0]]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_rows", [1, 3, 64, 200])
@pytest.mark.parametrize("packed_for", [1, 64])
def test_it_is_the_plain_bfloat16_product(num_rows: int, packed_for: int) -> None:
    weight, bias, rows = random(48, 40), random(48), random(num_rows, 40)
    found = packed_linear(weight, bias, packed_for)(rows)
    assert found.dtype == torch.float32
    wanted = linear(rows.bfloat16(), weight.bfloat16()).float() + bias
    assert_close(found, wanted, **ONE_ROUNDING)
    assert_close(found, linear(rows, weight, bias), rtol=0.05, atol=0.1)


def test_rows_may_have_two_dimensions() -> None:
    weight, rows = random(48, 40), random(3, 5, 40)
    found = packed_linear(weight, None, 15)(rows)
    assert_close(found, linear(rows.bfloat16(), weight.bfloat16()).float(), **ONE_ROUNDING)


def test_it_holds_the_weights_as_they_were() -> None:
    weight, rows = random(48, 40).requires_grad_(), random(2, 40)
    apply = packed_linear(weight, None, 2)
    before = apply(rows)
    with torch.no_grad():
        weight.zero_()
    assert_close(apply(rows), before, rtol=0, atol=0)
    assert not before.requires_grad


def test_an_operator_that_is_gone_or_wrong_is_not_used(monkeypatch) -> None:
    def gone(weight, num_rows):
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute")

    def wrong(weight, num_rows):
        return lambda rows: linear(rows, weight) * 1.1

    for replacement in (gone, wrong):
        monkeypatch.setattr(packed, "packed", replacement)
        assert not packs_bfloat16.__wrapped__()


def test_it_pays_from_a_fifth_on() -> None:
    assert Rates(float32=100.0, bfloat16=120.0).bfloat16_pays
    assert not Rates(float32=100.0, bfloat16=119.0).bfloat16_pays


def test_rates_count_two_operations_a_weight_and_row(monkeypatch) -> None:
    """2 rows by 3 x 4 and back: 96 operations, in 1 and 2 microseconds."""
    monkeypatch.setattr(packed, "fastest_s", lambda ways: [1e-6, 2e-6])
    rates = measure_rates(3, 4, 2)
    assert rates.float32 == pytest.approx(0.096)
    assert rates.bfloat16 == pytest.approx(0.048)


def test_rates_of_this_machine_are_numbers() -> None:
    rates = measure_rates(64, 96, 8)
    assert 0 < rates.float32 < 1e6
    assert 0 < rates.bfloat16 < 1e6


def test_the_shortest_time_counts_and_warming_up_does_not(monkeypatch) -> None:
    """A clock that each call moves: 1 s while warming up, then 9, 4 and 7."""
    monkeypatch.setattr(packed, "PROBE_S", 0.0)
    now, steps = [0.0], iter([1.0, 9.0, 4.0, 7.0])
    monkeypatch.setattr(packed.time, "perf_counter", lambda: now[0])

    def way():
        now[0] += next(steps)

    assert fastest_s([way]) == [4.0]
