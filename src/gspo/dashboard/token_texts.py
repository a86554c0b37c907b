"""The text of single tokens, from the tokenizer that a run keeps beside its checkpoints.

A recipe may name a tokenizer elsewhere; it is not opened, as nothing outside the run folder is.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gspo.dashboard.beneath import Beneath
from gspo.errors import DataError
from gspo.recorders.tables import step_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TOKENIZER_BYTES = 2**26  # the largest in use have some 30 MB
NUM_KEPT = 2  # a large vocabulary takes 100 MB
LOST = "\ufffd"  # what a decoder gives for a part of a character
BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
WORD_START = "\u2581"  # SentencePiece's mark for the blank before a word


class TokenTexts:
    """Tokenizers by their content: runs of one model share one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Tokenizer] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, files: Beneath, ids: Iterable[int]) -> list[str] | None:
        """The text of each id, alone; None where the run keeps no tokenizer that loads."""
        with self._lock:
            tokenizer = self._tokenizer(files)
            if tokenizer is None:
                return None
            known: dict[int, str] = {}
            return [
                known[i] if i in known else known.setdefault(i, piece(tokenizer, i)) for i in ids
            ]

    def _tokenizer(self, files: Beneath) -> Tokenizer | None:
        content = _content(files)
        if content is None:
            return None
        digest = hashlib.sha256(content).hexdigest()
        tokenizer = self._kept.pop(digest, None) or _load(content)
        if tokenizer is not None:
            self._kept[digest] = tokenizer
        while len(self._kept) > NUM_KEPT:
            self._kept.popitem(last=False)
        return tokenizer


def _content(files: Beneath) -> bytes | None:
    """The tokenizer.json of the newest checkpoint that has one."""
    try:
        folders = files.names("checkpoints")
    except DataError:
        return None
    steps = {step: name for name in folders if (step := step_of(Path(name))) is not None}
    for step in sorted(steps, reverse=True):
        parts = ("checkpoints", steps[step], "model", "tokenizer.json")
        try:
            content = files.read(*parts, max_bytes=MAX_TOKENIZER_BYTES)
        except DataError:
            continue  # a link, or too long: an older checkpoint may do
        if content is not None:
            return content
    return None


def _load(content: bytes) -> Tokenizer | None:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(content)
    except ValueError:
        return None


def piece(tokenizer: Tokenizer, token_id: int) -> str:
    """What a token stands for, blanks before words included. A token that is a part of a character
    is shown as its bytes, such as \\xe4\\xb8; an id beyond the vocabulary as its number."""
    name = tokenizer.id_to_token(token_id) if 0 <= token_id < 2**32 else None
    if name is None:
        return f"<{token_id}>"
    text = tokenizer.decode([token_id], skip_special_tokens=False)
    if LOST in text and LOST not in name:
        return _bytes_of(name).decode("utf-8", "backslashreplace")
    if name.startswith(WORD_START) and not text.startswith((" ", WORD_START)):
        return f" {text}"
    return text or name


def _bytes_of(name: str) -> bytes:
    """The bytes behind the name of a token, in either way of writing them."""
    match = BYTE_PIECE.fullmatch(name)
    if match:
        return bytes([int(match[1], 16)])
    return b"".join(_BYTES.get(char, char.encode("utf-8", "replace")) for char in name)


def _byte_names() -> dict[str, bytes]:
    """Byte-level BPE writes a printable Latin-1 byte as that character, and the other 68, in
    order, as the characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    names = {chr(byte): bytes([byte]) for byte in printable}
    return names | {chr(0x100 + k): bytes([byte]) for k, byte in enumerate(others)}


_BYTES = _byte_names()
