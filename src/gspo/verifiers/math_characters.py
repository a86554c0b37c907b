"""Unicode characters of mathematics in the spelling of LaTeX."""
# ruff: noqa: RUF001  the tables are about characters that look alike

from __future__ import annotations

import re
import unicodedata

_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-", "…": r"\ldots ",
    "×": r"\times ", "·": r"\cdot ",
    "⋅": r"\cdot ", "∙": r"\cdot ", "÷": r"\div ", "⁄": "/", "∕": "/", "π": r"\pi ",
    "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ",
    "±": r"\pm ", "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
    "°": r"^\circ ", "√": r"\sqrt ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ",
    "γ": r"\gamma ", "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega ", "′": "'", "’": "'",
    "“": '"', "”": '"', "‘": "'", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "，": ",",
}  # fmt: skip
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_SUBSCRIPT = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
_STYLED = re.compile("[\U0001d400-\U0001d7ff]")  # bold, italic and other letters and digits
_SUPERSCRIPT = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_VULGAR = re.compile(r"[¼-¾⅐-⅞]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_THIN = "\u2009\u202f"


def plain_characters(text: str) -> str:
    r"""`√2` as `\\sqrt 2`, `x²` as `x^{2}`; what has no width is gone."""
    text = _INVISIBLE.sub("", text)
    text = _FULL_WIDTH.sub(lambda found: chr(ord(found[0]) - 0xFEE0), text)
    text = _VULGAR.sub(_fraction_character, text)
    text = _SUPERSCRIPT.sub(
        lambda found: "^{" + "".join(_SUPERSCRIPTS[c] for c in found[0]) + "}", text
    )
    text = _SUBSCRIPT.sub(
        lambda found: "_{" + "".join(_SUBSCRIPTS[c] for c in found[0]) + "}", text
    )
    text = _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    for thin in _THIN:
        text = text.replace(thin, r"\,")
    return "".join(_CHARACTERS.get(character, character) for character in text)


def _fraction_character(found: re.Match[str]) -> str:
    top, _, bottom = unicodedata.normalize("NFKC", found[0]).partition("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}" if bottom else found[0]
