"""The cache by itself: columns in place, rows copied and moved, nothing else touched."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LlamaConfig

from gspo.engines.kv_cache import RowCache


def cache_of(num_rows: int, num_columns: int) -> RowCache:
    config = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=8)
    return RowCache(config, num_rows, num_columns)


def write(cache: RowCache, *rows: float | Sequence[float]) -> list[list[float]]:
    """Columns into the only layer, one head of size 1; the keys that attention would read."""
    states = torch.tensor(rows).reshape(len(rows), 1, -1, 1)
    keys, values = cache.update(states, -states, 0)
    assert torch.equal(values, -keys)
    return keys[:, 0, :, 0].tolist()


def prompts(*rows: Sequence[float]) -> RowCache:
    """Prompts as they were read: padded on the left with 9."""
    longest = max(map(len, rows))
    cache = cache_of(len(rows), longest)
    write(cache, *([9.0] * (longest - len(row)) + list(row) for row in rows))
    return cache


def test_prompts_go_to_their_responses_then_grow() -> None:
    """Two responses of the long prompt, one of the short: it lies right, without its padding."""
    cache, read = cache_of(num_rows=3, num_columns=4), prompts((1.0, 2.0, 3.0), (4.0,))
    cache.put(read, 0, slice(0, 2), 3)
    cache.put(read, 1, slice(2, 3), 1)
    assert write(cache, 5.0, 6.0, 7.0) == [
        [1.0, 2.0, 3.0, 5.0],
        [1.0, 2.0, 3.0, 6.0],
        [0.0, 0.0, 4.0, 7.0],
    ]
    assert cache.length == 4


def test_a_prompt_that_joins_ends_where_the_others_do() -> None:
    cache, read = cache_of(num_rows=2, num_columns=4), prompts((1.0, 2.0))
    cache.put(read, 0, slice(0, 1), 2)
    write(cache, 3.0)
    cache.put(read, 0, slice(1, 2), 2)
    assert write(cache, 4.0, 5.0) == [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 5.0]]


def test_live_rows_take_the_places_of_done_ones() -> None:
    """Rows 0 and 2 of five are done: 3 and 4 fill their places, 1 stays."""
    cache = cache_of(num_rows=5, num_columns=2)
    write(cache, 0.0, 1.0, 2.0, 3.0, 4.0)
    cache.move([3, 1, 4], 0)
    assert write(cache, 5.0, 6.0, 7.0) == [[3.0, 5.0], [1.0, 6.0], [4.0, 7.0]]


def test_dropping_the_last_rows_moves_nothing() -> None:
    cache = cache_of(num_rows=3, num_columns=2)
    write(cache, 0.0, 1.0, 2.0)
    cache.move([0], 0)
    assert write(cache, 3.0) == [[0.0, 3.0]]


def test_columns_that_no_live_row_has_are_not_read_and_used_again() -> None:
    """Row 0 (three columns) leaves row 1 (one); three columns are there, and four come to be."""
    cache, read = cache_of(num_rows=2, num_columns=3), prompts((1.0, 2.0, 3.0), (4.0,))
    cache.put(read, 0, slice(0, 1), 3)
    cache.put(read, 1, slice(1, 2), 1)
    cache.move([1], 2)
    assert cache.length == 1
    assert write(cache, 5.0) == [[4.0, 5.0]]
    assert write(cache, 6.0) == [[4.0, 5.0, 6.0]]


def test_an_empty_cache_begins_again() -> None:
    cache = cache_of(num_rows=1, num_columns=2)
    write(cache, 1.0)
    write(cache, 2.0)
    cache.move([], 0)
    assert cache.length == 0
    assert write(cache, 3.0) == [[3.0]]


def test_what_attention_reads_is_no_copy() -> None:
    cache = cache_of(num_rows=2, num_columns=4)
    states = torch.ones(2, 1, 1, 1)
    first, _ = cache.update(states, states, 0)
    second, _ = cache.update(states, states, 0)
    assert first.data_ptr() == second.data_ptr()
    assert cache.get_mask_sizes(1, 0) == (3, 0)
    assert cache.get_max_length() == 4
