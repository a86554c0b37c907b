"""Arithmetic on whole numbers, read by a parser of our own: exact, and nothing else than numbers.

sum      = product (("+" | "-") product)*
product  = factor (("*" | "/") factor)*
factor   = number | "(" sum ")"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

MAX_CHARACTERS = 200  # brackets nest at most half as deep, far below Python's recursion limit
TOKEN = re.compile(r"[0-9]+|[-+*/()]")


def evaluate(text: str) -> tuple[Fraction, list[int]]:
    """The exact value, and the numbers in the order they are used.

    ValueError: not an expression, or longer than MAX_CHARACTERS. ZeroDivisionError: what it says.

    >>> evaluate("25+3*7")
    (Fraction(46, 1), [25, 3, 7])
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{len(text)} characters; wanted at most {MAX_CHARACTERS}")
    tokens = TOKEN.findall(text)
    if "".join(tokens) != text:
        raise ValueError(f"{text!r} holds something other than digits, + - * / ( )")
    reader = _Reader([*tokens, ""])
    value = reader.sum()
    if reader.next:
        raise ValueError(f"{text!r} goes on after a whole expression with {reader.next!r}")
    return value, reader.numbers


@dataclass(slots=True)
class _Reader:
    """Tokens with "" at the end, and how far they are read."""

    tokens: Sequence[str]
    place: int = 0
    numbers: list[int] = field(default_factory=list[int])

    @property
    def next(self) -> str:
        return self.tokens[self.place]

    def take(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1]

    def sum(self) -> Fraction:
        value = self.product()
        while self.next and self.next in "+-":
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while self.next and self.next in "*/":
            value = value * self.factor() if self.take() == "*" else value / self.factor()
        return value

    def factor(self) -> Fraction:
        start = self.take()
        if start == "(":
            value = self.sum()
            if self.take() != ")":
                raise ValueError("a bracket is not closed")
            return value
        if not start.isdigit():
            raise ValueError(f"wanted a number or a bracket, got {start!r}")
        self.numbers.append(int(start))
        return Fraction(self.numbers[-1])
