"""The one rule by which a program is taken from a response.

1. Thinking is cut away: all up to the last `</think>`. An opened and never closed `<think>` leaves
   nothing.
2. Fenced blocks count, of three or more backticks or tildes on a line of their own, at most three
   blanks before them, closed by a line of at least as many of the same. That many blanks are no
   part of the lines within.
3. Of the blocks marked python, python3 or py (in any case), the last. Without one, the last block
   without a mark. Blocks with other marks never count.
4. A last block that is never closed counts only where the response ended by itself: one that was
   cut off is not the program the model meant.
5. Otherwise there is no program, which is the response's fault.
"""

from __future__ import annotations

import re

# Possessive: a long line of tildes or blanks must not be tried at each of its places.
_FENCE = re.compile(r"(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<mark>[^`\n]*+)")
_INDENT = re.compile(r" {0,3}")
_PYTHON = {"python", "python3", "py"}


def extract_code(text: str, ended: bool) -> str | None:
    """The program of a response, None where the rule finds none. ended: it was not cut off.

    >>> extract_code("<think>```python\\nbad\\n```</think>so\\n```python\\ngood\\n```", ended=True)
    'good\\n'
    """
    _, closed, after = text.rpartition("</think>")
    said = after if closed else text
    if "<think>" in said:
        said = said.partition("<think>")[0]
    blocks = _blocks(said.replace("\r\n", "\n"), ended)
    marked = [code for mark, code in blocks if mark in _PYTHON]
    unmarked = [code for mark, code in blocks if not mark]
    return next(iter(marked[-1:] or unmarked[-1:]), None)


def _blocks(text: str, ended: bool) -> list[tuple[str, str]]:
    """Marks and contents, in order."""
    found: list[tuple[str, str]] = []
    opened: str | None = None
    mark, lines, indent = "", list[str](), 0
    for line in text.split("\n"):
        bare = line[_INDENT.match(line).end() :]  # pyright: ignore[reportOptionalMemberAccess] - it always matches
        fence = _FENCE.fullmatch(bare.rstrip())
        if opened is None:
            if fence:
                opened, lines, indent = fence["fence"], [], len(line) - len(bare)
                words = fence["mark"].lower().split()
                mark = words[0] if words else ""
        elif fence and not fence["mark"] and _closes(fence["fence"], opened):
            found.append((mark, "".join(f"{entry}\n" for entry in lines)))
            opened = None
        else:
            lines.append(line[min(indent, len(line) - len(line.lstrip(" "))) :])
    if opened is not None and ended:
        found.append((mark, "".join(f"{entry}\n" for entry in lines)))
    return found


def _closes(fence: str, opened: str) -> bool:
    return fence[0] == opened[0] and len(fence) >= len(opened)
