"""Changes that a Python file makes to an object after the call that made it. Read, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Functions whose first argument they change, or copy with other values.
_CHANGING = frozenset({"setattr", "replace", "update", "vars"})


def changes_after(tree: ast.Module, made: ast.Call, holder_call: str) -> Iterator[tuple[int, str]]:
    """Line of each, and what happens there. holder_call: what keeps the object under `.args`, as GRPOTrainer does."""
    holders = _holders(tree, made, holder_call)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=inner, attr=key, ctx=ast.Store() | ast.Del()) if (
                ast.unparse(inner) in holders
            ):
                yield node.lineno, f"{key} is set"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if (
                name in _CHANGING and (first is made or ast.unparse(first) in holders)
            ):
                yield node.lineno, f"{name}({ast.unparse(first)}, ...) comes"
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if (
                method.startswith("set_") and ast.unparse(inner) in holders
            ):
                yield node.lineno, f"{method}(...) comes"
            case _:
                pass


def _holders(tree: ast.Module, made: ast.Call, holder_call: str) -> set[str]:
    """Every name that the object may have: `args`, `self.args`, `trainer.args`, and other names of these."""
    assigned = list(_assignments(tree))
    found: set[str] = set()
    for target, value in assigned:
        if value is made:
            found.add(target)
        elif isinstance(value, ast.Call) and ast.unparse(value.func).endswith(holder_call):
            found.add(f"{target}.args")
    while more := {target for target, value in assigned if ast.unparse(value) in found} - found:
        found |= more
    return found


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairs(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield ast.unparse(target), value
            case ast.NamedExpr(target=target, value=value):
                yield target.id, value
            case _:
                pass


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """`a, b = 1, 2` assigns twice."""
    match target, value:
        case (ast.Tuple(elts=names), ast.Tuple(elts=values)) if len(names) == len(values):
            for name, each in zip(names, values, strict=True):
                yield from _pairs(name, each)
        case _:
            yield ast.unparse(target), value
