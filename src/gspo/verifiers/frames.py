"""Length-prefixed JSON frames between a process and one it does not trust.

A frame is 4 bytes, the payload's length big-endian, and the payload: JSON in UTF-8. Nothing is
ever unpickled. What arrives may be written by a hostile program, so size and depth are checked
before anything is parsed, and JSON is strict: no NaN, no repeated keys.

This module knows only the standard library: workers load it by itself.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 16 * 2**20  # of a payload: above any answer, below what hurts the parent
MAX_DEPTH = 320  # brackets within brackets: Python's parser recurses, and stops at 1000

# Possessive, and an unclosed string ends with the payload: linear time on any input.
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {bracket: 1 if bracket in b"[{" else -1 for bracket in b"[]{}"}


class FrameError(ValueError):
    """Bytes that are no frame, or a frame beyond the limits; or a value that is no JSON."""


def pack(value: Any, max_bytes: int = MAX_FRAME_BYTES) -> bytes:
    """The frame of a JSON value, header and all.

    >>> pack([1, None])
    b'\\x00\\x00\\x00\\x08[1,null]'
    """
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"value is not JSON: {error}") from error
    payload = text.encode("ascii")
    if len(payload) > max_bytes:
        raise FrameError(f"frame has {len(payload)} bytes, at most {max_bytes} may be sent")
    return HEADER.pack(len(payload)) + payload


def unpack(payload: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The JSON value of a payload; FrameError for anything that is not strict JSON.

    >>> unpack(b'{"a": [1, "[["]}', max_depth=2)
    {'a': [1, '[[']}
    """
    deepest = _depth(payload)
    if deepest > max_depth:
        raise FrameError(f"frame nests {deepest} deep, at most {max_depth} is read")
    try:
        return json.loads(
            payload.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise FrameError(f"frame is not strict JSON: {str(error)[:200]}") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte to a blocking descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(descriptor: int, max_bytes: int = MAX_FRAME_BYTES) -> Any:
    """The next frame's value from a blocking descriptor; None at a clean end."""
    header = _read_exactly(descriptor, HEADER.size)
    if not header:
        return None
    return unpack(_read_exactly(descriptor, _length(header, max_bytes), whole=True))


class FrameReader:
    """Cuts a stream into payloads, however it arrives. Over-long frames raise as soon as announced."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that are whole now, in order; those before an over-long one are given too."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            end = HEADER.size + _length(self._buffer[: HEADER.size], self._max_bytes)
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            yield payload

    @property
    def pending(self) -> int:
        """Bytes of a frame that has begun and is not whole."""
        return len(self._buffer)


def _length(header: bytes | bytearray, max_bytes: int) -> int:
    (length,) = HEADER.unpack(header)
    if length > max_bytes:
        raise FrameError(f"frame announces {length} bytes, at most {max_bytes} are read")
    return length


def _read_exactly(descriptor: int, num_bytes: int, whole: bool = False) -> bytes:
    data = bytearray()
    while len(data) < num_bytes:
        chunk = os.read(descriptor, min(num_bytes - len(data), 1 << 20))
        if not chunk:
            if data or whole:
                raise FrameError(f"stream ended {num_bytes - len(data)} bytes before its frame did")
            return b""
        data += chunk
    return bytes(data)


def _depth(payload: bytes) -> int:
    """Deepest nesting, by counting brackets outside strings."""
    brackets = _STRINGS.sub(b"", payload).translate(None, _NO_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
