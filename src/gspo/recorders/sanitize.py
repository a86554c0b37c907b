"""Model text at two borders: a terminal, which obeys control characters, and a file, which must be
valid UTF-8.

>>> visible("a\\x1b[31mb")
'a␛[31mb'
"""

from __future__ import annotations

import unicodedata

CONTROL_PICTURES = 0x2400  # U+2400 + code is the visible picture of control character `code`
DELETE_PICTURE = "\u2421"
KEPT = "\n\t"
#: Joiners: Persian and emoji need them, and they move nothing.
JOINERS = "\u200c\u200d"


def visible(text: str, *, max_chars: int | None = None, one_line: bool = False) -> str:
    """The text with everything a terminal would obey, reorder or hide made visible.

    Control characters become their pictures (␛), the others their escapes (\\u202e). Newline and
    tab stay, unless `one_line`. max_chars: characters of `text` kept; a note counts the rest.
    """
    num_left = 0 if max_chars is None else len(text) - max_chars
    kept = text[:max_chars] if num_left > 0 else text
    if not kept.isprintable():
        keep = "" if one_line else KEPT
        kept = "".join(
            char if char.isprintable() or char in keep else _shown(char) for char in kept
        )
    return f"{kept}… [{num_left:,} more characters]" if num_left > 0 else kept


def _shown(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(CONTROL_PICTURES + code)
    if code == 0x7F:
        return DELETE_PICTURE
    if unicodedata.category(char) == "Zs" or char in JOINERS:
        return char
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD: Parquet and strict JSON readers refuse
    them, and the token ids beside the text keep what was sampled.

    >>> well_formed("a\\ud800b")
    'a�b'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
