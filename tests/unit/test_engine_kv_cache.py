"""The cache by itself: columns in place, rows copied and moved, nothing else touched."""

from __future__ import annotations

import torch
from transformers import LlamaConfig

from gspo.engines.kv_cache import RowCache


def states(*rows: float) -> torch.Tensor:
    """One head of size 1, one column: a number a row."""
    return torch.tensor(rows).reshape(-1, 1, 1, 1)


def cache_of(num_rows: int, num_columns: int) -> RowCache:
    config = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=8)
    return RowCache(config, num_rows, num_columns)


def write(cache: RowCache, *rows: float) -> list[list[float]]:
    """One column into the only layer; the keys that attention would read, row by row."""
    keys, values = cache.update(states(*rows), -states(*rows), 0)
    assert torch.equal(values, -keys)
    return keys[:, 0, :, 0].tolist()


def test_prompts_spread_to_responses_then_grow() -> None:
    cache = cache_of(num_rows=3, num_columns=3)
    assert write(cache, 1.0, 2.0) == [[1.0], [2.0]]
    cache.spread(torch.tensor([1, 0, 1]))
    assert write(cache, 3.0, 4.0, 5.0) == [[2.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert cache.length == 2


def test_live_rows_take_the_places_of_done_ones() -> None:
    """Rows 0 and 2 of five are done: 3 and 4 fill their places, 1 stays."""
    cache = cache_of(num_rows=5, num_columns=2)
    write(cache, 0.0, 1.0, 2.0, 3.0, 4.0)
    order = cache.drop(torch.tensor([True, False, True, False, False]))
    assert order.tolist() == [3, 1, 4]
    assert write(cache, 5.0, 6.0, 7.0) == [[3.0, 5.0], [1.0, 6.0], [4.0, 7.0]]


def test_dropping_the_last_rows_moves_nothing() -> None:
    cache = cache_of(num_rows=3, num_columns=2)
    write(cache, 0.0, 1.0, 2.0)
    assert cache.drop(torch.tensor([False, True, True])).tolist() == [0]
    assert write(cache, 3.0) == [[0.0, 3.0]]


def test_what_attention_reads_is_no_copy() -> None:
    cache = cache_of(num_rows=2, num_columns=4)
    first, _ = cache.update(states(1.0, 2.0), states(1.0, 2.0), 0)
    second, _ = cache.update(states(3.0, 4.0), states(3.0, 4.0), 0)
    assert first.data_ptr() == second.data_ptr()
    assert cache.get_mask_sizes(1, 0) == (3, 0)
    assert cache.get_max_length() == 4
