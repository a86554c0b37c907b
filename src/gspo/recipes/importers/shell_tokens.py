"""A launch script cut into words as a shell would, without running it.

Understood: quotes, comments, lines that go on, variables, arrays, `;`, `|`, `&&`. A word keeps its
parts: what is literal, what names a variable, what only a shell could tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gspo.errors import RecipeError

_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACED = re.compile(r"\{([A-Za-z_]\w*)(?:\[[@*]\])?(?::?-([^{}$`]*))?\}")
_OPERATORS = ("&&", "||", ";;", ";", "|", "&", "<", ">", "(", ")")
#: Where input comes from and output goes, with the number of a stream in front; `<(` is none.
_REDIRECTION = re.compile(r"\d*(?:<<<|<<-?|[<>]&|&>>?|>>|>\||[<>])(?!\()")
#: What runs its input as commands: a here-document of these is part of the script.
_SHELLS = frozenset({"bash", "sh", "zsh", "sbatch", "srun", "ssh", "qsub"})


@dataclass(frozen=True, slots=True)
class Piece:
    """kind: "text", "variable", "arithmetic" or "shell" (only a shell could tell). text: the
    characters, the name, the formula, or what stands there. quoted: not cut at blanks. default: of
    a variable."""

    kind: str
    text: str
    quoted: bool
    default: str | None = None


@dataclass(slots=True)
class Word:
    """Pieces that follow one another. A word of an operator has the kind "operator"."""

    line: int
    pieces: list[Piece] = field(default_factory=list)

    @property
    def operator(self) -> str | None:
        """The operator that this word is: `;`, `(`, a line end."""
        first = self.pieces[0] if self.pieces else None
        return first.text if first is not None and first.kind == "operator" else None


def tokens(text: str, source: str) -> list[Word]:
    """The words of a script in order; a line end is the operator "\\n"."""
    return _Lexer(text, source).run()


class _Lexer:
    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text.replace("\r\n", "\n"), source
        self._at, self._line = 0, 1
        self._words: list[Word] = []
        self._word: Word | None = None
        self._redirected: str | None = None  # the next word is no argument, but where to or from
        self._documents: list[tuple[str, bool]] = []  # delimiters of here-documents, and if tabs go

    def run(self) -> list[Word]:
        while self._at < len(self._text):
            self._step()
        self._end_word()
        return self._words

    def _step(self) -> None:
        here = self._text[self._at]
        if self._text.startswith("\\\n", self._at):
            self._go(2)
        elif here == "\n":
            self._end_word()
            self._operator("\n")
            self._go(1)
            self._skip_documents()
        elif (
            self._word is None
            and here in "0123456789<>&"
            and (found := _REDIRECTION.match(self._text, self._at))
        ):
            self._redirected = found[0].lstrip("0123456789")
            self._go(len(found[0]))
        elif self._word is not None and here in "<>" and self._ends_word_at(self._at):
            self._end_word()
        elif here.isspace():
            self._end_word()
            self._go(1)
        elif here == "#" and self._word is None:
            self._go(len(self._text[self._at :].partition("\n")[0]))
        elif here == "'":
            self._single()
        elif here == '"':
            self._double()
        elif here == "\\":
            self._add("text", self._text[self._at + 1 : self._at + 2], quoted=True)
            self._go(2)
        elif here in "$`":
            self._expansion(quoted=False)
        elif found := next((o for o in _OPERATORS if self._text.startswith(o, self._at)), None):
            self._end_word()
            self._operator(found)
            self._go(len(found))
        else:
            self._add("text", here, quoted=False)
            self._go(1)

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        self._closed(end, "'")
        self._add("text", self._text[self._at + 1 : end], quoted=True)
        self._go(end + 1 - self._at)

    def _double(self) -> None:
        first = self._line
        self._add("text", "", quoted=True)
        self._go(1)
        while self._at < len(self._text) and self._text[self._at] != '"':
            here = self._text[self._at]
            if here == "\\" and self._text[self._at + 1 : self._at + 2] in (
                "\n",
                '"',
                "\\",
                "$",
                "`",
            ):
                after = self._text[self._at + 1]
                self._add("text", "" if after == "\n" else after, quoted=True)
                self._go(2)
            elif here in "$`":
                self._expansion(quoted=True)
            else:
                self._add("text", here, quoted=True)
                self._go(1)
        if self._at >= len(self._text):
            raise RecipeError(f'{self._source} line {first}: a " is never closed')
        self._go(1)

    def _expansion(self, *, quoted: bool) -> None:
        rest = self._text[self._at :]
        if rest.startswith("$(("):
            end = rest.find("))")
            self._closed(end, "$((")
            self._add("arithmetic", rest[3:end], quoted=quoted)
            self._go(end + 2)
        elif rest.startswith(("$(", "`")):
            end = _parenthesis(rest) if rest[0] == "$" else rest.find("`", 1)
            self._closed(end, rest[:2])
            self._add("shell", rest[: end + 1], quoted=quoted)
            self._go(end + 1)
        elif braced := _BRACED.match(rest, 1):
            self._add("variable", braced[1], quoted=quoted, default=braced[2])
            self._go(braced.end())
        elif rest.startswith("${"):
            end = rest.find("}")
            self._closed(end, "${")
            self._add("shell", rest[: end + 1], quoted=quoted)
            self._go(end + 1)
        elif name := _NAME.match(rest, 1):
            self._add("variable", name[0], quoted=quoted)
            self._go(name.end())
        elif rest[1:2] and rest[1] in "@*#?$!0123456789":
            self._add("shell", rest[:2], quoted=quoted)
            self._go(2)
        else:
            self._add("text", "$", quoted=quoted)
            self._go(1)

    def _closed(self, end: int, opening: str) -> None:
        if end < 0:
            raise RecipeError(f"{self._source} line {self._line}: {opening} is never closed")

    def _add(self, kind: str, text: str, *, quoted: bool, default: str | None = None) -> None:
        if self._word is None:
            self._word = Word(self._line)
        self._word.pieces.append(Piece(kind, text, quoted, default))

    def _operator(self, text: str) -> None:
        self._words.append(Word(self._line, [Piece("operator", text, quoted=False)]))

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = self._word, None
        if self._redirected is None:
            self._words.append(word)
            return
        if self._redirected in ("<<", "<<-") and self._first_of_command() not in _SHELLS:
            delimiter = "".join(piece.text for piece in word.pieces)
            self._documents.append((delimiter, self._redirected == "<<-"))
        self._redirected = None

    def _ends_word_at(self, at: int) -> bool:
        """`a>b`: a redirection needs no blank in front."""
        return _REDIRECTION.match(self._text, at) is not None

    def _first_of_command(self) -> str:
        """The name of the command that is being read."""
        name = ""
        for word in reversed(self._words):
            if word.operator is not None:
                break
            name = "".join(piece.text for piece in word.pieces)
        return name.rpartition("/")[2]

    def _skip_documents(self) -> None:
        """The lines of here-documents are text for a command, not commands."""
        for delimiter, tabs in self._documents:
            while self._at < len(self._text):
                line = self._text[self._at :].partition("\n")[0]
                self._go(len(line) + 1)
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._documents = []

    def _go(self, count: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count


def _parenthesis(text: str) -> int:
    """Where the one that `$(` opens is closed; -1: nowhere."""
    depth, quote = 0, ""
    for index, here in enumerate(text):
        if quote == "'" or here in "'\"":
            quote = "" if here == quote else quote or here
        elif here == "(":
            depth += 1
        elif here == ")":
            depth -= 1
            if depth == 0:
                return index
    return -1
