"""Plain values cross unchanged; nothing else crosses."""

import collections
import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspo.verifiers.frames import pack, unpack
from gspo.verifiers.sandbox.values import NotPlain, decode, encode

HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner).map(tuple) | st.frozensets(inner),
    max_leaves=8,
)
PLAIN = st.recursive(
    HASHABLE | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(HASHABLE, inner)
        | st.sets(HASHABLE)
    ),
    max_leaves=15,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["int", "float", "complex", "bytes", "tuple", "set", "frozenset", "dict", "x"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=20,
)


def kinds(value):
    """The types of a value and of all in it."""
    if isinstance(value, dict):
        return dict, {k: kinds(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [kinds(entry) for entry in value]
    return type(value)


@given(PLAIN)
def test_a_plain_value_comes_back_with_its_types(value):
    back = decode(unpack(pack(encode(value))[4:]))
    assert back == value
    assert kinds(back) == kinds(value)


def test_numbers_by_hand():
    assert encode(2**53) == 2**53
    assert encode(2**53 + 1) == {"int": "0x20000000000001"}
    assert encode(-0.0) == {"float": "-0x0.0p+0"}
    assert math.isnan(decode(encode(float("nan"))))
    assert decode(encode(-(10**6000))) == -(10**6000)


class Equal(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Meta(type):
    def __eq__(cls, other):
        return True

    __hash__ = type.__hash__


class Odd(metaclass=Meta):
    pass


@pytest.mark.parametrize("value", [object(), Odd(), [Odd()], range(3), iter([]), len, {1: Odd()}])
def test_other_types_do_not_cross(value):
    with pytest.raises(NotPlain, match="is not plain"):
        encode(value)


@pytest.mark.parametrize("value", [Equal(1), [Equal(1)], {1: Equal(1)}])
def test_a_subclass_crosses_as_its_content_and_cannot_lie_about_equality(value):
    back = decode(encode(value))
    number = back[0] if isinstance(back, list) else back[1] if isinstance(back, dict) else back
    assert type(number) is int
    assert number == 1


def test_dictionaries_of_collections_cross_as_dict():
    assert decode(encode(collections.Counter("aab"))) == {"a": 2, "b": 1}
    assert type(decode(encode(collections.defaultdict(list, a=[1])))) is dict


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: (v,), lambda v: {v: v} if v == 0 else {0: v}]
)
def test_the_deepest_value_fits_a_frame(wrap):
    value = 0
    for _ in range(100):
        value = wrap(value)
    assert decode(unpack(pack({"value": encode(value)})[4:])["value"]) == value


def test_cycles_and_depth_end():
    cycle = []
    cycle.append(cycle)
    with pytest.raises(NotPlain, match="more than 100 deep"):
        encode(cycle)


@given(JSON)
def test_hostile_json_is_a_value_or_a_value_error(data):
    with contextlib.suppress(ValueError):
        decode(data)


@pytest.mark.parametrize(
    "data",
    [
        {"int": "10"},
        {"int": 10},
        {"float": "1e999999x"},
        {"float": "0x1p99999"},
        {"set": [[1]]},
        {"set": 3},
        {"dict": [[1]]},
        {"dict": [[[1], 2]]},
        {"tuple": [], "list": []},
        {},
        {"pickle": ""},
        1.5,
        {"complex": ["0x0p+0"]},
        {"set": [{"int": hex(i * (2**61 - 1))} for i in range(1, 2000)]},
        {"set": [*range(2000), *(i * (2**61 - 1) for i in range(1, 200))]},
    ],
)
def test_what_encode_never_makes_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011 - of any wording
        decode(data)
