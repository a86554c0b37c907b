"""The value of an expression tree at a point, with many digits and without surprises.

A tree is ours (`Tree`) or sympy's; the names of the nodes are the same. Every node is computed from
its children at a cost that is known before: a power or factorial that is too large is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from threading import RLock
from typing import Any

import mpmath

DIGITS = 60
AGREE = mpmath.mpf(10) ** -40  # relative
DIFFER = mpmath.mpf(10) ** -25  # between the two nothing is decided
MAX_EXPONENT = 10**4  # of a power's magnitude, in decimal digits
MAX_FACTORIAL = 10**4
#: Values of the variables, by turns: both signs, below and above 1, none that is special.
POINTS = ("0.7318", "1.3127", "-0.5891", "2.2713", "-1.6339")


#: mpmath's precision is one for all threads.
_PRECISION = RLock()


class NotComputableError(Exception):
    """A node without a value here: unknown, or undefined at this point."""


class TooLargeError(Exception):
    """A value that no final answer has."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A node: its kind, as sympy names it, and its children; `value` of a Rational, `name` of a
    Symbol."""

    kind: str
    args: tuple[Tree, ...] = ()
    value: Fraction = Fraction(0)
    name: str = ""


def compute(tree: Any, point: Mapping[str, Any]) -> Any:
    """The value, an mpmath number."""
    with _PRECISION, mpmath.workdps(DIGITS):
        try:
            value = mpmath.mpmathify(_compute(tree, point))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError, RecursionError) as error:
            raise NotComputableError(str(error)) from error
        if mpmath.isnan(value) or mpmath.isinf(value):
            raise NotComputableError("not finite")
        return value


def same_values(left: Any, right: Any, names: Sequence[str]) -> bool | None:
    """Two trees at several points, or once where they have no variables: False where they differ
    once, None where their values do not tell. Two values too large to compute are not the same."""
    told: list[bool | None] = []
    with _PRECISION, mpmath.workdps(DIGITS):
        try:
            for a, b in _values(left, right, names):
                near = _near(a, b, AGREE)
                told.append(None if not near and _near(a, b, DIFFER) else near)
                if told[-1] is False:
                    return False
        except TooLargeError:
            return False
    return True if told and None not in told else None


def same_ratio(left: Any, right: Any, names: Sequence[str]) -> tuple[bool | None, int]:
    """Whether one tree is a constant times the other, and the constant's sign (0: not real)."""
    with _PRECISION, mpmath.workdps(DIGITS):
        try:
            ratios = [a / b for a, b in _values(left, right, names) if a != 0 and b != 0]
        except TooLargeError:
            return False, 0
        if not ratios:
            return None, 0
        same = all(_near(ratio, ratios[0], AGREE) for ratio in ratios)
        sign = 0 if mpmath.im(ratios[0]) != 0 else int(mpmath.sign(mpmath.re(ratios[0])))
        return same, sign


def as_fraction(value: Any) -> Fraction | None:
    """A real value, exactly; None for a complex one."""
    if mpmath.im(value) != 0:
        return None
    sign, mantissa, exponent, _ = mpmath.re(value)._mpf_
    whole = -int(mantissa) if sign else int(mantissa)
    return Fraction(whole << exponent if exponent >= 0 else whole, 1 << max(-exponent, 0))


def _values(left: Any, right: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Both sides where both can be computed; real ones where there is a choice."""
    complex_ones: list[tuple[Any, Any]] = []
    any_real = False
    for point in _points(names):
        try:
            pair = compute(left, point), compute(right, point)
        except NotComputableError:
            continue
        if all(mpmath.im(value) == 0 for value in pair):
            any_real = True
            yield pair
        else:
            complex_ones.append(pair)
    if not any_real:
        yield from complex_ones


def _points(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    if not names:
        yield {}
        return
    for turn in range(len(POINTS)):
        yield {
            name: mpmath.mpf(POINTS[(turn + 2 * k) % len(POINTS)]) + mpmath.mpf(k) / 7
            for k, name in enumerate(names)
        }


def _near(left: Any, right: Any, relative: Any) -> bool:
    return bool(mpmath.fabs(left - right) <= relative * max(mpmath.fabs(left), mpmath.fabs(right)))


def _compute(tree: Any, point: Mapping[str, Any]) -> Any:
    if isinstance(tree, Tree):
        kind = tree.kind
        if kind == "Rational":
            return mpmath.mpf(tree.value.numerator) / tree.value.denominator
    else:
        kind = type(tree).__name__
        if getattr(tree, "is_Rational", False):  # Integer, Half and other names of numbers too
            return mpmath.mpf(int(tree.p)) / int(tree.q)
    if kind == "Symbol":
        return point[tree.name]
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]()
    rule = _RULES.get(kind)
    if rule is None:
        raise NotComputableError(f"{kind} has no value")
    return rule(*(_compute(argument, point) for argument in tree.args))


def _power(base: Any, exponent: Any) -> Any:
    if base == 0:
        return mpmath.power(base, exponent)
    size = mpmath.fabs(mpmath.re(exponent)) * mpmath.fabs(mpmath.log10(mpmath.fabs(base)))
    if size > MAX_EXPONENT or mpmath.fabs(mpmath.im(exponent)) > MAX_EXPONENT:
        raise TooLargeError("a power that is too large")
    if mpmath.im(base) == 0 and base < 0 and _is_odd_root(exponent):
        return -mpmath.power(-base, exponent)  # the real cube root, as it is meant
    return mpmath.power(base, exponent)


def _is_odd_root(exponent: Any) -> bool:
    if mpmath.im(exponent) != 0 or not 0 < mpmath.fabs(exponent) < 0.5:
        return False
    root = 1 / exponent
    whole = mpmath.nint(root)
    return bool(mpmath.fabs(root - whole) < 1e-30) and int(whole) % 2 == 1


def _factorial(value: Any) -> Any:
    if mpmath.fabs(value) > MAX_FACTORIAL:
        raise TooLargeError("a factorial that is too large")
    return mpmath.factorial(value)


def _binomial(top: Any, bottom: Any) -> Any:
    if max(mpmath.fabs(top), mpmath.fabs(bottom)) > MAX_FACTORIAL:
        raise TooLargeError("a binomial that is too large")
    return mpmath.binomial(top, bottom)


def _log(value: Any, base: Any = None) -> Any:
    return mpmath.log(value) if base is None else mpmath.log(value) / mpmath.log(base)


def _real(rounding: Callable[[Any], Any]) -> Callable[..., Any]:
    def rounded(*values: Any) -> Any:
        if any(mpmath.im(value) != 0 for value in values):
            raise NotComputableError("complex numbers have no order")
        return rounding(*map(mpmath.re, values))

    return rounded


def _periodic(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Reducing a huge argument costs as many digits as it has."""

    def computed(value: Any) -> Any:
        if mpmath.fabs(value) > mpmath.mpf(10) ** MAX_EXPONENT:
            raise TooLargeError("a function of a value that is too large")
        if mpmath.fabs(mpmath.im(value)) > MAX_EXPONENT:
            raise TooLargeError("a function of a value that is too large")
        return function(value)

    return computed


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "Pi": lambda: +mpmath.pi,
    "Exp1": lambda: +mpmath.e,
    "ImaginaryUnit": lambda: mpmath.mpc(0, 1),
}
_RULES: dict[str, Callable[..., Any]] = {
    "Add": lambda *terms: reduce(lambda a, b: a + b, terms),
    "Mul": lambda *factors: reduce(lambda a, b: a * b, factors),
    "Pow": _power,
    "exp": lambda value: _power(+mpmath.e, value),
    "log": _log,
    "factorial": _factorial,
    "binomial": _binomial,
    "UnevaluatedExpr": lambda value: value,
    "Abs": mpmath.fabs,
    "floor": _real(mpmath.floor),
    "ceiling": _real(mpmath.ceil),
    "Max": _real(max),
    "Min": _real(min),
    **{
        name: _periodic(getattr(mpmath, name))
        for name in ("sin", "cos", "tan", "cot", "sec", "csc")
    },
    **{name: getattr(mpmath, name) for name in ("asin", "acos", "atan")},
    "sinh": lambda value: (_power(+mpmath.e, value) - _power(+mpmath.e, -value)) / 2,
    "cosh": lambda value: (_power(+mpmath.e, value) + _power(+mpmath.e, -value)) / 2,
    "tanh": mpmath.tanh,
}
