r"""Which part of a response is its final answer. One rule, for training and evaluation alike.

What stands before the last `</think>`, or behind a `<think>` that is never closed, does not count. Then
the first of these that the response has:

1. box: the last `\boxed` or `\fbox`. A box that is never closed, or empty, is no answer, and
   nothing else is tried: the model began to answer and did not finish.
2. tag: the last `<answer>...</answer>`.
3. hash: the last `####`, up to the end of its line; headings ("#### Step 2", "#### Answer") are none.
4. phrase: the last "final answer", "the answer is" or "answer:", up to the end of its sentence, or to the
   "because", ", since", ", as", ", which" or ", where" that explains it.
5. bare: the whole response, if it is a single line.

Nothing else is searched: a number somewhere in the text is not an answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

Place = Literal["any", "box", "tag", "hash", "phrase", "bare"]

#: Longer answers are not read: the longest honest ones, matrices and piecewise functions, have some
#: hundred characters.
MAX_ANSWER_CHARACTERS = 2000

MAX_TRIES = 100  # of words and commands that only look like the start of an answer

_BOX_COMMANDS = (r"\boxed", r"\fbox")
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_UNBRACED = re.compile(r"\\[A-Za-z]+(?:\{[^{}]*\})*|[^\s$,;{}\\]+")
_HASH = "####"
_HEADING = re.compile(r"\banswer\b|^[\s*]*(?:step|case|part)\b", re.IGNORECASE)
_ANSWER = "answer"
_BEFORE = re.compile(r"(?:\bfinal\s+|\bthe\s+(?:correct\s+)?)\Z", re.IGNORECASE)
_BEFORE_CHARACTERS = 30
_LINK = re.compile(
    r"answer(?:\s+(?:to|for)\s[^.:\n]{0,80}?)?(?:[*_]*\s*(?:\b(?:is|are)\b|[:=])[*_:]*|\s*\n)",
    re.IGNORECASE,
)
_COLON = re.compile(r"answer\**\s*[:=]", re.IGNORECASE)
_MATHS = re.compile(r"\s*(?:\$\$(.+?)\$\$|\$(.+?)(?<!\\)\$|\\\((.+?)\\\)|\\\[(.+?)\\\])", re.DOTALL)
_BOLD = re.compile(r"\s*(\*\*|__)(.+?)\1")
#: The marks of bold print; those of `2**10` and `2 ** 10` are a power.
_BOLD_MARK = re.compile(r"(?<![\w)\]}\s])\*\*(?=\S)|(?<=\S)\*\*(?![\w(\[{\\-])|(?<=\s)\*\*(?=\S)")
#: Behind mathematics: another answer, or what changes its value.
_GOES_ON = re.compile(
    r"\s*(?:,?\s*(?:and|or)\b|,\s*(?:\$|\\\(|\*\*)|\\?%|per\s?cent\b|(?:hundred|thousand|million|[bt]rillion|dozen)\b)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"\.(?:\s+(?=[A-Z])|\s*$)|(?i:\s+because\b|,\s*(?:because|since|as|which|where)\s)"
)


def final_answer(text: str, place: Place = "any", *, all_boxes: bool = False) -> str | None:
    r"""The answer's text, None where there is none. all_boxes: the boxes' contents as a list,
    repetitions left out, instead of the last.

    >>> final_answer(r"First \boxed{5}. Wrong; so \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> final_answer("I think it is 7.\nOr not.")
    """
    text = text.rpartition("</think>")[2].partition("<think>")[0]
    for name, find in _PLACES.items():
        if place not in ("any", name):
            continue
        found = find(text) if name != "box" or not all_boxes else _all_boxes(text)
        if found is not None:
            found = found.strip()
            return found if 0 < len(found) <= MAX_ANSWER_CHARACTERS else None
    return None


def _box(text: str) -> str | None:
    """From the end: a text may have a hundred thousand of them."""
    end = len(text)
    for _ in range(MAX_TRIES):
        end = max(text.rfind(command, 0, end) for command in _BOX_COMMANDS)
        if end < 0:
            return None
        box = _BOX.match(text, end)
        if box is not None:
            return _content(text, box.end())
    return None


def _all_boxes(text: str) -> str | None:
    contents: list[str] = []
    end = 0
    for box in _BOX.finditer(text):
        if box.start() < end:  # inside the one before
            continue
        content = _content(text, box.end())
        if content == "":
            return ""
        end = box.end() + len(content)
        contents.append(content.strip())
    return ", ".join(dict.fromkeys(contents)) if contents else None


def _content(text: str, start: int) -> str:
    """What a box holds; "" for one that is empty, never closed or too long."""
    if not text.startswith("{", start):
        found = _UNBRACED.match(text, start)
        return found[0].rstrip(".") if found else ""
    depth = 0
    end = start + MAX_ANSWER_CHARACTERS + 2
    for brace in _BRACE.finditer(text, start, end):
        if brace[0] == "{":
            depth += 1
        elif brace[0] == "}":
            depth -= 1
            if depth == 0:
                return text[start + 1 : brace.start()]
    return ""


def _tag(text: str) -> str | None:
    _, tag, rest = text.rpartition("<answer>")
    if not tag:
        return None
    inside, closed, _ = rest.partition("</answer>")
    return inside if closed else ""


def _hash(text: str) -> str | None:
    end = len(text)
    for _ in range(MAX_TRIES):
        end = text.rfind(_HASH, 0, end)
        if end < 0:
            return None
        line = text[end + len(_HASH) : end + MAX_ANSWER_CHARACTERS + 10].split("\n", 1)[0]
        if not _HEADING.search(line):
            return line
    return None


def _phrase(text: str) -> str | None:
    low = text.lower() if len(text.lower()) == len(text) else text
    end = len(text)
    for _ in range(MAX_TRIES):
        end = low.rfind(_ANSWER, 0, end)
        if end < 0:
            return None
        link = _link(text, end)
        if link is not None:
            return _after(text, link)
    return None


def _link(text: str, start: int) -> int | None:
    """Where the answer begins behind the word "answer" that starts here, if it announces one."""
    announced = _BEFORE.search(text[max(start - _BEFORE_CHARACTERS, 0) : start])
    if announced is None and not _COLON.match(text, start):
        return None
    link = _LINK.match(text, start)
    return link.end() if link else None


def _after(text: str, start: int) -> str:
    """Mathematics in dollars or bold print right there, or else, or if more follows, the sentence."""
    rest = text[start : start + 2 * MAX_ANSWER_CHARACTERS]
    for pattern in (_MATHS, _BOLD):
        found = pattern.match(rest)
        if found and not _GOES_ON.match(rest, found.end()):
            return next(group for group in reversed(found.groups()) if group)
    line = next((line for line in rest.split("\n") if line.strip()), "")
    return _SENTENCE_END.split(_BOLD_MARK.sub("", line), maxsplit=1)[0]


def _bare(text: str) -> str | None:
    text = text.strip()
    return text if text and "\n" not in text else None


_PLACES: dict[Place, Callable[[str], str | None]] = {
    "box": _box,
    "tag": _tag,
    "hash": _hash,
    "phrase": _phrase,
    "bare": _bare,
}
