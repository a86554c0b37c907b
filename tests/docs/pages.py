"""Reads the pages that people read: their code blocks, with what stands before and after."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")))

FENCE = re.compile(r"^```(\w*)[ ]*(.*?)\n(.*?)^```$", re.M | re.S)
REASON = re.compile(r"<!-- notest: (.+?) -->\n\Z")
OUTPUT = re.compile(r"\A\n\n```text\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """language and mark: what follows the three ticks. line: number of the fence, from 1. reason:
    the comment just above, for blocks marked notest. output: the text block just below."""

    language: str
    mark: str
    text: str
    line: int
    reason: str | None
    output: str | None


def blocks(text: str, language: str) -> list[Block]:
    """The code blocks of a page that are in this language."""
    found = []
    for match in FENCE.finditer(text):
        if match[1] == language:
            reason = REASON.search(text[: match.start()])
            output = OUTPUT.search(text[match.end() :])
            found.append(
                Block(
                    language=language,
                    mark=match[2],
                    text=match[3],
                    line=text.count("\n", 0, match.start()) + 1,
                    reason=reason[1] if reason else None,
                    output=output[1] if output else None,
                )
            )
    return found


def commands(text: str) -> list[list[str]]:
    """The words of every command in the bash blocks of a page; lines ending in a backslash go on."""
    lines = [
        line
        for block in blocks(text, "bash")
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def anchors(text: str) -> set[str]:
    """What `#...` may stand behind a link to this page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
