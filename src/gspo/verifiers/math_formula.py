r"""A quick look at a formula: LaTeX into a tree of ours, to be computed at some points.

It serves to refute: two formulas whose values differ are not equal, and the slow parser and its
process need not be asked. What is not read here without doubt is left to them.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from gspo.verifiers.math_numerics import Tree

MAX_DEPTH = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)|(?P<command>\\[A-Za-z]+)|(?P<letter>[A-Za-z])"
    r"|(?P<sign>[-+*/^_!(){}\[\]|,]))"
)
_TWO = Tree("Rational", value=Fraction(2))
_MINUS = Tree("Rational", value=Fraction(-1))
_TEN = Tree("Rational", value=Fraction(10))
_FUNCTIONS = {
    **{name: name for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "exp")},
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "ln": "log", "log": "log",
}  # fmt: skip
_SPLIT_NAMES = re.compile(
    rf"(?<![\\A-Za-z])({'|'.join(sorted(_FUNCTIONS, key=len, reverse=True))})(?![A-Za-z])"
)
_GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
    ]
)
_CONSTANTS = {"e": Tree("Exp1"), "i": Tree("ImaginaryUnit"), "I": Tree("ImaginaryUnit")}
_PAIRS = {r"\lfloor": (r"\rfloor", "floor"), r"\lceil": (r"\rceil", "ceiling"), "|": ("|", "Abs")}
_FACTOR_STARTS = {"(", "{", "|", r"\frac", r"\sqrt", r"\binom", r"\pi", r"\lfloor", r"\lceil"}


class UnreadError(Exception):
    """Not read here."""


@lru_cache(maxsize=1024)
def formula_tree(text: str) -> Tree:
    r"""The tree of a tidied formula.

    >>> formula_tree("2x").kind, formula_tree("2x").args[1].name
    ('Mul', 'x')
    """
    return _Parser(_SPLIT_NAMES.sub(r"\\\1", text)).whole()


def names_in(*trees: Tree) -> list[str]:
    """The variables."""
    found: set[str] = set()
    todo = list(trees)
    while todo:
        tree = todo.pop()
        found |= {tree.name} if tree.name else set()
        todo += tree.args
    return sorted(found)


class _Parser:
    """Recursive descent over tokens."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._next = 0
        self._depth = 0
        end = 0
        while end < len(text):
            found = _TOKEN.match(text, end)
            if found is None:
                raise UnreadError(text[end : end + 20])
            self._tokens.append((found.lastgroup or "", found[0].strip()))
            end = found.end()

    def whole(self) -> Tree:
        tree = self._sum()
        if self._next < len(self._tokens):
            raise UnreadError("more follows")
        return tree

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _accept(self, *signs: str) -> str:
        kind, text = self._peek()
        if text in signs and kind in ("sign", "command"):
            self._next += 1
            return text
        return ""

    def _expect(self, *signs: str) -> str:
        found = self._accept(*signs)
        if not found:
            raise UnreadError(f"wanted {signs}")
        return found

    def _sum(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadError("too deep")
        terms = [self._product()]
        while sign := self._accept("+", "-"):
            term = self._product()
            terms.append(term if sign == "+" else _times(_MINUS, term))
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Tree("Add", tuple(terms))

    def _product(self) -> Tree:
        tree = self._signed()
        divided = False
        while True:
            if self._accept("*", r"\cdot", r"\times"):
                tree = _times(tree, self._signed())
            elif self._accept("/", r"\div"):
                divided = True
                tree = _over(tree, self._signed())
            elif self._starts_factor():
                if divided:
                    raise UnreadError("1/2x has two readings")
                tree = _times(tree, self._power())
            else:
                return tree

    def _starts_factor(self) -> bool:
        kind, text = self._peek()
        if kind == "sign" and text == "|" and self._inside_bars:
            return False
        return (
            kind == "letter"
            or text in _FACTOR_STARTS
            or (kind == "command" and (text[1:] in _FUNCTIONS or text[1:] in _GREEK))
        )

    _inside_bars = False

    def _signed(self) -> Tree:
        negative = False
        while sign := self._accept("+", "-"):
            negative ^= sign == "-"
        tree = self._power()
        return _times(_MINUS, tree) if negative else tree

    def _power(self) -> Tree:
        tree = self._atom()
        while self._accept("!"):
            tree = Tree("factorial", (tree,))
        if self._accept("^"):
            tree = Tree("Pow", (tree, self._script()))
            if self._peek()[1] == "^":
                raise UnreadError("two powers side by side")
        return tree

    def _script(self) -> Tree:
        """What stands behind ^: a group, or one number, letter or constant."""
        if self._peek()[1] == "{":
            return self._group("{", "}")
        if self._accept("-"):
            return _times(_MINUS, self._atom())
        return self._atom()

    def _atom(self) -> Tree:
        kind, text = self._peek()
        if kind == "number":
            self._next += 1
            return self._mixed(Tree("Rational", value=Fraction(text)))
        if kind == "letter":
            self._next += 1
            return self._name(text)
        if text in _PAIRS:
            return self._paired(text)
        if kind == "command":
            self._next += 1
            return self._command(text[1:])
        if text == "(":
            return self._group("(", ")")
        return self._group("{", "}")

    def _group(self, opening: str, closing: str) -> Tree:
        self._expect(opening)
        outer, self._inside_bars = self._inside_bars, False
        tree = self._sum()
        self._inside_bars = outer
        self._expect(closing)
        return tree

    def _paired(self, opening: str) -> Tree:
        closing, kind = _PAIRS[opening]
        self._expect(opening)
        outer, self._inside_bars = self._inside_bars, opening == "|"
        tree = self._sum()
        self._inside_bars = outer
        self._expect(closing)
        return Tree(kind, (tree,))

    def _mixed(self, whole: Tree) -> Tree:
        r"""`2\frac{1}{2}` is two and a half; with other fractions a product."""
        if self._peek()[1] != r"\frac" or whole.value.denominator != 1:
            return whole
        start = self._next
        self._next += 1
        top, bottom = self._group("{", "}"), self._group("{", "}")
        if top.kind == bottom.kind == "Rational" and 0 < top.value < bottom.value:
            return Tree("Rational", value=whole.value + top.value / bottom.value)
        self._next = start
        return whole

    def _name(self, letter: str) -> Tree:
        if self._accept("_"):
            start = self._next
            self._script()
            return Tree(
                "Symbol", name=f"{letter}_{''.join(t for _, t in self._tokens[start : self._next])}"
            )
        if letter in _CONSTANTS:
            return _CONSTANTS[letter]
        if self._peek()[1] == "(":
            raise UnreadError("a function, or a product")
        return Tree("Symbol", name=letter)

    def _command(self, name: str) -> Tree:
        if name in _FUNCTIONS:
            return self._function(name)
        if name == "pi":
            return Tree("Pi")
        if name in _GREEK:
            return self._name(name)
        if name == "frac":
            top = self._group("{", "}")
            return _over(top, self._group("{", "}"))
        if name == "binom":
            top = self._group("{", "}")
            return Tree("binomial", (top, self._group("{", "}")))
        if name == "sqrt":
            degree = self._group("[", "]") if self._peek()[1] == "[" else _TWO
            one = Tree("Rational", value=Fraction(1))
            return Tree("Pow", (self._group("{", "}"), _over(one, degree)))
        raise UnreadError(name)

    def _function(self, name: str) -> Tree:
        kind = _FUNCTIONS[name]
        base = self._script() if name == "log" and self._accept("_") else None
        power = self._script() if self._accept("^") else None
        inverse = power is not None and power.kind == "Mul" and power.args[1].value == 1
        if self._peek()[1] in ("(", "{"):
            argument = self._group(*(("(", ")") if self._peek()[1] == "(" else ("{", "}")))
        else:
            argument = self._bare_argument()
        if inverse:
            if f"a{kind}" not in ("asin", "acos", "atan"):
                raise UnreadError("an inverse")
            return Tree(f"a{kind}", (argument,))
        base = _TEN if name == "log" and base is None else base
        tree = Tree(kind, (argument,) if base is None else (argument, base))
        return tree if power is None else Tree("Pow", (tree, power))

    def _bare_argument(self) -> Tree:
        r"""`\sin 2x`: factors side by side, up to the next function."""
        tree = self._power()
        while (
            self._starts_factor()
            and self._peek()[1][1:] not in _FUNCTIONS
            and self._peek()[1] != "("
        ):
            tree = _times(tree, self._power())
        return tree


def _times(left: Tree, right: Tree) -> Tree:
    return Tree("Mul", (left, right))


def _over(top: Tree, bottom: Tree) -> Tree:
    return Tree("Mul", (top, Tree("Pow", (bottom, _MINUS))))
