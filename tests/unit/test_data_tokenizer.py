"""One token a character, and nothing lost on the way through a folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError

CHARACTERS = "0123456789+=;> \n"
TOKENIZER = character_tokenizer(CHARACTERS)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    TOKENIZER.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def test_ids_by_hand():
    assert TOKENIZER("10+ \n")["input_ids"] == [3, 2, 12, 16, 17]
    assert (TOKENIZER.pad_token_id, TOKENIZER.eos_token_id, TOKENIZER.bos_token_id) == (0, 1, None)
    assert len(TOKENIZER) == len(CHARACTERS) + 2


@given(st.text(CHARACTERS, max_size=40))
def test_text_and_ids_determine_one_another(text):
    ids = TOKENIZER(text)["input_ids"]
    assert len(ids) == len(text)
    assert TOKENIZER.decode(ids) == text


@given(st.lists(st.integers(2, len(CHARACTERS) + 1), max_size=40))
def test_sampled_ids_survive_decode_and_encode(ids):
    assert TOKENIZER(TOKENIZER.decode(ids))["input_ids"] == ids


def test_the_loaded_one_is_the_same(loaded):
    text = "38 + 4 =\n760=13;>42"
    ids = loaded(text)["input_ids"]
    assert ids == TOKENIZER(text)["input_ids"]
    assert loaded.decode([*ids, 1], skip_special_tokens=True) == text
    assert (loaded.pad_token_id, loaded.eos_token_id, len(loaded)) == (0, 1, len(TOKENIZER))


def test_an_unknown_character_is_an_error(loaded):
    for tokenizer in (TOKENIZER, loaded):
        with pytest.raises(Exception, match=r"Missing \[UNK\] token"):
            tokenizer("12x")


def test_characters_are_each_there_once():
    with pytest.raises(DataError, match="'0010'; wanted at least one, each once"):
        character_tokenizer("0010")
    with pytest.raises(DataError, match="''"):
        character_tokenizer("")
