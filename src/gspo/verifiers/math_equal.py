r"""Are two answers the same? Shapes are compared here; formulas are left to an `Algebra`.

The relation is symmetric. What counts:

- Numbers are compared exactly. A decimal equals a number it is rounded or cut from, when the two
  differ by less than 1e-4 of it (1e-6 when the other has an end as well): 0.3333333 is 1/3, 0.33 is not.
- 28% equals 0.28, and 28 where that is a whole number. A unit on one side is dropped.
- Bare lists and sets have no order, and repetitions count in lists; tuples and intervals have, and their brackets count. A bare
  list in order equals the tuple. Every element must be there, and no other.
- `x=5` equals 5, and `0<x<2` equals (0,2), in both directions. Equations are equal when one is a multiple of
  the other.

strict: decimals are exact, units and percent signs must be written on both sides or on neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from gspo.verifiers.math_numerics import as_fraction
from gspo.verifiers.math_reading import (
    Formula,
    Matrix,
    Number,
    Opaque,
    Ordered,
    Relation,
    Several,
    Shape,
    Union,
    Words,
    as_list,
    read,
)
from gspo.verifiers.math_text import key

NEAR = Fraction(1, 10**4)  # relative; 4 digits of a third are no third
NEAR_DECIMAL = Fraction(1, 10**6)  # between two numbers that both end: 1234.6 is not 1234.56
DECIMALS, COMPUTED = 30, Fraction(1, 10**50)  # of a computed value that is a decimal

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LETTERS = re.compile(r"(?:\\[A-Za-z]+|[A-Za-z]|[\s+\-*'()_{},]|_[0-9]|\\cdot)+")
_VARIABLE = re.compile(r"\\?[A-Za-z]+(?:_\{?\w+\}?)?|[A-Za-z]\([A-Za-z](?:,\s*[A-Za-z])*\)")


_PRODUCT = re.compile("[a-z]{2,3}")


class UndecidedError(Exception):
    """Only an `Algebra` can tell."""


@runtime_checkable
class Algebra(Protocol):
    """Compares what has to be computed. strict: as above."""

    def same(self, left: Number | Formula, right: Number | Formula) -> bool: ...
    def same_relation(self, left: Relation, right: Relation) -> bool: ...


def texts_equal(left: str, right: str, algebra: Algebra, *, strict: bool = False) -> bool:
    """Whether two tidied answers are the same."""
    if key(left) == key(right):
        return True
    left_shape, right_shape = read(left), read(right)
    # "100,200" is a number, unless the other answer shows that it is a list.
    if isinstance(right_shape, Several):
        left_shape = as_list(left_shape, left) or left_shape
    if isinstance(left_shape, Several):
        right_shape = as_list(right_shape, right) or right_shape
    return Comparison(algebra, strict).same(left_shape, right_shape)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules of one comparison."""

    algebra: Algebra
    strict: bool = False

    def same(self, left: Shape, right: Shape) -> bool:
        """Any two shapes."""
        if isinstance(left, Opaque) or isinstance(right, Opaque):
            return left == right
        if isinstance(left, Relation) or isinstance(right, Relation):
            return self._relation(left, right)
        if isinstance(left, Union) or isinstance(right, Union):
            return self._unordered(_pieces(left), _pieces(right))
        if isinstance(left, Ordered) and isinstance(right, Ordered):
            return self._ordered(left, right)
        if isinstance(left, Ordered | Several) or isinstance(right, Ordered | Several):
            return self._collection(left, right)
        if isinstance(left, Matrix) or isinstance(right, Matrix):
            return self._matrix(left, right)
        if isinstance(left, Words) or isinstance(right, Words):
            return _word(left) == _word(right) is not None or self._product(left, right)
        return self._leaf(left, right)

    def _leaf(self, left: Number | Formula, right: Number | Formula) -> bool:
        if left.unit != right.unit and (self.strict or (left.unit and right.unit)):
            return False
        if isinstance(left, Number) and isinstance(right, Number):
            return self._numbers(left, right)
        if (
            isinstance(left, Formula)
            and isinstance(right, Formula)
            and _bare_key(left) == _bare_key(right)
        ):
            return True
        if _is_infinity(left) or _is_infinity(right):
            return False
        return self.algebra.same(left, right)

    def _numbers(self, left: Number, right: Number) -> bool:
        if left.percent != right.percent:
            share, plain = (left, right) if left.percent else (right, left)
            if share.exact.value / 100 == plain.exact.value:
                return True
            whole = plain.exact.value.denominator == 1 and plain.exact.decimals is None
            return not self.strict and whole and share.exact.value == plain.exact.value
        if left.exact.value == right.exact.value:
            return True
        return not self.strict and (
            rounded_from(left, right.exact.value) or rounded_from(right, left.exact.value)
        )

    def _product(self, left: Shape, right: Shape) -> bool:
        r"""`xy` may be a word, or else x times y: so it is beside a formula."""
        words, formula = (left, right) if isinstance(left, Words) else (right, left)
        if not (
            isinstance(words, Words) and isinstance(formula, Formula) and len(formula.text) > 1
        ):
            return False
        return bool(_PRODUCT.fullmatch(words.text)) and self.algebra.same(
            Formula(words.text), formula
        )

    def _collection(self, left: Shape, right: Shape) -> bool:
        left_named, right_named = _by_name(left), _by_name(right)
        if (left_named is None) != (
            right_named is None
        ):  # x=1, y=2 and (1,2): the order is that of names
            named, other = (left_named, right) if left_named else (right_named, left)
            if isinstance(other, Several) and not other.braces:
                return self._in_order(named or (), other.items)
            left, right = Several(named or (), bare=True), other
        for set_, other in ((left, right), (right, left)):
            if isinstance(set_, Several) and set_.braces and not isinstance(other, Several):
                return (
                    len(set_.items) == 1
                    and not _is_set(set_.items[0])
                    and self.same(set_.items[0], other)
                )
        if isinstance(left, Ordered) or isinstance(right, Ordered):
            tuple_, list_ = (left, right) if isinstance(left, Ordered) else (right, left)
            if not (isinstance(tuple_, Ordered) and isinstance(list_, Several) and list_.bare):
                return False
            brackets = tuple_.opening + tuple_.closing
            plain = brackets == "()" or (brackets == "[]" and len(tuple_.items) > 2)
            return plain and self._in_order(tuple_.items, list_.items)
        if not any(isinstance(side, Several) and side.braces for side in (left, right)):
            return self._counted(_items(left), _items(right))
        return self._unordered(_items(left), _items(right))

    def _counted(self, left: Sequence[Shape], right: Sequence[Shape]) -> bool:
        """Each has a partner of its own: 2, 2, 3 is not 2, 3."""
        rest = list(right)
        for a in left:
            partner = next((index for index, b in enumerate(rest) if self.same(a, b)), None)
            if partner is None:
                return False
            del rest[partner]
        return not rest

    def _ordered(self, left: Ordered, right: Ordered) -> bool:
        brackets = (left.opening, left.closing) == (right.opening, right.closing)
        if (
            not brackets and len(left.items) <= 2
        ):  # an interval's brackets say whether its ends are in it
            return False
        return self._in_order(left.items, right.items)

    def _in_order(self, left: Sequence[Shape], right: Sequence[Shape]) -> bool:
        return len(left) == len(right) and all(map(self.same, left, right))

    def _unordered(self, left: Sequence[Shape], right: Sequence[Shape]) -> bool:
        """Each has a partner: repetitions do not count."""
        return all(any(self.same(a, b) for b in right) for a in left) and all(
            any(self.same(a, b) for a in left) for b in right
        )

    def _matrix(self, left: Shape, right: Shape) -> bool:
        if not (isinstance(left, Matrix) and isinstance(right, Matrix)):
            return False
        if left.kind != right.kind or len(left.rows) != len(right.rows):
            return False
        return all(map(self._in_order, left.rows, right.rows))

    def _relation(self, left: Shape, right: Shape) -> bool:
        if not (isinstance(left, Relation) and isinstance(right, Relation)):
            relation, other = (left, right) if isinstance(left, Relation) else (right, left)
            assert isinstance(relation, Relation)  # noqa: S101
            if isinstance(other, Union):
                return self._unordered(_pieces(Union((relation,))), _pieces(other))
            inside = unwrapped(relation) if _is_equation(relation) else as_interval(relation)[1]
            return inside is not None and self.same(inside, other)
        if _is_equation(left) != _is_equation(right):
            return False
        if _is_equation(left):
            return self._equations(left, right)
        (left_name, left_range), (right_name, right_range) = as_interval(left), as_interval(right)
        if left_range is not None and right_range is not None:
            return left_name == right_name and self.same(left_range, right_range)
        return self.algebra.same_relation(left, right)

    def _equations(self, left: Relation, right: Relation) -> bool:
        left_first, right_first = key(left.sides[0]), key(right.sides[0])
        left_rest, right_rest = unwrapped(left), unwrapped(right)
        if left_first == right_first and left_rest is not None and right_rest is not None:
            return self.same(left_rest, right_rest)
        return self.algebra.same_relation(left, right)


def rounded_from(number: Number, value: Fraction, ends: bool | None = None) -> bool:
    """The number is a decimal, and the value rounded or cut off at its last digit. ends: whether the
    value's decimals do; None: find out.

    >>> third = Fraction(1, 3)
    >>> from gspo.verifiers.math_arithmetic import exact_value
    >>> [rounded_from(Number(exact_value(text)), third) for text in ("0.33333", "0.33", "0.33334")]
    [True, False, False]
    """
    decimals = number.exact.decimals
    if decimals is None or value == 0 or number.percent:
        return False
    near = NEAR_DECIMAL if (_ends(value) if ends is None else ends) else NEAR
    if abs(number.exact.value - value) >= near * abs(value):
        return False
    scaled = abs(value) * 10**decimals
    last = abs(number.exact.value) * 10**decimals
    return last in (int(scaled), int(scaled + Fraction(1, 2)))


def decimal_equals(number: Number, value: Any, *, strict: bool) -> bool:
    """A decimal and a constant's value, of mpmath; None is no constant, and never a decimal."""
    exact = None if value is None else as_fraction(value)
    if exact is None:
        return False
    decimal = Fraction(round(exact * 10**DECIMALS), 10**DECIMALS)
    ends = abs(exact - decimal) <= abs(exact) * COMPUTED  # else the binary digits' end is no end
    if ends:
        exact = decimal
    return exact == number.exact.value or (not strict and rounded_from(number, exact, ends))


def unwrapped(relation: Relation) -> Shape | None:
    """What an equation says something is: 5 of `x=5`, 293 of `m+n = 256+37 = 293`."""
    first, last = relation.sides[0], relation.sides[-1]
    if _LETTERS.fullmatch(first):
        return read(last)
    if _VARIABLE.fullmatch(last):
        return read(first)
    start, end = read(first), read(last)
    if not isinstance(start, Number) or _different_integers(start, end):
        return None
    return end


def _different_integers(left: Number, right: Shape) -> bool:
    """`5=6` says nothing that could be right; a fraction and its decimals may differ by rounding."""
    if not isinstance(right, Number) or left.percent or right.percent:
        return False
    whole = all(number.exact.value.denominator == 1 for number in (left, right))
    return whole and left.exact.value != right.exact.value


def as_interval(relation: Relation) -> tuple[str, Ordered | None]:
    """The variable, and where it lies, of `0<x<2`, `x>5` or `5<x`."""
    sides, signs = relation.sides, relation.signs
    if len(sides) == 2 and _VARIABLE.fullmatch(sides[1]):
        sides, signs = sides[::-1], tuple(_FLIPPED.get(sign, "") for sign in signs)
    if len(sides) == 3 and all(sign in (">", ">=") for sign in signs):
        sides, signs = sides[::-1], tuple(_FLIPPED[sign] for sign in reversed(signs))
    infinity = Formula(r"\infty")
    if len(sides) == 3 and _VARIABLE.fullmatch(sides[1]) and set(signs) <= {"<", "<="}:
        opening, closing = "(" if signs[0] == "<" else "[", ")" if signs[1] == "<" else "]"
        return key(sides[1]), Ordered(opening, closing, (read(sides[0]), read(sides[2])))
    if len(sides) != 2 or not _VARIABLE.fullmatch(sides[0]):
        return "", None
    name, bound = key(sides[0]), read(sides[1])
    match signs[0]:
        case ">" | ">=":
            return name, Ordered("(" if signs[0] == ">" else "[", ")", (bound, infinity))
        case "<" | "<=":
            minus = Formula(r"-\infty")
            return name, Ordered("(", ")" if signs[0] == "<" else "]", (minus, bound))
        case _:
            return "", None


def _is_equation(relation: Relation) -> bool:
    return set(relation.signs) == {"="}


def _bare_key(formula: Formula) -> str:
    return key(formula.text.removeprefix("+"))


def _is_set(shape: Shape) -> bool:
    return isinstance(shape, Several) or (isinstance(shape, Formula) and "emptyset" in shape.text)


def _is_infinity(shape: Shape) -> bool:
    return isinstance(shape, Formula) and "infty" in shape.text


def _is_name(text: str) -> bool:
    return bool(_VARIABLE.fullmatch(text))


def _items(shape: Shape) -> tuple[Shape, ...]:
    return shape.items if isinstance(shape, Several) else (shape,)


def _by_name(shape: Shape) -> tuple[Shape, ...] | None:
    """Of `y=2, x=1` the equations in the order of their names; None of anything else."""
    if not isinstance(shape, Several):
        return None
    named = {
        key(item.sides[0]): item
        for item in shape.items
        if isinstance(item, Relation) and _is_equation(item) and _VARIABLE.fullmatch(item.sides[0])
    }
    if len(named) < max(len(shape.items), 2):
        return None
    return tuple(item for _, item in sorted(named.items()))


def _pieces(shape: Shape) -> tuple[Shape, ...]:
    """Of a union: intervals, and the elements of its finite sets."""
    if not isinstance(shape, Union):
        return _items(shape)
    pieces: list[Shape] = []
    for piece in shape.pieces:
        if isinstance(piece, Relation) and piece.signs == ("!=",) and _is_name(piece.sides[0]):
            point = read(piece.sides[1])
            pieces += [Ordered("(", ")", (Formula(r"-\infty"), point))]
            pieces += [Ordered("(", ")", (point, Formula(r"\infty")))]
            continue
        interval = as_interval(piece)[1] if isinstance(piece, Relation) else None
        pieces += [interval] if interval is not None else _items(piece)
    return tuple(pieces)


def _word(shape: Shape) -> str | None:
    """Words in lower case; a single letter of a formula may be a choice."""
    if isinstance(shape, Words):
        return shape.text
    if isinstance(shape, Formula) and len(shape.text) == 1 and not shape.unit:
        return shape.text.lower()
    return None


def _ends(value: Fraction) -> bool:
    """Its decimals end."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
