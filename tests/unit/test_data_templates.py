"""Prompt ids: one BOS, the template's own tokens, no cut."""

import pytest
from tokenizers import processors
from transformers import PreTrainedTokenizerFast

from gspo.data.templates import encode_prompts, response_ids
from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError
from gspo.types import Prompt

CHAT = "{% for m in messages %}[{{ m.role[0] }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}[a:{% endif %}"
BOS = 2  # "^", the first character
EOS = 1
CHARACTERS = "^[]:suab123 "


def tokenizer_of(*, template: str | None = None, adds_bos=False, adds_eos=False):
    """Characters, with "^" as BOS."""
    core = character_tokenizer(CHARACTERS).backend_tokenizer
    left, right = "^ " if adds_bos else "", " <eos>" if adds_eos else ""
    core.post_processor = processors.TemplateProcessing(
        single=f"{left}$A{right}", special_tokens=[("^", BOS), ("<eos>", EOS)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="^", eos_token="<eos>", pad_token="<pad>"
    )
    tokenizer.chat_template = template
    return tokenizer


def text(content, name="p"):
    return Prompt(id=name, text=content, ids=())


def chat(*turns):
    messages = [{"role": role, "content": content} for role, content in turns]
    return Prompt(id="p", text="", ids=(), messages=messages)


def encode(prompt, tokenizer):
    (encoded,) = encode_prompts([prompt], tokenizer, max_tokens=100).prompts
    assert type(encoded.ids) is tuple
    return tokenizer.decode(list(encoded.ids))


def test_messages_go_through_the_template_with_a_generation_prompt():
    prompt = chat(("system", "b"), ("user", "12"))
    tokenizer = tokenizer_of(template=CHAT)
    (encoded,) = encode_prompts([prompt], tokenizer, max_tokens=100).prompts
    assert encoded.text == "[s:b][u:12][a:"
    assert tokenizer.decode(list(encoded.ids)) == encoded.text


@pytest.mark.parametrize(
    ("adds_bos", "template", "wanted"),
    [
        (True, "^" + CHAT, "^[u:1][a:"),  # the fault: two of them
        (False, "^" + CHAT, "^[u:1][a:"),
        (True, CHAT, "[u:1][a:"),  # the template defines the conversation
        (False, CHAT, "[u:1][a:"),
    ],
)
def test_bos_of_messages_is_the_templates(adds_bos, template, wanted):
    tokenizer = tokenizer_of(template=template, adds_bos=adds_bos)
    assert encode(chat(("user", "1")), tokenizer) == wanted


def test_bos_of_text_is_the_tokenizers():
    assert encode(text("12"), tokenizer_of(adds_bos=True)) == "^12"
    assert encode(text("^12"), tokenizer_of(adds_bos=True)) == "^12"
    assert encode(text("12"), tokenizer_of()) == "12"
    assert encode(text("12"), character_tokenizer("12")) == "12"


def test_an_end_token_the_tokenizer_appends_is_left_out():
    assert encode(text("12"), tokenizer_of(adds_bos=True, adds_eos=True)) == "^12"
    assert encode(chat(("user", "1")), tokenizer_of(template=CHAT, adds_eos=True)) == "[u:1][a:"


def test_two_bos_are_an_error():
    with pytest.raises(DataError, match="p starts with two BOS"):
        encode(chat(("user", "1")), tokenizer_of(template="^^" + CHAT))


def test_messages_need_a_template_that_takes_them():
    with pytest.raises(DataError, match="prompt p is messages, and the tokenizer .* has no chat"):
        encode(chat(("user", "1")), tokenizer_of())
    strict = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(DataError, match="prompt p: the chat template refuses it: roles must"):
        encode(chat(("user", "1")), tokenizer_of(template=strict))


def test_the_limit_counts_the_final_ids_and_nothing_is_cut():
    tokenizer = tokenizer_of(template=CHAT)
    prompts = [text("1" * 9, "a"), text("1" * 10, "b"), text("1" * 11, "c"), text("1" * 400, "d")]
    with pytest.raises(DataError, match=r"2 of 4 prompts are longer than 10 tokens: c \(11\), d"):
        encode_prompts(prompts, tokenizer, max_tokens=10)
    result = encode_prompts(prompts, tokenizer, max_tokens=10, too_long="drop")
    assert [p.id for p in result.prompts] == ["a", "b"]
    assert result.dropped == [("c", 11), ("d", 400)]
    conversation = chat(("user", "1"))  # 8 tokens with its template
    assert encode_prompts([conversation], tokenizer, max_tokens=8).prompts
    with pytest.raises(DataError, match=r"longer than 7 tokens: p \(8\)"):
        encode_prompts([conversation], tokenizer, max_tokens=7)


def test_no_prompt_left_is_an_error():
    with pytest.raises(DataError, match="there are 0 prompts to encode"):
        encode_prompts([], tokenizer_of(), max_tokens=9)
    with pytest.raises(DataError, match="1 of 1 prompts are longer than 1 tokens"):
        encode_prompts([text("12")], tokenizer_of(), max_tokens=1, too_long="drop")
    with pytest.raises(DataError, match="prompt p has no tokens; its text is ''"):
        encode_prompts([text("")], tokenizer_of(), max_tokens=9)


def test_a_written_response_ends():
    assert response_ids("12", character_tokenizer("12")) == [2, 3, 1]
    assert response_ids("12", tokenizer_of(adds_bos=True, adds_eos=True)) == [10, 11, 1]
    with pytest.raises(DataError, match="no end token"):
        response_ids(
            "1",
            PreTrainedTokenizerFast(
                tokenizer_object=character_tokenizer("1").backend_tokenizer, pad_token="<pad>"
            ),
        )


def test_a_character_that_the_task_tokenizer_lacks_is_named():
    prompts = [Prompt(id="p7", text="what is 2+2?", ids=())]
    with pytest.raises(DataError, match=r"prompt p7 has ' ', '\?', 'a'.*lacks: it knows '\+0123'"):
        encode_prompts(prompts, character_tokenizer("0123+"), max_tokens=99)
