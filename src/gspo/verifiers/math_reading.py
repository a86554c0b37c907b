r"""A tidied answer into its shape: a number, words, a formula, or a collection of such.

- Number: exact value, unit and percent sign apart.
- Words: letters only, as "odd"; a choice letter, as in "(E)" or "E: both", is its letter.
- Several: a bare list, "1, 2", "1 and 2", or `\{1,2\}`, or `\pm 2`: unordered.
- Ordered: `(1,2)`, `[0,1)`: a tuple or an interval, its brackets included.
- Union: pieces joined by `\cup`, or inequalities joined by "or".
- Relation: `x=5`, `0<x<2`, side by side.
- Matrix: rows of cells.
- Formula: what a computer algebra system may read. Opaque: what none is shown.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from gspo.verifiers.math_arithmetic import (
    Exact,
    MalformedError,
    NotANumberError,
    TooLargeError,
    exact_value,
)
from gspo.verifiers.math_brackets import balanced, split_top, top_level
from gspo.verifiers.math_limits import formula_allowed, nesting
from gspo.verifiers.math_text import key
from gspo.verifiers.math_units import split_unit

MAX_ITEMS = 36  # in a list, or cells of a matrix
MAX_CHARACTERS = 1000  # of a text that is read; a matrix of fractions has some hundred
MAX_NESTING = 30  # of a text that is read; each level takes a few stack frames


@dataclass(frozen=True, slots=True)
class Number:
    exact: Exact
    unit: str = ""
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True)
class Formula:
    text: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Equal only to the same text. why: it is too large, or no mathematics."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Several:
    """bare: without braces, so a tuple may be meant. braces: a set, where repetitions do not count."""

    items: tuple[Shape, ...]
    bare: bool = False
    braces: bool = False


@dataclass(frozen=True, slots=True)
class Ordered:
    opening: str
    closing: str
    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Union:
    pieces: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """sides[0] signs[0] sides[1] ..., texts as written."""

    sides: tuple[str, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    kind: str
    rows: tuple[tuple[Shape, ...], ...]


Shape = Number | Words | Formula | Opaque | Several | Ordered | Union | Relation | Matrix

_AND = re.compile(r"\s*,?\s+(?:and|or)\s+|\s*;\s*")
_COMMA_LIST = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_THOUSANDS = re.compile(
    r"(?<![0-9.])(?<![0-9],)(?<![0-9],[-+])[1-9][0-9]{0,2}(?:,[0-9]{3})+(?!,?[-+]?[0-9])"
)
_SIGNS = re.compile(r"\\(?:le|ge|ne|equiv)(?![A-Za-z])|[<>]=?|=")
_SIGN_NAMES = {r"\le": "<=", r"\ge": ">=", r"\ne": "!="}
_MATRIX = re.compile(
    r"\\begin\{([pbBvV]?)(?:small)?(?:matrix|array)\}(?:\{[lcr|]+\})?(.*)\\end\{[a-zA-Z]+\}",
    re.DOTALL,
)
_BRACKETED = re.compile(r"\[\s*\\begin\{(?:small)?(?:matrix|array)\}.*\}\s*\]", re.DOTALL)
_CELLS = {"p": "", "b": "", "B": "", "": "", "v": "v", "V": "V"}
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*")
_CHOICE = re.compile(r"\(?([A-J])(?:\)|[.:)]\)?(\s.*)?)?", re.DOTALL)
#: Behind a choice: another one. "C: both (A) and (B)" is one.
_MORE_CHOICES = re.compile(
    r"\s*(?:and|or|&|/)(?![A-Za-z])|\s*\(?[A-J][.:)]*\s*$|(?:(?!\s*(?:both|all|either|neither|only)\b).*\([A-J]\))",
    re.DOTALL | re.IGNORECASE,
)
_REALS = re.compile(r"\\mathbb\s*(?:R|\{\s*R\s*\})|(?:all )?real numbers|all reals")
_APPROXIMATELY = re.compile(r"\\(?:approx|simeq|approxeq)(?![A-Za-z])")
_NAME = re.compile(r"(?!\\pi|[ei](?!\w))\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\([A-Za-z]\))?")
_MEMBER = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?\s*\\in(?![A-Za-z])\s*(.+)", re.DOTALL)
_WITHOUT = re.compile(
    r"\\mathbb\s*(?:R|\{\s*R\s*\})\s*(?:\\setminus|\\backslash|-)(?![A-Za-z])\s*\\\{(.+)\\\}"
)
_CONDITION = re.compile(
    r"\s*([A-Za-z])\s*(?:\\in\s*\\mathbb\s*(?:R|\{\s*R\s*\})\s*)?(?:\\mid(?![A-Za-z])|:|\|)(.+)"
)
_DATE = re.compile(
    r"[0-9]{4}([-/])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-/])[0-9]{1,2}\2[0-9]{4}"
    r"|(?=.*(?<![0-9])0[0-9])[0-9]+(?:-[0-9]+)+"
)
_NOT = re.compile(r"\\not(?![A-Za-z])")
_PLUS_MINUS = re.compile(r"\\(pm|mp)(?![A-Za-z])")


def read(text: str) -> Shape:
    """The shape of a tidied text."""
    if len(text) > MAX_CHARACTERS or nesting(text) > MAX_NESTING:
        return Opaque(
            key(text), f"longer than {MAX_CHARACTERS} characters, or nested {MAX_NESTING} deep"
        )
    for reader in (
        _choice,
        _matrix,
        _real_line,
        _approximate,
        _union,
        _list,
        _enclosed,
        _plus_minus,
        _relation,
    ):
        shape = reader(text)
        if shape is not None:
            return shape
    return _single(text)


def formulas(shape: Shape) -> list[str]:
    """Every formula in a shape."""
    match shape:
        case Formula():
            return [shape.text]
        case Several() | Ordered():
            inside: tuple[Shape, ...] = shape.items
        case Union():
            inside = shape.pieces
        case Relation():
            inside = tuple(read(side) for side in shape.sides)
        case Matrix():
            inside = tuple(cell for row in shape.rows for cell in row)
        case _:
            return []
    return [text for part in inside for text in formulas(part)]


def _single(text: str) -> Shape:
    """A number, words, a formula, or neither."""
    if _DATE.fullmatch(text):
        return Opaque(key(text), "a date, or a number of parts")
    body, unit, percent = split_unit(text)
    try:
        return Number(exact_value(body), unit, percent)
    except TooLargeError as error:
        return Opaque(key(text), str(error))
    except MalformedError as error:
        return Opaque(key(text), str(error))
    except NotANumberError:
        pass
    if _WORDS.fullmatch(text) and (len(text) > 1 or text.isupper()):
        return Words(" ".join(text.lower().split()))
    why = "a percentage of no number" if percent else formula_allowed(body)
    return Formula(body, unit) if why is None else Opaque(key(text), why)


def _choice(text: str) -> Shape | None:
    found = _CHOICE.fullmatch(text)
    if not found or _MORE_CHOICES.match(found[2] or ""):
        return None
    return Words(found[1].lower())


def _real_line(text: str) -> Shape | None:
    minus, plus = Formula(r"-\infty"), Formula(r"\infty")
    if _REALS.fullmatch(text):
        return Ordered("(", ")", (minus, plus))
    without = _WITHOUT.fullmatch(text)
    if not without:
        return None
    points = [read(item) for item in split_top(without[1], re.compile(","))]
    if len(points) > 1:
        if not all(isinstance(point, Number) for point in points):
            return Opaque(key(text), "points whose order is not known")
        points.sort(key=lambda point: point.exact.value if isinstance(point, Number) else 0)
    ends = itertools.pairwise([minus, *points, plus])
    return Union(tuple(Ordered("(", ")", pair) for pair in ends))


def _approximate(text: str) -> Shape | None:
    r"""Of `\sqrt{2} \approx 1.41` what is exact; `x \approx 5` says what x is."""
    sides = split_top(text, _APPROXIMATELY)
    if len(sides) < 2 or "" in sides[1:]:
        return None
    if sides[0] and not _NAME.fullmatch(sides[0]):
        return read(sides[0])
    return read(sides[1]) if not sides[0] else Relation((sides[0], sides[1]), ("=",))


def _matrix(text: str) -> Shape | None:
    found = _MATRIX.fullmatch(text[1:-1] if _BRACKETED.fullmatch(text) else text)
    if not found:
        return None
    rows = [
        row
        for row in re.split(
            r"\\\\(?:\s*\[[0-9.]+[a-z]{2}\])?|\\cr", found[2].replace(r"\hline", "").strip()
        )
        if row.strip()
    ]
    cells = tuple(tuple(read(cell.strip()) for cell in row.split("&")) for row in rows)
    if sum(map(len, cells)) > MAX_ITEMS:
        return Opaque(key(text), f"more than {MAX_ITEMS} cells")
    return Matrix(_CELLS[found[1]], cells)


def _union(text: str) -> Shape | None:
    pieces = split_top(text, re.compile(r"\\cup(?![A-Za-z])"))
    member = _MEMBER.fullmatch(text)
    if member:
        return read(member[1].strip())
    if len(pieces) < 2:
        return None
    return Union(tuple(read(piece) for piece in pieces))


def _list(text: str) -> Shape | None:
    if _COMMA_LIST.fullmatch(text):
        return None  # thousands; `as_list` has the other reading
    halves = split_top(text, _AND)
    items = [item for half in halves for item in _comma_items(half)]
    items = [re.sub(r"^(?:and|or)\s+", "", item) for item in items]
    if len(items) < 2:
        return None
    if len(items) > MAX_ITEMS or not all(items):
        return Opaque(key(text), f"a list with an empty item, or of more than {MAX_ITEMS}")
    shapes = tuple(read(item) for item in items)
    ranges = [isinstance(shape, Relation) and set(shape.signs) != {"="} for shape in shapes]
    if all(ranges) and re.search(r"\bor\b", text):
        return Union(shapes)
    both = _both(shapes) if re.search(r"\band\b", text) else None
    if both is not None:
        return both
    return Several(_flat(shapes), bare=len(halves) == 1)


def _both(shapes: tuple[Shape, ...]) -> Relation | None:
    """`x>3 and x<5` is `3<x<5`."""
    match shapes:
        case (
            Relation((x, low), (">" | ">=" as over,)),
            Relation((same, high), ("<" | "<=" as under,)),
        ):
            pass
        case (
            Relation((x, high), ("<" | "<=" as under,)),
            Relation((same, low), (">" | ">=" as over,)),
        ):
            pass
        case _:
            return None
    return Relation((low, x, high), (over.replace(">", "<"), under)) if x == same else None


def _comma_items(text: str) -> list[str]:
    """Split at commas, but for those of thousands; "3,5,100" is no number, so all of its commas."""
    grouped = {
        found.start() + index
        for found in _THOUSANDS.finditer(text)
        for index, character in enumerate(found[0])
        if character == ","
    }
    commas = [at for at, _, _ in top_level(text, re.compile(",")) if at not in grouped]
    return [text[a + 1 : b].strip() for a, b in itertools.pairwise([-1, *commas, len(text)])]


def as_list(shape: Shape, text: str) -> Shape | None:
    """The other reading of "100,200": two numbers."""
    if not isinstance(shape, Number) or not _COMMA_LIST.fullmatch(text):
        return None
    return Several(tuple(_single(item) for item in text.split(",")), bare=True)


def _enclosed(text: str) -> Shape | None:
    braces = text.startswith(r"\{") and text.endswith(r"\}")
    inner = text[2:-2] if braces else text[1:-1]
    if braces and balanced(inner):
        if re.search(r"\\mid|\||:", inner):
            return _by_condition(inner) or Opaque(key(text), "a set given by a condition")
        items = split_top(inner, re.compile("[,;]")) if inner.strip() else []
        if not items:
            return Formula(r"\emptyset")
        return Several(_flat(tuple(read(item) for item in items)), braces=True)
    if len(text) < 2 or text[0] not in "([" or text[-1] not in ")]" or not balanced(inner):
        return None
    items = split_top(inner, re.compile("[,;]"))
    if len(items) > MAX_ITEMS or not all(items):
        return Opaque(key(text), f"a list with an empty item, or of more than {MAX_ITEMS}")
    if len(items) == 1:
        return read(items[0]) if text[0] == "(" and text[-1] == ")" else None
    return Ordered(text[0], text[-1], tuple(read(item) for item in items))


def _by_condition(inner: str) -> Shape | None:
    r"""`x \mid 3<x` is the range, as the inequality is."""
    found = _CONDITION.fullmatch(inner)
    shape = read(found[2].strip()) if found else None
    parts = shape.pieces if isinstance(shape, Union) else (shape,)
    for part in parts:
        if not isinstance(part, Relation) or not set(part.signs) <= {"<", "<=", ">", ">="}:
            return None
        if found is None or found[1] not in part.sides:
            return None
    return shape


def _plus_minus(text: str) -> Shape | None:
    if not _PLUS_MINUS.search(text):
        return None
    upper = _PLUS_MINUS.sub(lambda found: "+" if found[1] == "pm" else "-", text)
    lower = _PLUS_MINUS.sub(lambda found: "-" if found[1] == "pm" else "+", text)
    return Several((read(upper.lstrip("+ ")), read(lower)))


def _relation(text: str) -> Shape | None:
    found = list(top_level(text, _SIGNS))
    if not found:
        return None
    ends = [0, *(end for _, end, _ in found)]
    starts = [*(start for start, _, _ in found), len(text)]
    sides = tuple(text[a:b].strip() for a, b in zip(ends, starts, strict=True))
    if not all(sides) or _NOT.search(text):
        return Opaque(key(text), "a relation with an empty side, or one that is denied")
    return Relation(sides, tuple(_SIGN_NAMES.get(sign, sign) for _, _, sign in found))


def _flat(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """A list's list, as `1 \\pm 2` in it, is part of it; a set's set is not."""
    return tuple(
        item
        for shape in shapes
        for item in (shape.items if isinstance(shape, Several) and not shape.braces else (shape,))
    )
