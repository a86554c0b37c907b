"""Plain values as JSON and back: what a program may return.

Plain are None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset and dict. A value
of a subclass (a named tuple, a Counter, an IntEnum) crosses as what it holds, read by the plain
type's own methods: it may lie about equality, its content cannot. What JSON has is itself; the
rest is an object of one tag:

    {"int": "0x.."}  beyond 2^53     {"float": hex}    {"complex": [hex, hex]}   {"bytes": hex}
    {"tuple": [..]}  {"set": [..]}   {"frozenset": [..]}   {"dict": [[key, value], ..]}

`decode` reads what a hostile program may have written: anything else in it is a ValueError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

MAX_DEPTH = 100  # of containers; a dict in JSON is three deep, and a frame may be 320
EXACT_INT = 2**53  # JSON numbers up to here mean the same to every reader

MAX_SAME_HASH = 100  # entries: a set compares each pair of them, 100,000 would take minutes

#: Of a subclass: its content as the plain type.
_CONTENT: dict[type[Any], Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: complex.__add__(value, 0j),
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}


class NotPlain(ValueError):  # noqa: N818 - a verdict on a value, raised far below its reader
    """The value, or something in it, is of no plain type, or nests too deep."""


def encode(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The JSON of a plain value; NotPlain for any other.

    >>> encode((1, 0.5, {"a": 2**60}))
    {'tuple': [1, {'float': '0x1.0000000000000p-1'}, {'dict': [['a', {'int': '0x1000000000000000'}]]}]}
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -EXACT_INT <= value <= EXACT_INT else {"int": hex(value)}
    if kind is float:
        return {"float": value.hex()}
    if kind is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if depth == 0:
        raise NotPlain(f"value nests more than {MAX_DEPTH} deep")
    if kind is list:
        return [encode(entry, depth - 1) for entry in value]
    if kind is tuple or kind is set or kind is frozenset:
        return {kind.__name__: [encode(entry, depth - 1) for entry in value]}
    if kind is dict:
        return {"dict": [[encode(k, depth - 1), encode(v, depth - 1)] for k, v in value.items()]}
    return encode(_content(value, kind), depth)


def _content(value: Any, kind: type) -> Any:
    """By the real bases: a class may lie about its own, and a metaclass about equality."""
    for plain, content in _CONTENT.items():
        if issubclass(kind, plain) and kind is not plain:
            return content(value)
    raise NotPlain(f"value of type {kind.__module__}.{kind.__qualname__} is not plain")


def decode(data: Any, depth: int = MAX_DEPTH) -> Any:
    """The value of JSON that `encode` could have made; ValueError for any other."""
    kind = type(data)
    if data is None or kind in (bool, str, int):
        return data
    if kind not in (list, dict):
        raise ValueError(f"a bare {kind.__name__} stands where a tagged value was wanted")
    if kind is list:
        return list(_entries(data, depth))
    if len(data) != 1:
        raise ValueError(f"an object has {len(data)} tags, wanted one")
    ((tag, content),) = data.items()
    if tag not in _READERS:
        raise ValueError(f"unknown tag {tag[:20]!r}")
    return _READERS[tag](content, depth)


def _entries(content: Any, depth: int) -> Iterable[Any]:
    if type(content) is not list:
        raise ValueError("a container's content is no list")
    if depth == 0:
        raise ValueError(f"value nests more than {MAX_DEPTH} deep")
    return (decode(entry, depth - 1) for entry in content)


def _text(content: Any) -> str:
    if type(content) is not str:
        raise ValueError("a tagged number is no text")
    return content


def _int(content: Any, depth: int) -> int:
    if not _text(content).lstrip("-").startswith("0x"):
        raise ValueError("a tagged int is not hexadecimal")
    return int(content, 16)


def _float(content: Any, depth: int) -> float:
    try:
        return float.fromhex(_text(content))
    except OverflowError as error:
        raise ValueError(str(error)) from error


def _complex(content: Any, depth: int) -> complex:
    if type(content) is not list or len(content) != 2:
        raise ValueError("a complex number has not two parts")
    return complex(_float(content[0], depth), _float(content[1], depth))


def _bytes(content: Any, depth: int) -> bytes:
    return bytes.fromhex(_text(content))


def _hashable(kind: type[Any]) -> Callable[[Any, int], Any]:
    def read(content: Any, depth: int) -> Any:
        return kind(_hashed(list(_entries(content, depth))))

    return read


def _hashed(entries: list[Any]) -> list[Any]:
    """Entries that can be hashed, and not made to collide: that would take the reader minutes."""
    try:
        counts = Counter(hash(entry) for entry in entries)
    except TypeError as error:
        raise ValueError(str(error)) from error
    most = max(counts.values(), default=0)
    if most > MAX_SAME_HASH:
        raise ValueError(f"{most} of {len(entries)} entries have one hash")
    return entries


def _dict(content: Any, depth: int) -> dict[Any, Any]:
    if type(content) is not list or depth == 0:
        raise ValueError("a dict is no list of pairs, or nests too deep")
    pairs = [list(_entries(pair, depth)) for pair in content]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("an entry of a dict is no pair")
    return dict(zip(_hashed([key for key, _ in pairs]), (value for _, value in pairs), strict=True))


_READERS: dict[str, Callable[[Any, int], Any]] = {
    "int": _int,
    "float": _float,
    "complex": _complex,
    "bytes": _bytes,
    "tuple": lambda content, depth: tuple(_entries(content, depth)),
    "set": _hashable(set),
    "frozenset": _hashable(frozenset),
    "dict": _dict,
}
