"""Is a text no more than numbers, words, lists and short arithmetic?

For score functions of others that hand an answer to `eval`. Nothing that passes can reach a name
with an underscore, an attribute, a keyword or a call but those of elementary functions, nor make a
number that takes long to write.
"""

from __future__ import annotations

import ast

MAX_CHARACTERS = 2000
MAX_DIGITS = 30
MAX_EXPONENT = 64
FUNCTIONS = frozenset(
    {
        "Abs",
        "Integral",
        "abs",
        "acos",
        "asin",
        "atan",
        "cos",
        "cosh",
        "exp",
        "ln",
        "log",
        "sec",
        "sin",
        "sinh",
    }
    | {"sqrt", "tan", "tanh"}
)
ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub),
)


def is_harmless(text: str) -> bool:
    """True for one expression of the kind above, or for lines of words and numbers alone.

    >>> is_harmless("[[1, 0], [0, 1]]"), is_harmless("x**3/3 + log(x) + C"), is_harmless("1 0\\n0 1")
    (True, True, True)
    >>> is_harmless("__import__('os').system('x')"), is_harmless("9**9**9")
    (False, False)
    """
    if len(text) > MAX_CHARACTERS:
        return False
    # A text that is no expression is refused by `eval` too, but a parser may add what is missing.
    if all((word.isalnum() or word == "_") and len(word) <= MAX_DIGITS for word in text.split()):
        return True
    try:
        tree = ast.parse(text.replace("^", "**").strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_harmless_node(node) for node in ast.walk(tree))


def _is_harmless_node(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return _is_harmless_constant(node.value)
    if isinstance(node, ast.Name):
        return "_" not in node.id
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        return named and not node.keywords
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _is_harmless_exponent(node.right) and not any(
            isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow)
            for inner in ast.walk(node.left)
        )
    return isinstance(node, ALLOWED)


def _is_harmless_constant(value: object) -> bool:
    if isinstance(value, str):
        return "_" not in value
    return isinstance(value, int | float) and abs(value) < 10**MAX_DIGITS


def _is_harmless_exponent(node: ast.AST) -> bool:
    """A small number that is written down, or a quotient of two, as in x**(3/2)."""
    match node:
        case ast.UnaryOp(operand=operand):
            return _is_harmless_exponent(operand)
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return _is_harmless_exponent(left) and _is_harmless_exponent(right)
        case ast.Constant(value=int() | float() as value):
            return abs(value) <= MAX_EXPONENT
        case _:
            return False
