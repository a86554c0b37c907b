"""Counted randomness: the numbers of the published mixer, and what makes them usable."""

from __future__ import annotations

import math

import pytest
import torch

from gspo.engines.counted import row_key, uniforms

MASK = (1 << 64) - 1


def big_int_output(key: int, position: int) -> int:
    """SplitMix64 with Python's unbounded integers: the 64 bits before they become a uniform."""
    z = (key + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw_many(num_rows: int, num_positions: int) -> torch.Tensor:
    keys = torch.tensor(
        [row_key(seed=0, stream="train", step=3, prompt_id="p", sample=i) for i in range(num_rows)]
    )
    columns = [uniforms(keys, position) for position in range(num_positions)]
    return torch.stack(columns, dim=1)


def test_published_outputs_of_splitmix64() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [big_int_output(1234567, t) for t in range(3)] == published
    got = [uniforms(torch.tensor([1234567]), t).item() for t in range(3)]
    assert got == [(value >> 11) / 2**53 for value in published]


@pytest.mark.parametrize("key", [0, 1, -1, 2**63 - 1, -(2**63), 0x0123456789ABCDEF])
def test_equals_unbounded_integers(key: int) -> None:
    positions = [0, 1, 2, 63, 4095, 10**6]
    expected = [(big_int_output(key, t) >> 11) / 2**53 for t in positions]
    assert [uniforms(torch.tensor([key]), t).item() for t in positions] == expected
    rows = uniforms(torch.full((len(positions),), key), torch.tensor(positions))
    assert rows.tolist() == expected


def test_row_keys_are_fixed_for_ever() -> None:
    """A change here changes every recorded run."""
    key = row_key(seed=0, stream="train", step=0, prompt_id="a", sample=0)
    assert key.to_bytes(8, "little", signed=True).hex() == "9b9d147114313f78"
    first = row_key(seed=7, stream="eval", step=12, prompt_id="größer\ud800", sample=3)
    assert first == 8275544711607864877


def test_every_part_of_the_identity_counts() -> None:
    base = {"seed": 1, "stream": "train", "step": 2, "prompt_id": "3", "sample": 4}
    changes = [{}, {"seed": 2}, {"stream": "eval"}, {"step": 3}, {"prompt_id": "4"}, {"sample": 5}]
    swapped = {"step": 4, "sample": 2}
    quoted = {"stream": 'train",2,"3', "prompt_id": "3"}
    keys = {row_key(**{**base, **change}) for change in [*changes, swapped, quoted]}
    assert len(keys) == len(changes) + 2


def test_uniform_in_every_moment_that_matters() -> None:
    values = draw_many(200, 500).flatten()
    n = values.numel()
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 4 / math.sqrt(12 * n)
    assert abs(values.var() - 1 / 12) < 4 * math.sqrt(1 / 180 / n)
    ordered = values.sort().values
    steps = torch.arange(1, n + 1) / n
    distance = torch.maximum(steps - ordered, ordered - steps + 1 / n).max()
    assert distance < 1.95 / math.sqrt(n)  # Kolmogorov-Smirnov at 0.001


@pytest.mark.parametrize(("row_lag", "position_lag"), [(0, 1), (1, 0), (1, 1), (0, 2)])
def test_neighbours_are_not_correlated(row_lag: int, position_lag: int) -> None:
    values = draw_many(200, 500) - 0.5
    near = values[: 200 - row_lag, : 500 - position_lag]
    far = values[row_lag:, position_lag:]
    assert abs((near * far).mean() * 12) < 4 / math.sqrt(near.numel())
