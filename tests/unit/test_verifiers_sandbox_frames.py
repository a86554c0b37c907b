"""Frames: strict, bounded, whole."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspo.verifiers.frames import FrameError, FrameReader, pack, read_frame, unpack, write_all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def test_a_frame_by_hand():
    assert pack({"a": [1]}) == b'\x00\x00\x00\x09{"a":[1]}'
    assert unpack(b'{"a":[1]}') == {"a": [1]}


@given(st.lists(JSON, max_size=4), st.integers(1, 50))
def test_what_is_packed_comes_back_however_it_is_cut(values, size):
    stream = b"".join(pack(value) for value in values)
    reader, found = FrameReader(), []
    for start in range(0, len(stream), size):
        found += [unpack(payload) for payload in reader.feed(stream[start : start + size])]
    assert found == values
    assert reader.pending == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_frame_error(payload):
    with contextlib.suppress(FrameError):
        unpack(payload)


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"NaN", b"[Infinity]", b'{"a":1,"a":2}', b"\xff", b"1 2", b"[" * 330 + b"]" * 330],
)
def test_no_strict_json_is_refused(payload):
    with pytest.raises(FrameError):
        unpack(payload)


def test_depth_counts_brackets_outside_strings_only():
    assert unpack(b'["[[[[", "\\"[["]', max_depth=1) == ["[[[[", '"[[']
    with pytest.raises(FrameError, match="nests 2 deep, at most 1"):
        unpack(b"[[]]", max_depth=1)


def test_depth_is_read_in_linear_time_of_unclosed_strings():
    with pytest.raises(FrameError):
        unpack(b'\\"' * 10**6)


def test_a_long_frame_is_refused_when_announced_and_when_made():
    with pytest.raises(FrameError, match="announces 4294967295 bytes, at most 10"):
        list(FrameReader(10).feed(b"\xff\xff\xff\xff"))
    payloads = FrameReader(10).feed(pack([1]) + b"\xff\xff\xff\xff")
    assert next(payloads) == b"[1]"
    with pytest.raises(FrameError, match="announces"):
        next(payloads)
    with pytest.raises(FrameError, match="at most 3 may be sent"):
        pack("abc", max_bytes=3)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_no_json_cannot_be_packed(value):
    with pytest.raises(FrameError):
        pack(value)


def test_descriptors():
    reading, writing = os.pipe()
    write_all(writing, pack([1]) + pack("x")[:-1])
    os.close(writing)
    assert read_frame(reading) == [1]
    with pytest.raises(FrameError, match="1 bytes before"):
        read_frame(reading)
    assert read_frame(reading) is None
    os.close(reading)
