r"""Exact arithmetic on numbers written out: the value of `1{,}234.5`, `2\frac{1}{2}` or `3\cdot 10^5`.

A small parser of its own, without eval: it knows digits, + - * / ^ !, brackets, `\frac`, `\cdot`,
`\times`, `\div` and `\sqrt` of squares. Anything else is no number. The size of every result is known
before it is computed, so a tower of powers costs no more than a 2.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

MAX_BITS = 2**16  # of numerator and denominator: 1/5000! has 54,233
MAX_FACTORIAL = 5000
MAX_DEPTH = 30  # brackets within brackets
MAX_DIGITS = 1000  # of one literal

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+|\.(?![0-9.]))?|\.[0-9]+)"
    r"(?P<power>[eE][+-]?[0-9]{1,4}(?![0-9A-Za-z]))?"
    r"|(?P<command>\\(?:frac|cdot|times|div|sqrt)(?![A-Za-z]))|(?P<sign>[-+*/^!(){}\[\]]))"
)
_LITERAL = re.compile(r"[-+]?\s*(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)\.([0-9]+)")
_TIMES = {"*", r"\cdot", r"\times"}
_OVER = {"/", r"\div"}
_CLOSING = {"(": ")", "{": "}", "[": "]"}


class NotANumberError(Exception):
    """The text is no arithmetic."""


class MalformedError(Exception):
    """A mixed number whose fraction is not below 1: neither sum nor product is meant."""


class TooLargeError(Exception):
    """The value, or the nesting, is beyond what is computed."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A rational number, and how many decimals it was written with: None for anything but a plain
    decimal such as `-0.50`."""

    value: Fraction
    decimals: int | None = None


def exact_value(text: str) -> Exact:
    r"""The value of a tidied text.

    >>> exact_value("1 1/4").value, exact_value(r"1.2\times 10^6").value, exact_value("0.50").decimals
    (Fraction(5, 4), Fraction(1200000, 1), 2)
    """
    literal = _LITERAL.fullmatch(text)
    if sum(map(str.isdigit, text)) > MAX_DIGITS:
        raise TooLargeError(f"more than {MAX_DIGITS} digits")
    value = _Parser(_tokens(text)).whole()
    return Exact(value, len(literal[1]) if literal else None)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    end = 0
    while end < len(text):
        found = _TOKEN.match(text, end)
        if found is None:
            raise NotANumberError(text[end : end + 20])
        kind = found.lastgroup or ""
        if found["number"]:
            tokens.append(("number", found["number"] + (found["power"] or "")))
        else:
            tokens.append(("sign", found[kind]))
        end = found.end()
    return tokens


class _Parser:
    """Recursive descent; each method reads one level of precedence."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def whole(self) -> Fraction:
        value = self._sum()
        if self._next < len(self._tokens):
            raise NotANumberError("more follows")
        return value

    def _sign(self) -> str:
        """The sign or command that comes next, "" for a number or the end."""
        if self._next < len(self._tokens) and self._tokens[self._next][0] == "sign":
            return self._tokens[self._next][1]
        return ""

    def _take(self, *wanted: str) -> str:
        sign = self._sign()
        if sign not in wanted or not sign:
            raise NotANumberError(f"wanted {' or '.join(wanted)}")
        self._next += 1
        return sign

    def _sum(self) -> Fraction:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLargeError(f"more than {MAX_DEPTH} brackets deep")
        value = self._product()
        while self._sign() in ("+", "-"):
            sign = self._take("+", "-")
            term = self._product()
            value = _sized(value + term if sign == "+" else value - term)
        self._depth -= 1
        return value

    def _product(self) -> Fraction:
        value = self._signed()
        while True:
            sign = self._sign()
            if sign in _TIMES:
                self._next += 1
                value = _sized(value * self._signed())
            elif sign in _OVER:
                self._next += 1
                value = _sized(_over(value, self._signed()))
            elif sign in ("(", "{", r"\frac", r"\sqrt"):  # written side by side
                value = _sized(value * self._power())
            else:
                return value

    def _signed(self) -> Fraction:
        negative = False
        while self._sign() in ("+", "-"):
            negative ^= self._take("+", "-") == "-"
        value = self._mixed()
        return -value if negative else value

    def _mixed(self) -> Fraction:
        r"""`1 1/4` and `2\frac{1}{2}` are whole and fraction; with 4 10/3 something is wrong."""
        start = self._next
        value = self._power()
        if self._next != start + 1 or not self._is_whole(start):
            return value
        if self._is_whole(start + 1) and self._signs(start + 2, "/") and self._is_whole(start + 3):
            top, bottom = self._whole_at(start + 1), self._whole_at(start + 3)
            self._next = start + 4
        elif (
            self._signs(start + 1, r"\frac", "{")
            and self._is_whole(start + 3)
            and self._signs(start + 4, "}", "{")
            and self._is_whole(start + 6)
            and self._signs(start + 7, "}")
        ):
            top, bottom = self._whole_at(start + 3), self._whole_at(start + 6)
            self._next = start + 8
        else:
            return value
        if not 0 < top < bottom:
            raise MalformedError("the fraction of a mixed number is not below 1")
        return value + Fraction(top, bottom)

    def _is_whole(self, index: int) -> bool:
        tokens = self._tokens
        return index < len(tokens) and tokens[index][0] == "number" and tokens[index][1].isdigit()

    def _whole_at(self, index: int) -> int:
        return int(self._literal(self._tokens[index][1]))

    def _signs(self, start: int, *signs: str) -> bool:
        return self._tokens[start : start + len(signs)] == [("sign", sign) for sign in signs]

    def _power(self) -> Fraction:
        base = self._atom()
        if self._sign() == "!":
            self._next += 1
            base = _factorial(base)
        if self._sign() == "!":
            raise NotANumberError("a double factorial")
        if self._sign() != "^":
            return base
        self._next += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLargeError(f"more than {MAX_DEPTH} powers deep")
        exponent = self._signed_power()
        self._depth -= 1
        return _raised(base, exponent)

    def _signed_power(self) -> Fraction:
        if self._sign() in ("+", "-"):
            return -self._power() if self._take("+", "-") == "-" else self._power()
        return self._power()

    def _atom(self) -> Fraction:
        if self._next >= len(self._tokens):
            raise NotANumberError("the text ends early")
        kind, text = self._tokens[self._next]
        if kind == "number":
            self._next += 1
            return self._literal(text)
        if text == r"\frac":
            self._next += 1
            top = self._group("{")
            return _over(top, self._group("{"))
        if text == r"\sqrt":
            self._next += 1
            return _root(self._group("{"))
        return self._group("(", "{", "[")

    def _group(self, *opening: str) -> Fraction:
        closing = _CLOSING[self._take(*opening)]
        value = self._sum()
        self._take(closing)
        return value

    @staticmethod
    def _literal(text: str) -> Fraction:
        digits, _, power = text.replace(",", "").lower().partition("e")
        value = Fraction(digits.rstrip(".") or "0")
        return _raised(Fraction(10), Fraction(int(power))) * value if power else value


def _sized(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLargeError(f"more than {MAX_BITS} bits")
    return value


def _over(top: Fraction, bottom: Fraction) -> Fraction:
    if bottom == 0:
        raise NotANumberError("division by zero")
    return top / bottom


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NotANumberError("a factorial of no whole number")
    if value > MAX_FACTORIAL:
        raise TooLargeError(f"a factorial above {MAX_FACTORIAL}!")
    return Fraction(math.factorial(int(value)))


def _raised(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise NotANumberError("a root")
    if base == 0 and exponent <= 0:
        raise NotANumberError("zero to a power that is not positive")
    if base in (0, 1):
        return base
    if base == -1:
        return Fraction(-1 if exponent % 2 else 1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * bits > MAX_BITS:
        raise TooLargeError(f"a power of more than {MAX_BITS} bits")
    return base ** int(exponent)


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise NotANumberError("a root of a negative number")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top**2 != value.numerator or bottom**2 != value.denominator:
        raise NotANumberError("an irrational root")
    return Fraction(top, bottom)
