"""Values that a test writes down, read without running anything.

Literals, arithmetic of numbers, and the constructors that have no literal: `set()`, `float("inf")`,
`[0] * 5`, `2 ** 10`. Names stand for values given before.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

MAX_BITS = 100_000  # of a number that a power makes
MAX_ENTRIES = 1_000_000  # of a sequence that a product makes

_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (set, frozenset, list, tuple, dict, float, int, str, bytes, complex, sorted)
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}


class NoLiteral(ValueError):  # noqa: N818 - says what an expression is not
    """The expression is no value that can be read."""


def literal(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression; NoLiteral where reading it would mean running it.

    >>> literal(ast.parse("[float('inf'), -2 ** 3, set()]", mode="eval").body, {})
    [inf, -8, set()]
    """
    try:
        return _value(node, names)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise NoLiteral(f"{ast.unparse(node)[:80]} is no literal: {error}") from error


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name) if name in names:
            return names[name]
        case ast.List(entries):
            return [_value(entry, names) for entry in entries]
        case ast.Tuple(entries):
            return tuple(_value(entry, names) for entry in entries)
        case ast.Set(entries):
            return {_value(entry, names) for entry in entries}
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {_value(_key(k), names): _value(v, names) for k, v in pairs}
        case ast.UnaryOp(sign, operand):
            return _UNARY[type(sign)](_value(operand, names))
        case ast.BinOp(left, sign, right) if type(sign) in _BINARY:
            return _operation(type(sign), _value(left, names), _value(right, names))
        case ast.Call(ast.Name(name), arguments, []) if name in _CONSTRUCTORS:
            return _CONSTRUCTORS[name](*[_value(argument, names) for argument in arguments])
        case _:
            raise NoLiteral(f"{type(node).__name__} would have to be run")


def _key(node: ast.expr | None) -> ast.expr:
    if node is None:
        raise NoLiteral("** in a dict")
    return node


def _operation(sign: type[ast.operator], left: Any, right: Any) -> Any:
    """Arithmetic, with its size known before it is done."""
    match sign(), left, right:
        case ast.Pow(), int(), int() if abs(left).bit_length() * abs(right) > MAX_BITS:
            raise NoLiteral(f"a power beyond {MAX_BITS} bits")
        case (ast.Mult(), list() | tuple() | str() | bytes(), int()) if (
            len(left) * right > MAX_ENTRIES
        ):
            raise NoLiteral(f"a product of more than {MAX_ENTRIES} entries")
        case (ast.Mult(), int(), list() | tuple() | str() | bytes()) if (
            len(right) * left > MAX_ENTRIES
        ):
            raise NoLiteral(f"a product of more than {MAX_ENTRIES} entries")
        case _:
            pass
    return _BINARY[sign](left, right)
