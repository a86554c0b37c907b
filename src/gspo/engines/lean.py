"""The lean path: one token a row through a Llama or Qwen model, in as few operations as it takes.

A library forward spends most of a small model's step outside matrix products: wrappers, masks,
copies of the cache, a repeat of the key-value heads. Here a layer is about 25 operations on [B, D]
tensors. Prompts are still read by the model's own forward, padded on the right, where causal
attention needs no mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import embedding, silu
from transformers import PreTrainedModel

from gspo.engines.kv_cache import RowCache
from gspo.engines.lean_attention import Attention
from gspo.engines.lean_cache import HeadShape
from gspo.engines.lean_weights import LeanLayer, interleaved, lean_weights, rotations
from gspo.engines.linear import LinearMaps
from gspo.engines.request import Response

PAD_ID = 0  # any id the vocabulary has: padding comes after the prompt, nothing of it is read
PREFILL_TOKENS = 4096  # a forward: enough for full speed, few enough to bound its activations


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """A prompt's keys (heads interleaved) and values, and the logits of what comes after it."""

    states: Float[Tensor, "layers two H P K"]
    logits: Float[Tensor, "V"]


class LeanDecoder:
    """Decodes one request, longest prompts first, with the weights as they are when it is built."""

    def __init__(
        self,
        model: PreTrainedModel,
        linear_maps: LinearMaps,
        responses: Sequence[Response],
        num_samples: int,
        max_batch: int,
    ) -> None:
        self._model = model
        self._weights = weights = lean_weights(model, linear_maps)
        longest = len(responses[0].prompt.ids)
        # The last token is never fed back.
        num_columns = max(response.limit for response in responses) - 1
        self._rotations = rotations(model, longest + num_columns)
        heads = HeadShape(
            num_layers=len(weights.layers),
            num_kv_heads=weights.num_kv_heads,
            num_queries=weights.num_queries,
            head_dim=weights.head_dim,
        )
        self._attention = Attention(
            heads,
            num_rows=min(max_batch, len(responses)),
            num_samples=num_samples,
            num_prompt_columns=longest,
            num_own_columns=num_columns,
            device=model.device,
        )
        self._held: dict[int, ReadPrompt] = {}
        self._position = torch.empty(0, dtype=torch.int64, device=model.device)

    def admit(self, joining: Sequence[Response], waiting: Response | None) -> Float[Tensor, "A V"]:
        """Reads every new prompt once, and gives its columns to its rows."""
        groups = {group: list(rows) for group, rows in groupby(joining, lambda r: r.prompt_index)}
        unread = [rows[0] for group, rows in groups.items() if group not in self._held]
        read = {**self._held, **self._read(unread)}
        logits, position = [], []
        for group, rows in groups.items():
            self._attention.join(group, len(rows), read[group].states)
            logits.append(read[group].logits.expand(len(rows), -1))
            position += [len(rows[0].prompt.ids)] * len(rows)
        kept = waiting.prompt_index if waiting else None
        self._held = {group: read[group] for group in groups if group == kept}
        self._position = torch.cat((self._position, self._position.new_tensor(position)))
        return torch.cat(logits)

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was."""
        self._attention.keep(rows)
        self._position = self._position[torch.tensor(rows, dtype=torch.int64)]

    def step(self, ids: Int64[Tensor, "B"]) -> Float[Tensor, "B V"]:
        """One token a row through every layer."""
        weights = self._weights
        turn = self._rotations[self._position][:, None, None]
        self._position += 1
        hidden = embedding(ids, weights.embedding)
        self._attention.begin(turn)
        for number, layer in enumerate(weights.layers):
            hidden = self._layer(number, layer, hidden)
        return weights.head(unit(hidden, weights.root).mul_(weights.head_gain))

    def _layer(
        self, number: int, layer: LeanLayer, hidden: Float[Tensor, "B D"]
    ) -> Float[Tensor, "B D"]:
        weights = self._weights
        heads = layer.qkv(unit(hidden, weights.root))
        heads = heads.view(-1, weights.num_kv_heads, weights.num_queries + 2, weights.head_dim)
        if layer.head_scale is not None:
            turned = heads[:, :, :-1]
            norm = torch.linalg.vector_norm(turned, dim=-1, keepdim=True)
            turned.div_(norm.hypot_(weights.head_root)).mul_(layer.head_scale)
        hidden += layer.out(self._attention.attend(number, heads))
        gate_up = layer.gate_up(unit(hidden, weights.root))
        size = weights.intermediate_size
        hidden += layer.down(silu(gate_up[:, :size]).mul_(gate_up[:, size:]))
        return hidden

    def _read(self, unread: Sequence[Response]) -> dict[int, ReadPrompt]:
        """Prompts through the model's own forward, a few thousand tokens at a time."""
        found: dict[int, ReadPrompt] = {}
        while unread:
            longest = max(len(response.prompt.ids) for response in unread)
            number = max(1, PREFILL_TOKENS // longest)
            found |= self._forward(unread[:number])
            unread = unread[number:]
        return found

    def _forward(self, unread: Sequence[Response]) -> dict[int, ReadPrompt]:
        whole: Any = self._model
        prompts = [list(response.prompt.ids) for response in unread]
        lengths = [len(ids) for ids in prompts]
        longest = max(lengths)
        cache = RowCache(whole.config, len(prompts), longest)
        ids = torch.tensor([ids + [PAD_ID] * (longest - len(ids)) for ids in prompts])
        output = whole.model(input_ids=ids.to(whole.device), cache=cache, use_cache=True)
        last = torch.tensor(lengths, device=whole.device) - 1
        rows = torch.arange(len(prompts), device=whole.device)
        logits = whole.lm_head(output.last_hidden_state[rows, last])
        layers = [(interleaved(keys), values) for keys, values in cache.states()]
        found = {}
        for row, (response, length) in enumerate(zip(unread, lengths, strict=True)):
            states = torch.stack(
                [torch.stack((keys[row], values[row]))[:, :, :length] for keys, values in layers]
            )
            found[response.prompt_index] = ReadPrompt(states, logits[row])
        return found


def unit(vectors: Float[Tensor, "B D"], root: Float[Tensor, ""]) -> Float[Tensor, "B D"]:
    """Vectors divided by their Euclidean norm, joined with `root`: RMSNorm up to a constant."""
    norm = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / norm.hypot_(root)
