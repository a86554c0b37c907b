"""One request of an engine, taken apart into responses, and each response as it grows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedConfig

from gspo.engines.base import Sampling
from gspo.engines.counted import row_key
from gspo.errors import DataError
from gspo.types import Prompt, Rollout

NO_LIMIT = sys.maxsize


@dataclass(slots=True, kw_only=True)
class Response:
    """One response to be sampled, and what was drawn for it so far.

    prompt_index: its group, as a place in the request. limit: its most tokens. key: of its
    uniforms. version: of the weights that it is sampled with.
    """

    prompt_index: int
    prompt: Prompt
    limit: int
    key: int
    version: int = 0
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    kept_mass: list[float] = field(default_factory=list)

    def is_done(self, eos_ids: frozenset[int]) -> bool:
        """Its last token ends it, or there is no room for another."""
        return self.ids[-1] in eos_ids or len(self.ids) == self.limit

    def restart(self) -> None:
        """Forget what was drawn: the same uniforms will be used again."""
        self.ids, self.logp, self.kept_mass = [], [], []

    def rollout(self, eos_ids: frozenset[int], decode: Callable[[Sequence[int]], str]) -> Rollout:
        """What it became; the text leaves the end token out."""
        stopped = self.ids[-1] in eos_ids
        return Rollout(
            prompt_ids=tuple(self.prompt.ids),
            response_ids=tuple(self.ids),
            trained=(True,) * len(self.ids),
            engine_logp=tuple(self.logp),
            text=decode(self.ids[: len(self.ids) - stopped]),
            finish="stop" if stopped else "length",
            version=self.version,
            kept_mass=tuple(self.kept_mass) or None,
        )


def responses(
    prompts: Sequence[Prompt], sampling: Sampling, config: PreTrainedConfig
) -> list[Response]:
    """Every response of the request: longest prompts first, samples of a prompt side by side.

    The k-th group of a repeated prompt id goes on counting samples where the one before ended.
    """
    request: dict[str, Any] = {
        "seed": sampling.seed,
        "stream": sampling.stream,
        "step": sampling.step,
    }
    seen: Counter[str] = Counter()
    context = context_tokens(config)
    found = []
    for index, prompt in sorted(enumerate(prompts), key=lambda item: -len(item[1].ids)):
        first = seen[prompt.id]
        seen[prompt.id] += sampling.num_samples
        limit = min(sampling.max_tokens, context - len(prompt.ids))
        for sample in range(first, first + sampling.num_samples):
            key = row_key(**request, prompt_id=prompt.id, sample=sample)
            found.append(Response(prompt_index=index, prompt=prompt, limit=limit, key=key))
    return found


def context_tokens(config: PreTrainedConfig) -> int:
    """Most tokens of prompt and response together; NO_LIMIT where the model has none."""
    return getattr(config.get_text_config(decoder=True), "max_position_embeddings", NO_LIMIT)


def check_prompt(prompt: Prompt, config: PreTrainedConfig) -> None:
    """Raises DataError for a prompt that the model cannot continue."""
    length, context = len(prompt.ids), context_tokens(config)
    if not 0 < length < context:
        raise DataError(
            f"prompt {prompt.id!r} has {length} tokens and the model's context {context}; wanted at "
            "least 1, and room for 1 more: filter prompts by length"
        )
    vocabulary = config.get_text_config(decoder=True).vocab_size
    strange = [token for token in prompt.ids if not 0 <= token < vocabulary]
    if strange:
        raise DataError(
            f"prompt {prompt.id!r} holds token {strange[0]}; the model's vocabulary has "
            f"{vocabulary}: encode it with the model's own tokenizer"
        )
