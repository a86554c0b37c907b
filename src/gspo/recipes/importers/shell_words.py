"""The words of every command of a launch script, its variables put in where the script states them.

Nothing is run. A variable that a condition, a loop or the environment decides, and the output of a
command, are holes: text between two HOLE marks, which a value that matters must not have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gspo.recipes.importers.found import Unreadable, text_of
from gspo.recipes.importers.python_values import UnreadableError, value_of
from gspo.recipes.importers.shell_tokens import Piece, Word, tokens

HOLE = "\0"
_BLANK = "\1"  # in a hole: it is no place to cut the word at
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_OPENERS, _CLOSERS = (
    frozenset({"if", "for", "while", "until", "case"}),
    frozenset({"fi", "done", "esac"}),
)
_SUCCEED = frozenset({"cd", "set", "mkdir", "source", ".", "echo", "true", "ulimit", "export"})
_READERS = frozenset({"unset", "read", "mapfile", "readarray", "getopts"})
_PREFIXES = frozenset({"export", "local", "declare", "readonly"})
MAX_VALUE = 100_000  # characters of a variable: a script that doubles one ends here


@dataclass(frozen=True, slots=True)
class Shown:
    """A word after its variables were put in. text may hold holes."""

    text: str
    line: int


def commands(path: Path) -> list[list[Shown]]:
    """Every command of a script, in order, as far as it is stated."""
    return list(_Reader().read(tokens(text_of(path), path.name)))


def is_rest_of_command_line(text: str) -> bool:
    """`$@`: what is typed behind the script's name."""
    return text.replace(HOLE, "") in ("$@", "$*", "${@:1}", "${@:2}")


def plain(text: str) -> str | Unreadable:
    """A value without holes, or what it says."""
    if HOLE not in text:
        return text
    parts = text.replace(_BLANK, " ").split(HOLE)
    shown = "".join(parts)
    return Unreadable(shown, f"{parts[1]} is not stated in the file")


class _Reader:
    def __init__(self) -> None:
        self._variables: dict[str, str | list[str]] = {}
        self._depth = 0
        self._loops = False  # the next word is the variable of a `for`
        self._operator = "\n"  # the last one; after `&&` and `||` it is open whether a command runs

    def read(self, words: list[Word]) -> Iterator[list[Shown]]:
        command: list[Shown] = []
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            if word.operator is not None:
                goes_on = index > 1 and words[index - 2].operator in ("&&", "||")
                if not (word.operator == "\n" and goes_on):
                    self._joined(word.operator, command)
                if command:
                    self._forget(command)
                    yield command
                command = []
                continue
            name = self._assignment(word) if not command else None
            opens = index < len(words) and words[index].operator == "("
            if name is not None and opens and self._is_bare(word):
                index = self._array(name, word, words, index + 1)
            elif name is not None:
                self._assign(name, word)
            else:
                command = self._without_keywords([*command, *self._expanded(word)])
        if command:
            yield command

    def _joined(self, operator: str, command: list[Shown]) -> None:
        """Notes what stands between two commands. What follows `cd x &&` is as certain as before."""
        if operator == "&&" and (not command or command[0].text in _SUCCEED):
            return
        self._operator = operator

    def _forget(self, command: list[Shown]) -> None:
        """Variables that a command takes away or reads from somewhere."""
        if command[0].text in _READERS:
            for word in command[1:]:
                self._variables[word.text] = _hole(f"${word.text}")

    def _without_keywords(self, command: list[Shown]) -> list[Shown]:
        """Conditions and loops are counted; `export` in front of an assignment is nothing."""
        if self._loops and command:
            self._loops = False
            self._variables[command[0].text] = _hole(f"${command[0].text}")
        if len(command) != 1:
            return command
        word = command[0].text
        self._loops = word == "for"
        if word in _OPENERS:
            self._depth += 1
        elif word in _CLOSERS:
            self._depth -= 1
        elif word not in ("then", "else", "elif", "do", "{", "}", *_PREFIXES):
            return command
        return []

    def _assignment(self, word: Word) -> str | None:
        """The variable that a word sets, if it sets one."""
        match = _ASSIGNED.match(_leading_text(word))
        return match[1] if match else None

    def _is_bare(self, word: Word) -> bool:
        """`NAME=` with nothing behind it, in front of a parenthesis."""
        text = "".join(piece.text for piece in word.pieces)
        return _ASSIGNED.fullmatch(text) is not None

    def _assign(self, name: str, word: Word) -> None:
        match = _ASSIGNED.match(_leading_text(word))
        if match is None:
            return
        value = "".join(self._piece(piece) for piece in word.pieces)[match.end() :]
        before = self._variables.get(name, "")
        if match[2]:
            value = f"{before if isinstance(before, str) else ' '.join(before)}{value}"
        self._variables[name] = self._decided(name, value)

    def _decided(self, name: str, value: str) -> str:
        if self._is_open() or len(value) > MAX_VALUE:
            return _hole(f"${name}")
        return value

    def _is_open(self) -> bool:
        """Whether a condition or a loop decides if this command runs, and how often."""
        return self._depth > 0 or self._operator in ("&&", "||")

    def _array(self, name: str, first: Word, words: list[Word], index: int) -> int:
        """`NAME=( ... )` or `NAME+=( ... )`; returns the index behind it."""
        before = self._variables.get(name, []) if _leading_text(first).endswith("+=") else []
        items = list(before) if isinstance(before, list) else [before]
        while index < len(words) and words[index].operator != ")":
            if words[index].operator is None:
                items += [shown.text for shown in self._expanded(words[index])]
            index += 1
        self._variables[name] = _hole(f"${name}") if self._is_open() else items
        return index + 1

    def _expanded(self, word: Word) -> Iterator[Shown]:
        """One word, or several where an unquoted variable holds blanks."""
        parts: list[str] = []
        any_quoted = False
        for piece in word.pieces:
            any_quoted |= piece.quoted
            value = self._variables.get(piece.text) if piece.kind == "variable" else None
            if isinstance(value, list):
                any_quoted = False  # an array brings as many words as it has, be it none
                for item in value:
                    yield from self._ended(parts, word.line)
                    parts = []
                    yield Shown(item, word.line)
                continue
            text = self._piece(piece)
            if piece.quoted or piece.kind == "text":
                parts.append(text)
                continue
            first, *rest = re.split(r"[ \t\n]+", text)
            parts.append(first)
            for other in rest:
                yield from self._ended(parts, word.line)
                parts = [other]
        if any_quoted or "".join(parts):
            yield Shown("".join(parts), word.line)

    def _ended(self, parts: list[str], line: int) -> Iterator[Shown]:
        if "".join(parts):
            yield Shown("".join(parts), line)

    def _piece(self, piece: Piece) -> str:
        match piece.kind:
            case "text":
                return piece.text
            case "variable":
                return self._variable(piece)
            case "arithmetic":
                return self._arithmetic(piece.text)
            case _:
                return _hole(piece.text)

    def _variable(self, piece: Piece) -> str:
        value = self._variables.get(piece.text)
        if isinstance(value, list):
            return " ".join(value)
        if value is not None:
            return value
        if piece.default is not None:
            return piece.default
        return _hole(f"${piece.text}")

    def _arithmetic(self, formula: str) -> str:
        """`$((1024 * 2))`, in whole numbers."""

        def number(match: re.Match[str]) -> str:
            value = self._variables.get(match[1], "")
            return f"({value})" if isinstance(value, str) and value else match[0]

        stated = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", number, formula)
        try:
            tree = ast.parse(stated.strip().replace("/", "//"), mode="eval")
            return str(int(value_of(tree.body, {})))
        except (UnreadableError, SyntaxError, ValueError, TypeError, RecursionError):
            return _hole(f"$(({formula}))")


def _leading_text(word: Word) -> str:
    """The unquoted text at the start of a word."""
    text = ""
    for piece in word.pieces:
        if piece.kind != "text" or piece.quoted:
            break
        text += piece.text
    return text


def _hole(text: str) -> str:
    return HOLE + _BLANK.join(text.split()) + HOLE
