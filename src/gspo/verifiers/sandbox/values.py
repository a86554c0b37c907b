"""Plain values as JSON and back: what a program may return.

Plain are None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset and dict, by
their exact types: a subclass may lie about equality, so it does not cross. The dictionaries of
`collections` cross as dict. What JSON has is itself; the rest is an object of one tag:

    {"int": "0x.."}  beyond 2^53     {"float": hex}    {"complex": [hex, hex]}   {"bytes": hex}
    {"tuple": [..]}  {"set": [..]}   {"frozenset": [..]}   {"dict": [[key, value], ..]}

`decode` reads what a hostile program may have written: anything else in it is a ValueError.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

MAX_DEPTH = 100  # of containers; the frame's own limit is above twice that
EXACT_INT = 2**53  # JSON numbers up to here mean the same to every reader

_DICTS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)


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
    if _is_one_of(kind, (tuple, set, frozenset)):
        return {kind.__name__: [encode(entry, depth - 1) for entry in value]}
    if _is_one_of(kind, _DICTS):
        pairs = [[encode(k, depth - 1), encode(v, depth - 1)] for k, v in dict.items(value)]
        return {"dict": pairs}
    raise NotPlain(f"value of type {kind.__module__}.{kind.__qualname__} is not plain")


def _is_one_of(kind: type, kinds: tuple[type, ...]) -> bool:
    """By identity: a metaclass may say that its class equals every other."""
    return any(kind is known for known in kinds)


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
        distinct = len({hash(entry) for entry in entries})
    except TypeError as error:
        raise ValueError(str(error)) from error
    if 2 * distinct < len(entries):
        raise ValueError(f"{len(entries)} entries have {distinct} hashes")
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
