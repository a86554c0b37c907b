"""Counted randomness: one uniform per token, a pure function of what the token is for.

No generator is advanced, so batch shape, order of prompts, rows that leave early, resume and
paired comparison never change the numbers of a sample.

A row (one response) hashes its identity once to a 64-bit key; the uniform of position t is output
t of the SplitMix64 sequence that starts at the key (Steele, Lea, Flood 2014, "Fast splittable
pseudorandom number generators", figure 16).
"""

from __future__ import annotations

import hashlib
import json

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

KEY_BYTES = 8
MASK_64 = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15  # odd, 2^64 / golden ratio: SplitMix64's step
MIX_1 = 0xBF58476D1CE4E5B9  # the two multipliers of SplitMix64's finaliser
MIX_2 = 0x94D049BB133111EB
MANTISSA_BITS = 53  # all that a float64 in [0, 1) can hold evenly spaced


def row_key(*, seed: int, stream: str, step: int, prompt_id: str, sample: int) -> int:
    """64-bit key of one response, as a signed integer that fits an int64 tensor.

    The five parts are written as a JSON list, so ("ab", 1) and ("a", "b1") can never meet.
    """
    identity = json.dumps([seed, stream, step, prompt_id, sample], separators=(",", ":"))
    digest = hashlib.blake2b(identity.encode("ascii"), digest_size=KEY_BYTES).digest()
    return int.from_bytes(digest, "little", signed=True)


def uniforms(keys: Int64[Tensor, "B"], position: int | Int64[Tensor, "B"]) -> Float64[Tensor, "B"]:
    """One number in [0, 1) a row, for the response token at `position` (counted from 0)."""
    if isinstance(position, int):
        step: int | Tensor = _signed((position + 1) * GAMMA)
    else:
        step = (position + 1) * _signed(GAMMA)
    mixed = _mix(keys + step)
    return _shift_right(mixed, 64 - MANTISSA_BITS).double() * 2.0**-MANTISSA_BITS


def _mix(state: Int64[Tensor, "B"]) -> Int64[Tensor, "B"]:
    """SplitMix64's finaliser; int64 products wrap as unsigned ones do, bit for bit."""
    state = (state ^ _shift_right(state, 30)) * _signed(MIX_1)
    state = (state ^ _shift_right(state, 27)) * _signed(MIX_2)
    return state ^ _shift_right(state, 31)


def _shift_right(values: Int64[Tensor, "B"], bits: int) -> Int64[Tensor, "B"]:
    """Logical shift: torch's own copies the sign bit into the top, so those bits are cleared."""
    return torch.bitwise_and(values >> bits, (1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The int64 with the same 64 bits."""
    value &= MASK_64
    return value - (1 << 64) if value >> 63 else value
