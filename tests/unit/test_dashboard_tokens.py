"""The text of single tokens, in each way that tokenizers write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gspo.dashboard.answers import open_view
from gspo.dashboard.token_texts import piece
from gspo.recorders.run_folder import RunFolder
from tests.browser.made_steps import PIECES
from tests.browser.recorded import save_tokenizer


def byte_level() -> Tokenizer:
    """One token a byte, and two words."""
    names = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {name: k for k, name in enumerate([*names, "Ġthe", "Ġä".replace("ä", "Ã¤")])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


def sentencepiece() -> Tokenizer:
    pieces = ["<unk>", "▁the", "x", "<0xE4>", "<0x0A>", "▁"]
    tokenizer = Tokenizer(models.BPE({p: k for k, p in enumerate(pieces)}, [], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


@pytest.mark.parametrize(
    ("name", "text"),
    [("Ġthe", " the"), ("a", "a"), ("Ċ", "\n"), ("ä", "\\xe4"), ("Ã", "\\xc3"), ("ĠÃ¤", " ä"),
     ("<|end|>", "<|end|>")],
)  # fmt: skip
def test_byte_level_pieces(name: str, text: str) -> None:
    tokenizer = byte_level()
    assert piece(tokenizer, tokenizer.token_to_id(name)) == text


def test_every_byte_comes_back_as_itself() -> None:
    tokenizer = byte_level()
    shown = {
        piece(tokenizer, tokenizer.token_to_id(name))
        for name in pre_tokenizers.ByteLevel.alphabet()
    }
    assert shown == {chr(b) if b < 0x80 else f"\\x{b:02x}" for b in range(256)}


@pytest.mark.parametrize(
    ("name", "text"),
    [("▁the", " the"), ("x", "x"), ("<0xE4>", "\\xe4"), ("<0x0A>", "\n"), ("▁", " ")],
)
def test_sentencepiece_pieces_keep_their_blank(name: str, text: str) -> None:
    tokenizer = sentencepiece()
    assert piece(tokenizer, tokenizer.token_to_id(name)) == text


@pytest.mark.parametrize("token_id", [10**6, 2**32, 2**40, -1])
def test_an_id_beyond_the_vocabulary_is_its_number(token_id: int) -> None:
    assert piece(byte_level(), token_id) == f"<{token_id}>"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="")
    folder.close()
    return folder.path


def test_the_newest_checkpoint_with_a_tokenizer_is_taken(run: Path) -> None:
    view = open_view(run)
    assert view.token_texts([2]) is None
    save_tokenizer(run / "checkpoints" / "step-000003" / "model")
    (run / "checkpoints" / "step-000009" / "model").mkdir(parents=True)
    (run / "checkpoints" / "notes").mkdir()
    ids = [2, 3, 1, 2]
    assert view.token_texts(ids) == [PIECES[k] for k in ids]


def test_a_broken_tokenizer_is_none(run: Path) -> None:
    model = run / "checkpoints" / "step-000003" / "model"
    model.mkdir(parents=True)
    for content in (b"", b"{}", b"\xff", b'{"model": 1}'):
        (model / "tokenizer.json").write_bytes(content)
        assert open_view(run).token_texts([1]) is None
