"""Prompts of text as conversations."""

import pytest

from gspo.data.templates import Chat, encode_prompts
from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError
from gspo.types import Prompt

TEMPLATE = "{% for m in messages %}[{{ m.role[0] }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}[a:{% endif %}{% if think %}t{% endif %}"


@pytest.fixture
def encode():
    tokenizer = character_tokenizer("[]:suabt123")
    tokenizer.chat_template = TEMPLATE

    def run(prompt, chat):
        (found,) = encode_prompts([prompt], tokenizer, max_tokens=50, chat=chat).prompts
        assert tokenizer.decode(list(found.ids)) == found.text
        return found

    return run


TEXT = Prompt(id="p", text="12", ids=())
MESSAGES = Prompt(id="p", text="", ids=(), messages=[{"role": "user", "content": "1"}])
SYSTEM = [{"role": "system", "content": "b"}, *(MESSAGES.messages or [])]


def test_text_becomes_a_user_message_only_when_asked(encode):
    assert encode(TEXT, None).text == "12"
    found = encode(TEXT, Chat())
    assert found.text == "[u:12][a:"
    assert found.messages == [{"role": "user", "content": "12"}]


def test_a_system_message_stands_before_what_has_none(encode):
    chat = Chat(system="ab")
    assert encode(TEXT, chat).text == "[s:ab][u:12][a:"
    assert encode(MESSAGES, chat).text == "[s:ab][u:1][a:"
    own = Prompt(id="p", text="", ids=(), messages=SYSTEM)
    assert encode(own, chat).text == "[s:b][u:1][a:"


def test_options_reach_the_template_and_unknown_ones_are_errors(encode):
    assert encode(TEXT, Chat(options={"think": True})).text == "[u:12][a:t"
    with pytest.raises(DataError, match=r"data\.chat\.options has 'thinking', which the chat temp"):
        encode(TEXT, Chat(options={"thinking": True}))


def test_chat_needs_a_template():
    with pytest.raises(DataError, match="has no chat template"):
        encode_prompts([TEXT], character_tokenizer("12"), max_tokens=9, chat=Chat())
