"""The algebra of the verifier's own process: it refutes, and leaves the rest undecided."""

from __future__ import annotations

from fractions import Fraction

from gspo.verifiers.math_equal import UndecidedError, decimal_equals
from gspo.verifiers.math_formula import UnreadError, formula_tree, names_in
from gspo.verifiers.math_numerics import (
    NotComputableError,
    TooLargeError,
    Tree,
    compute,
    same_ratio,
    same_values,
)
from gspo.verifiers.math_reading import Formula, Number, Relation

_MINUS = Tree("Rational", value=Fraction(-1))


class Refutation:
    """Decides what values decide at once: that two formulas differ, and what a decimal is of."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict

    def same(self, left: Number | Formula, right: Number | Formula) -> bool:
        """False, or undecided; of a decimal and a constant also True."""
        try:
            for number, other in ((left, right), (right, left)):
                if isinstance(number, Number) and number.exact.decimals is not None:
                    tree = _tree(other)
                    value = None if names_in(tree) else compute(tree, {})
                    return decimal_equals(number, value, strict=self._strict)
            left_tree, right_tree = _tree(left), _tree(right)
            if same_values(left_tree, right_tree, names_in(left_tree, right_tree)) is False:
                return False
        except TooLargeError:
            return False
        except (UnreadError, NotComputableError) as error:
            raise UndecidedError from error
        raise UndecidedError

    def same_relation(self, left: Relation, right: Relation) -> bool:
        """False, or undecided."""
        if len(left.signs) != 1 or len(right.signs) != 1:
            return False
        try:
            left_tree, right_tree = _difference(left), _difference(right)
            same, _ = same_ratio(left_tree, right_tree, names_in(left_tree, right_tree))
        except UnreadError as error:
            raise UndecidedError from error
        if same is False:
            return False
        raise UndecidedError


def _tree(side: Number | Formula) -> Tree:
    if isinstance(side, Formula):
        return formula_tree(side.text)
    value = side.exact.value
    return Tree("Rational", value=value / 100 if side.percent else value)


def _difference(relation: Relation) -> Tree:
    first, last = (formula_tree(side) for side in relation.sides)
    return Tree("Add", (first, Tree("Mul", (_MINUS, last))))
