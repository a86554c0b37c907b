r"""Notations that mean the same as others: powers as `**`, dots behind repeating decimals, degrees in a
sine. Texts into texts; nothing is evaluated.
"""

from __future__ import annotations

import re

#: Words for bases of numbers.
_BASES = dict(
    zip(
        [
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "sixteen",
        ],
        (*map(str, range(2, 13)), "16"),
        strict=True,
    )
)
_SIGNS = (
    (re.compile(r"=/=|\\not\s*="), r"\\ne "),
    (re.compile(r"\\not\s*\\in(?![A-Za-z])"), r"\\notin "),
    (re.compile(r"\\not\s*<"), r"\\ge "),
    (re.compile(r"\\not\s*>"), r"\\le "),
    (re.compile(r"(?<![<>!=:]):?==?(?![=<>])"), "="),
)
_POWER = re.compile(r"(?<=[\w)\]}])\s*\*\*\s*(?:(-?[0-9]+)|(?=[A-Za-z({\\]))")
_TIMES_TEN = re.compile(r"(?<=[0-9])\s*[xX]\s*(?=10\s*\^)")
_CHOOSE = re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}")
_NATURAL = re.compile(r"\\log\s*_\s*(?:\{\s*e\s*\}|e(?![A-Za-z]))")
_CLOCK = re.compile(r"(?<=:[0-9]{2})\s*([ap])\.?\s?m\b\.?", re.IGNORECASE)
_BASE = re.compile(r"(?:\(([0-9]+)\)|(?<=[0-9]))\s*_\s*(?:\{\s*(\w+)\s*\}|([0-9]))")
_MODULUS = re.compile(
    r"\\pmod(?![A-Za-z])\s*(?:\{\s*(\w+)\s*\}|([0-9A-Za-z]))"
    r"|\(\s*\\?b?mod(?![A-Za-z])\s*(?:\{\s*(\w+)\s*\}|(\w+))\s*\)"
)
_VECTOR = re.compile(r"([^=]*=\s*)?\\langle(?![A-Za-z])((?:(?!\\langle).)*)\\rangle", re.DOTALL)
_BUILDER = re.compile(r"\s*[A-Za-z]\s*(?:\\in[^:|]*)?(?:\\mid|:|\|)")
_PERIOD = re.compile(
    r"(?<![0-9.,])([0-9]{1,30})\.([0-9]{0,30})"
    r"(?:\\(?:overline|bar)\s*(?:\{([0-9]{1,30})\}|([0-9]))"
    r"|\\dot\s*\{?([0-9])\}?(?:([0-9]{0,30})\\dot\s*\{?([0-9])\}?)?)(?![0-9.])"
)
_GOES_ON = re.compile(
    r"(?<![0-9.,])([0-9]{1,30})\.([0-9]{1,60})\s*(?:\.{2,3}|\\[lc]?dots(?![A-Za-z]))(?!\s*[0-9A-Za-z.,])"
)
_WHOLE_PERIOD = re.compile(r"([-+]?)([0-9]{1,30})\.\(([0-9]{1,30})\)")
_REPEATED = re.compile(r"([0-9]{2,20}?)\1+")
_SAME_DIGITS = re.compile(r"([0-9]*?)([0-9])\2{2,}")
_ANGLE = re.compile(
    r"((?<![A-Za-z])\\?(?:sin|cos|tan|cot|sec|csc)(?:\s*\^\s*\{?\s*[0-9]\s*\}?)?\s*[({]?\s*)"
    r"([0-9]+(?:\.[0-9]+)?)\s+degrees?(?![A-Za-z])"
)
_CIRCLE = re.compile(r"(?<=[0-9])\s*\\circ(?![A-Za-z])(?!\s*[0-9(\\])")


def plain_notation(text: str) -> str:
    r"""Signs, powers, times and bases in one spelling.

    >>> plain_notation("3*x**2"), plain_notation("3.2 x 10^5"), plain_notation(r"x \not= 5")
    ('3*x^{2}', '3.2\\times 10^5', 'x \\ne  5')
    """
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    text = _POWER.sub(lambda found: f"^{{{found[1]}}}" if found[1] else "^", text)
    text = _TIMES_TEN.sub(r"\\times ", text)
    text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    text = _NATURAL.sub(r"\\ln ", text)
    text = _CLOCK.sub(lambda found: f" {found[1].upper()}M", text)
    text = _MODULUS.sub(
        lambda found: rf"\pmod{{{next(group for group in found.groups() if group)}}}", text
    )
    text = _BASE.sub(_with_base, text)
    vector = _VECTOR.fullmatch(text)
    return f"{vector[1] or ''}({vector[2]})" if vector else text


def braced_set(text: str) -> str:
    r"""`{1, 2}` is a set: its braces are letters, not LaTeX's.

    >>> braced_set("{1, 2}"), braced_set("{5}")
    ('\\{1, 2\\}', '{5}')
    """
    if not (text.startswith("{") and text.endswith("}")) or text.endswith(r"\}"):
        return text
    depth = 0
    comma = False
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0 and index < len(text) - 1:
            return text
        comma |= depth == 1 and character == ","
    inside = text[1:-1]
    return rf"\{{{inside}\}}" if comma or _BUILDER.match(inside) else text


def exact_decimals(text: str) -> str:
    r"""Repeating decimals as fractions: with a bar, with dots above or behind.

    >>> [exact_decimals(text) for text in (r"0.1\overline{6}", "0.2727...", "0.(3)", "3.1415...")]
    ['\\frac{15}{90}', '\\frac{27}{99}', '\\frac{3}{9}', '3.1415']
    """
    whole = _WHOLE_PERIOD.fullmatch(text)
    if whole:
        return whole[1] + _fraction(whole[2], "", whole[3])
    text = _PERIOD.sub(
        lambda found: _fraction(
            found[1],
            found[2],
            found[3] or found[4] or found[5] + (found[6] or "") + (found[7] or ""),
        ),
        text,
    )
    return _GOES_ON.sub(_cut, text)


def degrees_of_angles(text: str) -> str:
    r"""`\sin 30 degrees` is the sine of a part of pi.

    >>> degrees_of_angles(r"\sin 30 degrees")
    '\\sin \\frac{30\\pi}{180}'
    """
    return _ANGLE.sub(r"\1\\frac{\2\\pi}{180}", text)


def degree_signs(text: str) -> str:
    """`30\\circ` lacks its power sign."""
    return _CIRCLE.sub(" degrees ", text)


def _with_base(found: re.Match[str]) -> str:
    base = found[2] or found[3]
    return f"{found[1] or ''}_{{{_BASES.get(base.lower(), base)}}}"


def _cut(found: re.Match[str]) -> str:
    """Digits that repeat before "..." go on repeating; others are the decimal as far as it is written."""
    repeated = _REPEATED.fullmatch(found[2])
    if repeated and len(set(repeated[1])) > 1:
        return _fraction(found[1], "", repeated[1])
    same = _SAME_DIGITS.fullmatch(found[2])
    if same:
        return _fraction(found[1], same[1], same[2])
    return f"{found[1]}.{found[2]}"


def _fraction(whole: str, before: str, period: str) -> str:
    """The digits with one period, less those without, over as many nines and zeros."""
    start = whole + before
    bottom = (10 ** len(period) - 1) * 10 ** len(before)
    return rf"\frac{{{int(start + period) - int(start)}}}{{{bottom}}}"
