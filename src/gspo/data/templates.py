"""Text or messages to prompt ids: the one place. Engine and trainer both see this list.

A prompt of messages goes through the tokenizer's chat template, which then writes every special
token itself; with `Chat`, a prompt of text becomes a message first. Another prompt of text is tokenised as it is, with one BOS in front if the tokenizer adds
one by default; an EOS that a tokenizer would append is left out: the prompt is to be continued.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from jinja2 import TemplateError
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerBase

from gspo.errors import DataError
from gspo.types import Prompt

NUM_NAMED = 5  # prompts that an error lists before it only counts


@dataclass(frozen=True, slots=True)
class Chat:
    """A prompt of text becomes a user message, a system message stands before it, and before any
    conversation that has none. options: variables of the chat template, as enable_thinking."""

    system: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class EncodedPrompts:
    """Prompts with their ids, and (id, tokens) of those dropped for being too long."""

    prompts: list[Prompt]
    dropped: list[tuple[str, int]]


def encode_prompts(
    prompts: Sequence[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_tokens: int,
    too_long: Literal["error", "drop"] = "error",
    chat: Chat | None = None,
) -> EncodedPrompts:
    """Fill `ids`, and `text` where the prompt is messages: the text the model sees.

    max_tokens: of the final ids, template included. What is longer is an error, or is dropped and
    listed; it is never cut. DataError also when nothing is left.
    """
    if not prompts:
        raise DataError(f"there are {len(prompts)} prompts to encode; wanted at least one")
    rendered = [_rendered(_as_chat(prompt, chat), tokenizer, chat or Chat()) for prompt in prompts]
    encoded = _encode(rendered, tokenizer)
    kept = [prompt for prompt in encoded if len(prompt.ids) <= max_tokens]
    dropped = [(p.id, len(p.ids)) for p in encoded if len(p.ids) > max_tokens]
    if dropped and (too_long == "error" or not kept):
        named = ", ".join(f"{name} ({length})" for name, length in dropped[:NUM_NAMED])
        raise DataError(
            f"{len(dropped)} of {len(prompts)} prompts are longer than {max_tokens} tokens: {named}{', …' if len(dropped) > NUM_NAMED else ''}; raise the limit, shorten them{'' if too_long == 'drop' else ', or drop them'}"
        )
    return EncodedPrompts(kept, dropped)


def response_ids(text: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Ids of a written response, with the end token. For demonstrations: a sampled response keeps
    the ids it was sampled with."""
    typed: Any = tokenizer
    if typed.eos_token_id is None:
        raise DataError(
            f"the tokenizer {typed.name_or_path!r} has no end token; a response could not end"
        )
    return [*typed(text, add_special_tokens=False)["input_ids"], typed.eos_token_id]


def _as_chat(prompt: Prompt, chat: Chat | None) -> Prompt:
    if chat is None:
        return prompt
    messages = prompt.messages or [{"role": "user", "content": prompt.text}]
    if chat.system is not None and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": chat.system}, *messages]
    return replace(prompt, messages=messages)


def _rendered(prompt: Prompt, tokenizer: Any, chat: Chat) -> Prompt:
    if prompt.messages is None:
        return prompt
    if not tokenizer.chat_template:
        raise DataError(
            f"prompt {prompt.id} is messages, and the tokenizer {tokenizer.name_or_path!r} has no chat template; give text, or a model with a template"
        )
    for name in chat.options:  # jinja takes any name and says nothing
        if not re.search(rf"\b{re.escape(name)}\b", str(tokenizer.chat_template)):
            raise DataError(
                f"data.chat.options has {name!r}, which the chat template of {tokenizer.name_or_path!r} does not read; take it out, or look for its name in the template"
            )
    messages = [dict(message) for message in prompt.messages]
    try:
        text = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False, **chat.options
        )
    except TemplateError as error:
        raise DataError(f"prompt {prompt.id}: the chat template refuses it: {error}") from error
    return replace(prompt, text=text)


def _check_characters(prompt: Prompt, tokenizer: Any) -> None:
    """A character tokenizer knows its characters and has nothing for others."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not isinstance(backend.model, WordLevel):
        return
    known = {token for token in tokenizer.get_vocab() if len(token) == 1}
    if missing := sorted(set(prompt.text) - known):
        raise DataError(
            f"prompt {prompt.id} has {', '.join(map(repr, missing[:NUM_NAMED]))}, which this model's tokenizer lacks: it knows {''.join(sorted(known))!r} and nothing else; use a model with a tokenizer for your text"
        )


def _encode(prompts: Sequence[Prompt], tokenizer: Any) -> list[Prompt]:
    """The prompts with their final ids, one BOS at most."""
    for prompt in prompts:
        _check_characters(prompt, tokenizer)
    texts = [prompt.text for prompt in prompts]
    ids_of_each: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"]
    bos: list[int] = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    adds_bos = bool(bos) and tokenizer("")["input_ids"][:1] == bos
    encoded: list[Prompt] = []
    for prompt, ids in zip(prompts, ids_of_each, strict=True):
        if not ids:
            raise DataError(f"prompt {prompt.id} has no tokens; its text is {prompt.text!r}")
        missing = adds_bos and prompt.messages is None and ids[:1] != bos
        whole = [*bos, *ids] if missing else ids
        if bos and whole[:2] == bos * 2:
            raise DataError(
                f"prompt {prompt.id} starts with two BOS tokens: {prompt.text[:60]!r}; take the one out of the text or of the template"
            )
        encoded.append(replace(prompt, ids=tuple(whole)))
    return encoded
