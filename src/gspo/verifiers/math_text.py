r"""One spelling for what LaTeX and people write in many: the text of an answer, tidied.

Nothing is evaluated. `tidy` gives plain LaTeX with single blanks: wrappers (`$`, `\text`, `\left`,
bold) are gone, fractions have braces, thousands are grouped by commas.
"""

from __future__ import annotations

import re

from gspo.verifiers.math_characters import plain_characters
from gspo.verifiers.math_notation import (
    braced_set,
    degree_signs,
    degrees_of_angles,
    exact_decimals,
    plain_notation,
)

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt|normal)|mbox|hbox|operatorname\*?|"
    r"boldsymbol|bm|emph|underline|displaystyle)\s*\{([^{}]*)\}"
)
_SIZES = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|limits|nolimits|rm|bf|it)(?![A-Za-z])\.?"
)
_SPACES = re.compile(
    r"(?<!\\)\\(?:[ ;:>]|(?:quad|qquad|enspace|thinspace|hspace\{[^{}]*\})(?![A-Za-z]))|~|\s"
)
_DELIMITERS = re.compile(r"\\[()]|(?<!\\)\\[\[\]]|\\?\$|[€£¥₹]")
_NAMES = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "leq": "le", "leqslant": "le",
    "geq": "ge", "geqslant": "ge", "neq": "ne", "lbrace": "{", "rbrace": "}", "lbrack": "[",
    "rbrack": "]", "lparen": "(", "rparen": ")", "vert": "|", "lvert": "|", "rvert": "|",
    "varnothing": "emptyset", "ast": "times", "infin": "infty", "dbinom": "binom",
    "tbinom": "binom", "varphi": "phi", "varepsilon": "epsilon", "vartheta": "theta", "land": "wedge",
    "lt": "<", "gt": ">", "colon": ":", "degree": "circ", "arcsin": "arcsin",
}  # fmt: skip
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_NO_LETTERS = {"{": r"\{", "}": r"\}"}
_THOUSANDS_LATEX = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|\\!,|,\\!|\{,\}\\!)(?=[0-9]{3}(?![0-9]))")
_ROOT = re.compile(
    r"\\sqrt\s*(\[[^\[\]]*\])?\s*(?:\(((?:[^()]|\([^()]*\))*)\)|([0-9]+|[A-Za-z](?![A-Za-z])|\\pi(?![A-Za-z])))"
)
_ROOT_OF_FRACTION = re.compile(r"\\sqrt\s*(\\frac\{[^{}]*\}\{[^{}]*\})")
_LETTER_NAME = re.compile(r"(?<![\\A-Za-z])pi(?![A-Za-z])")
_BLANK_THOUSANDS = re.compile(r"^[-+]?[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9]| ?[/,]| [0-9])")
_MULTIPLES = {
    "dozen": "12", "hundred": "10^{2}", "thousand": "10^{3}", "million": "10^{6}",
    "billion": "10^{9}", "trillion": "10^{12}",
}  # fmt: skip
_MULTIPLE = re.compile(rf"(?<=[0-9}}])\s*\b({'|'.join(_MULTIPLES)})\b", re.IGNORECASE)
_COMMAND_ARGUMENT = re.compile(
    r"\\(?:sqrt\s*(?:\[[^\[\]]*\])?\s*\{[^{}]*\}|(?!sqrt|frac)[A-Za-z]+)"
)
_BARE_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt\s*(?=[({])")
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))")
_PERCENT = re.compile(r"\\?%|\s*\b(?:per\s?cent|pct|percentage)\b", re.IGNORECASE)
_EMPHASIS = re.compile(r"^(?:\*{1,3}|_{2})(.*?)(?:\*{1,3}|_{2})$", re.DOTALL)


def tidy(text: str) -> str:
    r"""The answer in one spelling.

    >>> tidy(r"$\left(-\infty,-\tfrac12\right)$"), tidy("**$1,234.00.**")
    ('(-\\infty,-\\frac{1}{2})', '1,234.00')
    """
    text = re.sub(r"(?<!\\)\\$", "", plain_characters(text).strip())  # of a blank, "\\ "
    text = _EMPHASIS.sub(r"\1", text)
    text = _THOUSANDS_LATEX.sub(",", text)
    text = text.replace(r"\!", "").replace(r"\,", " ").replace("{,}", ",")
    text = _DELIMITERS.sub("", text) if "matrix" not in text else text.replace("$", "")
    text = _COMMAND.sub(_renamed, text)
    text = _SIZES.sub("", text)
    text = _unwrapped(text)
    text = _PERCENT.sub("%", text)
    text = degree_signs(_DEGREES.sub(" degrees ", text))
    text = _BARE_ROOT.sub(r"\\sqrt", text)
    text = _LETTER_NAME.sub(r"\\pi", text)
    text = _ROOT.sub(lambda found: rf"\sqrt{found[1] or ''}{{{found[2] or found[3]}}}", text)
    text = _ROOT_OF_FRACTION.sub(r"\\sqrt{\1}", _braced_fractions(text))
    text = re.sub(r" +", " ", _SPACES.sub(" ", text)).strip()
    text = degrees_of_angles(plain_notation(text))
    text = braced_set(_trimmed(exact_decimals(text)))
    text = _BLANK_THOUSANDS.sub(lambda found: found[0].replace(" ", ","), text)
    return _MULTIPLE.sub(lambda found: r" \times " + _MULTIPLES[found[1].lower()], text)


def key(tidied: str) -> str:
    r"""Equal keys are equal answers: without blanks that mean nothing, and without needless braces.

    >>> key("x^{2} + 1") == key("x^2+1"), key("1 1/4") == key("11/4")
    (True, False)
    """
    text = re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", tidied)
    text = re.sub(r"(?<=[0-9}]) (?=[A-Za-z])|(?<=\}) (?=[0-9])", "", text)
    return re.sub(r"([\^_])\{([A-Za-z0-9])\}", r"\1\2", text)


def _renamed(found: re.Match[str]) -> str:
    name = _NAMES.get(found[1])
    if name is None:
        return found[0]
    return _NO_LETTERS.get(name) or (rf"\{name}" if name.isalpha() else name)


def _unwrapped(text: str) -> str:
    """Without text and font wrappers; a wrapper in a wrapper takes another round."""
    for _ in range(4):
        text, count = _WRAPPER.subn(
            r" \1 " if r"\text" in text or r"\mbox" in text else r"\1", text
        )
        if not count:
            break
    return text


def _braced_fractions(text: str) -> str:
    r"""`\frac12` and `\frac1{2}` with both their braces."""
    parts = re.split(r"\\frac(?![A-Za-z])", text)
    done = [parts[0]]
    for part in parts[1:]:
        top, rest = _argument(part)
        bottom, rest = _argument(rest)
        done.append(rf"\frac{top}{bottom}{rest}")
    return "".join(done)


def _argument(text: str) -> tuple[str, str]:
    text = text.lstrip()
    command = _COMMAND_ARGUMENT.match(text)
    if command:
        return "{" + command[0] + "}", text[command.end() :]
    if not text or text[0] == "{" or text[0] == "\\":
        end = _closing(text) if text[:1] == "{" else 0
        return text[:end], text[end:]
    return "{" + text[0] + "}", text[1:]


def _closing(text: str) -> int:
    """Just behind the brace that closes the first one; the end where none does."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return index + 1
    return len(text)


def _trimmed(text: str) -> str:
    """Without blanks and sentence marks at the ends."""
    text = text.strip().rstrip(",;:").rstrip()
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1].rstrip()
    return text.lstrip("=:").strip()
