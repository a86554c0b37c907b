r"""Formulas compared by computer algebra. Runs inside a worker that may be killed.

math-verify's parser turns LaTeX into an expression tree. Nothing is evaluated on the way: numbers
are made from their digits here, where the library would hand them to sympy's `parse_expr`. Then
both sides are computed with 60 digits: constants once, formulas at several points. Where they
differ, they are not equal, and where they agree everywhere to 40 digits, they are. What cannot be
computed that way goes to math-verify's own comparison.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import latex2sympy2
from math_verify.grader import sympy_expr_eq

from gspo.verifiers.math_equal import decimal_equals
from gspo.verifiers.math_numerics import compute, same_ratio, same_values
from gspo.verifiers.math_reading import Formula, Number, Relation

ROUNDING = 6  # decimals to which math-verify compares floats; there are none, numbers are exact
PRECISION = 15  # digits of math-verify's own numeric comparison
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_FUNCTION = re.compile(r"(?<![\\A-Za-z])(arcsin|arccos|arctan|sin|cos|tan|log|ln|exp)(?![A-Za-z])")


_MIXED = re.compile(r"(?<![0-9.}^_])([0-9]+)\s*\\frac\{([0-9]+)\}\{([0-9]+)\}")


class _Reader(latex2sympy2._Latex2Sympy):  # pyright: ignore[reportPrivateUsage]
    """The parser, with numbers made from their digits, exactly, and nothing computed early."""

    def parse_number(self, text: str) -> Any:
        value = Fraction(text.replace(",", ""))
        return sympy.Rational(value.numerator, value.denominator)

    def convert_binom(self, binom: Any) -> sympy.Expr:
        top, bottom = self.convert_expr(binom.upper), self.convert_expr(binom.lower)
        return sympy.binomial(top, bottom, evaluate=False)


@lru_cache(maxsize=256)
def expression(text: str) -> Any:
    """The tree of a formula. Exception, of whatever kind the parser raises: it is none."""
    config = latex2sympy2.ConversionConfig(lowercase_symbols=False)
    tree: Any = _Reader(is_real=True, config=config).parse(
        _FUNCTION.sub(r"\\\1", _MIXED.sub(_sum, text))
    )
    imaginary = sympy.Symbol("i", real=True)
    return tree.xreplace({imaginary: sympy.I}) if hasattr(tree, "xreplace") else tree


def _sum(found: re.Match[str]) -> str:
    r"""`2\frac{1}{2}` is two and a half, where the parser would multiply."""
    whole, top, bottom = (int(digits) for digits in found.groups())
    if not 0 < top < bottom:
        return found[0]
    return rf"\frac{{{whole * bottom + top}}}{{{bottom}}}"


class Sympy:
    """The algebra of a comparison."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def same(self, left: Number | Formula, right: Number | Formula) -> bool:
        """Two numbers or formulas."""
        for number, other in ((left, right), (right, left)):
            if isinstance(number, Number) and number.exact.decimals is not None:
                tree = _tree(other)
                value = None if tree.free_symbols else compute(tree, {})
                return decimal_equals(number, value, strict=self._strict)
        left_tree, right_tree = _tree(left), _tree(right)
        if left_tree == right_tree:
            return True
        verdict = same_values(left_tree, right_tree, _names(left_tree, right_tree))
        if verdict is None:
            return bool(sympy_expr_eq(left_tree, right_tree, ROUNDING, PRECISION))
        return verdict

    def same_relation(self, left: Relation, right: Relation) -> bool:
        """Everything moved to one side; then one is a multiple of the other, a positive one where
        there is an order."""
        if len(left.signs) != 1 or len(right.signs) != 1:
            return False
        left_tree, right_tree = _difference(left), _difference(right)
        same, sign = same_ratio(left_tree, right_tree, _names(left_tree, right_tree))
        return bool(same) and signs_agree(left.signs[0], right.signs[0], sign)


def signs_agree(left: str, right: str, sign: int) -> bool:
    """The relations' signs, when the one is `sign` times the other."""
    if left == right and left in ("=", "!="):
        return True
    return sign != 0 and right == (left if sign > 0 else FLIPPED.get(left))


def _tree(side: Number | Formula) -> Any:
    if isinstance(side, Formula):
        return expression(side.text)
    value = side.exact.value / 100 if side.percent else side.exact.value
    return sympy.Rational(value.numerator, value.denominator)


def _names(*trees: Any) -> list[str]:
    return sorted({symbol.name for tree in trees for symbol in tree.free_symbols})


def _difference(relation: Relation) -> Any:
    first, last = (expression(side) for side in relation.sides)
    return sympy.Add(first, sympy.Mul(-1, last, evaluate=False), evaluate=False)
