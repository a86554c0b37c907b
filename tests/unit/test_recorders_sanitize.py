"""Text a terminal would obey is shown, not obeyed."""

from __future__ import annotations

import pytest

from gspo.recorders.sanitize import visible, well_formed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 中文 🎉", "plain ünïcode 中文 🎉"),
        ("\x1b[2J\x1b[31mred", "␛[2J␛[31mred"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "␛]8;;http://evil␛\\link␛]8;;␛\\"),
        ("\x9b31m", "\\x9b31m"),  # the one-byte form of ESC [
        ("a\u202eb\u2066c\u200ed\u061ce", "a\\u202eb\\u2066c\\u200ed\\u061ce"),
        ("a\x00b\x07c\x08d\re\x7f", "a␀b␇c␈d␍e␡"),
        ("a\ud800b", "a\\ud800b"),
        ("a\u2028b\u200bc\ufeff", "a\\u2028b\\u200bc\\ufeff"),
        ("\U000e0041", "\\U000e0041"),  # tag characters hide text
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("no\u00a0break, ideographic\u3000space", "no\u00a0break, ideographic\u3000space"),
        ("👩\u200d🔬 می\u200cشود", "👩\u200d🔬 می\u200cشود"),
    ],
)
def test_each_character_a_terminal_obeys_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_line_shows_newlines_and_tabs() -> None:
    assert visible("a\nb\tc", one_line=True) == "a␊b␉c"


def test_long_text_is_cut_and_the_note_counts_the_rest() -> None:
    assert visible("abcdef", max_chars=4) == "abcd… [2 more characters]"
    assert visible("abcd", max_chars=4) == "abcd"
    long = visible("x\x1b" * 500_000, max_chars=10)
    assert long == "x␛" * 5 + "… [999,990 more characters]"


def test_every_character_of_the_first_planes_comes_out_harmless() -> None:
    shown = visible("".join(map(chr, range(0x30000))))
    obeyed = [c for c in shown if not c.isprintable() and c not in "\n\t\u200c\u200d"]
    assert {c for c in obeyed if not c.isspace()} == set()
    assert "\r" not in shown
    assert "\u2028" not in shown


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83c\udf89", "🎉"),  # two halves that belong together
        ("\ud83c\ud83c\udf89", "\ufffd🎉"),
        ("ok\x00\x1b", "ok\x00\x1b"),
    ],
)
def test_lone_surrogates_become_the_replacement_character(text: str, kept: str) -> None:
    assert well_formed(text) == kept
    kept.encode()
