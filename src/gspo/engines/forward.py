"""The general path: any Hugging Face causal language model, one token a row, its own forward.

Each prompt is read once and its keys and values are copied to the rows of its responses. All rows
end at the same column of the cache, so that rows with less behind them are padded on the left, and
masks and positions are those that the model would be given for such a batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from transformers import PreTrainedModel

from gspo.engines.kv_cache import RowCache
from gspo.engines.request import Response

PAD_ID = 0  # any id the vocabulary has: padding is masked, its value never enters
#: Of the columns that the longest response needs, kept beyond them: what rows that have left used
#: is given back by moving all others to the front, at most once in so many tokens.
SLACK_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ReadPrompts:
    """Prompts in a cache, padded on the left, with the logits of what comes after each."""

    cache: RowCache
    logits: Float[Tensor, "n V"]
    number: dict[int, int]


class ForwardDecoder:
    """Decodes one request by the model's own forward."""

    def __init__(
        self, model: PreTrainedModel, responses: Sequence[Response], max_batch: int
    ) -> None:
        self._model = model
        # The last token is never fed back.
        needed = max(len(response.prompt.ids) + response.limit - 1 for response in responses)
        columns = needed + int(SLACK_SHARE * needed) + 1
        num_rows = min(max_batch, len(responses))
        if num_rows == len(responses):
            columns = needed  # nobody joins later
        self._cache = RowCache(model.config, num_rows, columns)
        self._lengths: list[int] = []  # columns that belong to each row
        self._held: ReadPrompts | None = None
        arguments = inspect.signature(model.forward).parameters
        self._takes_position = "position_ids" in arguments
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in arguments else {}

    def admit(self, joining: Sequence[Response], waiting: Response | None) -> Float[Tensor, "A V"]:
        """Reads every new prompt once, and copies it to its rows."""
        held = self._held
        groups = {group: list(rows) for group, rows in groupby(joining, lambda r: r.prompt_index)}
        unread = [rows[0] for group, rows in groups.items() if not held or group not in held.number]
        fresh = self._read(unread) if unread else None
        logits = []
        for group, rows in groups.items():
            source = next(read for read in (held, fresh) if read and group in read.number)
            number, length = source.number[group], len(rows[0].prompt.ids)
            first = len(self._lengths)
            self._cache.put(source.cache, number, slice(first, first + len(rows)), length)
            self._lengths += [length] * len(rows)
            logits.append(source.logits[number].expand(len(rows), -1))
        group = waiting.prompt_index if waiting else None
        self._held = next((r for r in (held, fresh) if r and group in r.number), None)
        return torch.cat(logits)

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was."""
        before = self._cache.length
        self._lengths = [self._lengths[row] for row in rows]
        self._cache.move(rows, before - max(self._lengths, default=before))

    def step(self, ids: Int64[Tensor, "B"]) -> Float[Tensor, "B V"]:
        """One token a row."""
        position = torch.tensor(self._lengths, device=ids.device)
        self._lengths = [length + 1 for length in self._lengths]
        mask = self._mask(self._lengths, ids.device)
        return self._forward(self._cache, ids[:, None], position[:, None], mask)

    def _read(self, unread: Sequence[Response]) -> ReadPrompts:
        prompts = [list(response.prompt.ids) for response in unread]
        lengths = [len(ids) for ids in prompts]
        longest = max(lengths)
        device = self._model.device
        ids = torch.tensor(
            [[PAD_ID] * (longest - len(ids)) + ids for ids in prompts], device=device
        )
        padding = longest - torch.tensor(lengths, device=device)
        position = (torch.arange(longest, device=device) - padding[:, None]).clamp(min=0)
        cache = RowCache(self._model.config, len(prompts), longest)
        logits = self._forward(cache, ids, position, self._mask(lengths, device))
        number = {response.prompt_index: row for row, response in enumerate(unread)}
        return ReadPrompts(cache, logits, number)

    def _mask(self, lengths: Sequence[int], device: torch.device) -> Bool[Tensor, "B M"] | None:
        """The columns that are no padding; None when no row has any."""
        longest = max(lengths)
        if min(lengths) == longest:
            return None
        columns = torch.arange(longest, device=device)
        return columns >= longest - torch.tensor(lengths, device=device)[:, None]

    def _forward(
        self,
        cache: RowCache,
        ids: Int64[Tensor, "B L"],
        position: Int64[Tensor, "B L"],
        mask: Bool[Tensor, "B M"] | None,
    ) -> Float[Tensor, "B V"]:
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **({"position_ids": position} if self._takes_position else {}),
            **self._last_only,
        )
        return output.logits[:, -1]
