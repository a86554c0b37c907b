"""A character-level tokenizer for the made tasks: one token a character, nothing merged.

Text and ids determine one another: decode(encode(text)) == text and encode(decode(ids)) == ids.
"""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gspo.errors import DataError

PAD_TOKEN = "<pad>"  # noqa: S105 — a token of text, no password
EOS_TOKEN = "<eos>"  # noqa: S105
ANY_CHARACTER = r"[\s\S]"  # "." would leave out the line break


def character_tokenizer(characters: str) -> PreTrainedTokenizerFast:
    """Tokenizer over these characters, in this order, after <pad> (0) and <eos> (1).

    It saves to and loads from a Hugging Face folder like any other, and adds no token of its own.
    The unknown token is deliberately missing from the vocabulary: a character that is not one of
    these raises ("Missing [UNK] token") instead of being dropped.
    """
    if not characters or len(set(characters)) != len(characters):
        raise DataError(
            f"the characters of a tokenizer are {characters!r}; wanted at least one, each once"
        )
    tokens = [PAD_TOKEN, EOS_TOKEN, *characters]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(ANY_CHARACTER), "isolated")  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS_TOKEN,
        pad_token=PAD_TOKEN,
        clean_up_tokenization_spaces=False,
    )
