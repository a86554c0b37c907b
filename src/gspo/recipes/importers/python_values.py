"""Values of a Python file as its text states them: literals, constants of the file, arithmetic.

The file is parsed and never run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LARGEST_POWER = 64  # exponents; 2**64 bytes is more than anybody sets
LARGEST_NUMBER = 2**53  # whole numbers up to here are exact as floats

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}


_DTYPES = frozenset({"float32", "float16", "bfloat16", "float64"})
_CONDITIONS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)
#: Methods of lists and dictionaries that change them.
_MUTATING = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "popitem",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
    ]
)


class UnreadableError(Exception):
    """An expression whose value only running the file would tell."""


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that the file assigns exactly once, to an expression. A name that a loop, an argument,
    an import, `with`, `del` or a second assignment may change is none."""
    assigned: dict[str, ast.expr] = {}
    stores: dict[str, int] = {}
    for node in ast.walk(tree):
        for name in _stored(node):
            stores[name] = stores.get(name, 0) + 1
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                assigned[name] = value
            case _:
                pass
    under_condition = _conditional_names(tree)
    return {
        name: value
        for name, value in assigned.items()
        if stores[name] == 1 and name not in under_condition
    }


def _stored(node: ast.AST) -> list[str]:
    """Names that a node gives a value or changes in place. Twice where it does more than assign."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return [name, name]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
            method in _MUTATING
        ):
            return [name, name]
        case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            return [name, name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name, name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name, name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            names = [alias.asname or alias.name.partition(".")[0] for alias in aliases]
            return names * 2
        case _:
            return []


def _conditional_names(tree: ast.Module) -> set[str]:
    """Names that are assigned where a condition or a loop decides whether they are."""
    inside: set[str] = set()
    for node in ast.walk(tree):
        if _is_main_guard(node):
            continue
        if isinstance(node, _CONDITIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    inside.add(inner.id)
    return inside


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


def value_of(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> Any:
    """The value of an expression. UnreadableError: it is not stated in the text."""
    if depth > 50:
        raise UnreadableError("its constants go round in a circle")
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in names:
            return value_of(names[name], names, depth + 1)
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _DTYPES:
            return name
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [value_of(item, names, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
            return {
                str(value_of(key, names, depth + 1)): value_of(value, names, depth + 1)
                for key, value in zip(keys, values, strict=True)
                if key is not None
            }
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, value_of(operand, names, depth + 1))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, value_of(left, names, depth + 1), value_of(right, names, depth + 1))
        case _:
            raise UnreadableError(f"{ast.unparse(node)!r} is no literal, constant or arithmetic")


def _unary(op: ast.unaryop, value: Any) -> Any:
    if type(op) not in _UNARY or not (isinstance(op, ast.Not) or _is_number(value)):
        raise UnreadableError(f"{type(op).__name__} of {value!r} is no arithmetic of numbers")
    return _UNARY[type(op)](value)


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if type(op) not in _BINARY or not (_is_number(left) and _is_number(right)):
        raise UnreadableError("only + - * / // % ** of numbers are worked out")
    if isinstance(op, ast.Pow) and (abs(right) > LARGEST_POWER or abs(left) > LARGEST_NUMBER):
        raise UnreadableError(f"{left} ** {right} is too large")
    try:
        result = _BINARY[type(op)](left, right)
    except (ArithmeticError, ValueError) as error:
        raise UnreadableError(f"it cannot be worked out: {error}") from error
    if not _is_number(result):
        raise UnreadableError("its value is no real number")
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
