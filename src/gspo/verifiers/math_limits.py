r"""What a computer algebra system may be shown of an answer: little, short and flat.

Everything else is compared as text only. A final answer is short; a text that is not cheap to read
is not one, and no name beyond the list below is ever handed on.
"""

from __future__ import annotations

import re

MAX_CHARACTERS = 500
MAX_DIGITS = 200  # in all
MAX_NESTING = 8  # brackets within brackets; the parser's time doubles with two of them
MAX_SIGNS = 40  # + - = < > ^ and bars: its time grows with them too
MAX_FRACTIONS = 20
MAX_EXPONENT_DIGITS = 3  # x^{999} is computed, x^{1000} is text

_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi "
    "rho sigma tau upsilon phi varphi chi psi omega Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp sqrt frac binom min max "
    "gcd lcm"
)
_SIGNS = "cdot times div le ge ne infty lfloor rfloor lceil rceil cup cap setminus emptyset mod bmod ldots"
_COMMANDS = frozenset(f"{_GREEK} {_FUNCTIONS} {_SIGNS}".split())
_COMMAND = re.compile(r"\\([A-Za-z]+|.)")
_ALLOWED = re.compile(r"[A-Za-z0-9\s+\-*/^_()\[\]{}|,.;=<>!\\]*")
_BARS = re.compile(r"\|\s*\|\s*\||\^\s*[A-Za-z0-9]\s*\^")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
_EXPONENT_DIGITS = re.compile(rf"\^\s*\{{?[^{{}}]*[0-9]{{{MAX_EXPONENT_DIGITS + 1},}}")
_TOWER = re.compile(r"\^\s*\{[^{}]*(?:[0-9]\s*\^\s*\{?\s*-?[0-9]|[0-9]\s*!)")
#: The parser would drop the base of 1010_2, and multiply 4 by 2 in "4 2".
_MISREAD = re.compile(
    r"[0-9)}\]]\s*_|(?<![0-9_^])[0-9]+\s+[0-9]+(?![0-9]|\s*/)|(?<![A-Za-z\\])mod(?![A-Za-z])"
)
_FACTORIALS = re.compile(r"!\s*[)}\]]?\s*!|[0-9]{4,}\s*[)}\]]?\s*!")


def formula_allowed(text: str) -> str | None:
    """None where a text may be read as a formula, else why not."""
    if len(text) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    if not _ALLOWED.fullmatch(text):
        return "has characters that are not used in formulas"
    if _MISREAD.search(text):
        return "has a number with a base, or two numbers side by side"
    unknown = next((name for name in _COMMAND.findall(text) if name not in _COMMANDS), None)
    if unknown is not None:
        return f"has \\{unknown}, which is not read"
    if _WORD.search(text):
        return "has words"
    if sum(map(str.isdigit, text)) > MAX_DIGITS:
        return f"has more than {MAX_DIGITS} digits"
    if sum(map(text.count, "+-=<>^|!")) > MAX_SIGNS or _BARS.search(text):
        return f"has more than {MAX_SIGNS} signs"
    if text.count(r"\frac") > MAX_FRACTIONS or nesting(text) > MAX_NESTING:
        return f"has more than {MAX_FRACTIONS} fractions, or is nested {MAX_NESTING} deep"
    if _EXPONENT_DIGITS.search(text) or _TOWER.search(text) or _FACTORIALS.search(text):
        return "has a power or factorial that is too large"
    return None


def nesting(text: str) -> int:
    """How deep its brackets go."""
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest
