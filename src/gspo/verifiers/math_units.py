r"""A number's unit, told from the number.

The rule: a unit of the list below, behind a blank or (with two letters or more) right behind the
number, and any other word of four letters or more behind a blank, is a unit, with its power and
what it is divided by. Single letters are variables behind a variable or another single letter. Units are not converted: cm is not m. A unit on one side only is dropped;
on both sides it must be the same, apart from spelling.
"""

from __future__ import annotations

import re

_SPELLINGS = {
    "degree": "deg", "centimeter": "cm", "centimetre": "cm", "meter": "m", "metre": "m",
    "kilometer": "km", "kilometre": "km", "millimeter": "mm", "millimetre": "mm", "inch": "in",
    "inche": "in", "feet": "ft", "foot": "ft", "mile": "mi", "yard": "yd", "gram": "g",
    "kilogram": "kg", "milligram": "mg", "pound": "lb", "ounce": "oz", "second": "s", "sec": "s",
    "minute": "min", "hour": "h", "hr": "h", "liter": "l", "litre": "l", "milliliter": "ml",
    "dollar": "usd", "radian": "rad", "newton": "n", "joule": "j", "watt": "w", "volt": "v",
    "mph": "mi/h", "kph": "km/h", "kmh": "km/h",
}  # fmt: skip
_SHORT = "cm mm km m ft in lb lbs kg mg g oz mi yd hr hrs h min sec s deg rad ml l hz usd mph kph kmh day days men"
_ONE = "(?:m|g|s|h|l|L|N|J|W|V|A|K|C|F)"
_KNOWN = f"(?:{'|'.join(sorted({*_SHORT.split()} - set('mgshl'), key=len, reverse=True))})"
_ANY = rf"(?:{_KNOWN}|{_ONE}|[A-Za-z]{{4,}})(?![A-Za-z])"
_POWER = r"(?:\s*\^\s*(?:\{\s*-?[0-9]\s*\}|-?[0-9]))?"
_UNIT = re.compile(
    rf"(?P<body>.*[0-9A-Za-z)}}.!])(?:(?<=[0-9)}}.]){_KNOWN}(?![A-Za-z])|\s+{_ANY}){_POWER}"
    rf"(?:\s*(?:/\s*)?{_ANY}{_POWER})*",
    re.DOTALL,
)
#: Words that make something else of what stands before them.
_NO_UNITS = re.compile(
    r"(?<![A-Za-z])(?:when|where|with|over|then|else|mod|from|into|plus|minus|times|divided|less|more|"
    r"factorial|squared|cubed|choose|twice|doubled?|tripled?|halved|negative|below|above|under|reciprocal|inverse|half|halves|quarters?|thirds?|fourths?|fifths?|sixths?|"
    r"sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|(?:hundred|thousand|million|billion|"
    r"trillion|dozen)s?|alpha|beta|gamma|delta|theta|lambda|sigma|omega|infinity)(?![A-Za-z])",
    re.IGNORECASE,
)
_SQUARE = re.compile(r"(?<![A-Za-z])(square|sq\.?|cubic|cu\.?)\s+([A-Za-z]+)", re.IGNORECASE)
_VARIABLE = re.compile(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])")
_ANGLE_OF = re.compile(r"(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_PER = re.compile(r"\s+per\s+(?=[A-Za-z])")
_TOKEN = re.compile(r"[A-Za-z]+|[/^0-9-]+")


def split_unit(text: str) -> tuple[str, str, bool]:
    """Number or formula, its unit in one spelling ("" for none), and whether it is in percent.

    >>> split_unit("5 centimeters"), split_unit("28%"), split_unit("3xy")
    (('5', 'cm', False), ('28', '', True), ('3xy', '', False))
    """
    text = _PER.sub("/", text)
    text = _SQUARE.sub(lambda word: f"{word[2]}^{2 if word[1][0] in 'sS' else 3}", text)
    if text.endswith("%"):
        return text[:-1].strip(), "", True
    if "deg" in text and _ANGLE_OF.search(text):  # the sine of 30 degrees is not 30 degrees
        return text, "", False
    body = _body(text)
    unit = text[len(body) :]
    if not unit or _NO_UNITS.search(unit) or _are_variables(body, unit):
        return text, "", False
    return (
        body.strip(),
        "".join(_spelled(word) for word in _TOKEN.findall(unit)),
        False,
    )


def _are_variables(body: str, unit: str) -> bool:
    """The h of `2 \\pi r h`, and the m g h of `\\frac{1}{2} m g h`."""
    names = re.findall("[A-Za-z]+", unit)
    if max(map(len, names)) > 1:
        return False
    return _VARIABLE.search(body) is not None or (len(names) > 1 and "/" not in unit)


def _body(text: str) -> str:
    """The shortest start behind which all the rest is a unit."""
    found = _UNIT.fullmatch(text)
    if not found:
        return text
    while (shorter := _UNIT.fullmatch(found["body"].rstrip())) is not None:
        found = shorter
    return found["body"]


def _spelled(word: str) -> str:
    low = word.lower() if len(word) > 1 else word
    single = low[:-1] if len(low) > 2 and low.endswith("s") else low
    return _SPELLINGS.get(low, _SPELLINGS.get(single, single))
