"""Attention of one new token a row, over its prompt and what it has said so far.

The query heads that share a key-value head are rows of one small matrix, so nothing is repeated.
Where a prompt is kept once for its group, the queries of all the group's rows meet it in one matrix
product, and one softmax runs over prompt and own columns together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Complex64, Float
from torch import Tensor

from gspo.engines.lean_cache import HeadShape, LeanCache
from gspo.engines.lean_prompts import SharedPrompts

#: Floats of one layer's prompt keys that sharing must keep a step from reading. Below, the seven
#: operations that bring a group's rows together and apart again take longer than the reading
#: (2 cores: 57 thousand floats, 5 % slower; 115, 1-3 % faster; 229, 2-15 % faster).
SHARE_FROM = 100_000


class Attention:
    """All layers' attention for up to num_rows rows."""

    def __init__(
        self,
        heads: HeadShape,
        *,
        num_rows: int,
        num_samples: int,
        num_prompt_columns: int,
        num_own_columns: int,
        device: torch.device,
    ) -> None:
        spared = num_rows - -(-num_rows // num_samples)
        floats = spared * num_prompt_columns * heads.num_kv_heads * heads.head_dim
        self._prompts: SharedPrompts | None = None
        num_columns = max(num_own_columns, 1)
        if floats >= SHARE_FROM:
            self._prompts = SharedPrompts(heads, num_prompt_columns, device)
        else:
            num_columns += num_prompt_columns
        self._cache = LeanCache(heads, num_rows, num_columns, device)

    def join(self, group: int, num_rows: int, states: Float[Tensor, "layers two H P K"]) -> None:
        """New rows of a group, which begin after this prompt."""
        if self._prompts is None:
            self._cache.join(num_rows, states)
        else:
            self._cache.join(num_rows, None)
            self._prompts.join(group, num_rows, states)

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was."""
        self._cache.keep(rows)
        if self._prompts is not None:
            self._prompts.keep(rows)

    def begin(self, turn: Complex64[Tensor, "B one one half"]) -> None:
        """A step: every row gets one more column. turn: the rotation of its position."""
        self._turn = turn
        self._columns = columns = self._cache.step()
        late, num_rows = columns.late, turn.shape[0]
        if self._prompts is not None:
            self._prompts.arrange()
            if late is not None or not self._prompts.is_even:
                own = columns.keys[0].shape[-1]
                late = turn.new_zeros(num_rows, own, dtype=torch.bool) if late is None else late
                late = torch.cat((self._prompts.padding, late), 1)
        self._mask = None
        if late is not None:
            zeros = torch.zeros(late.shape, device=late.device)
            self._mask = zeros.masked_fill_(late, float("-inf"))[:, None]

    def attend(self, layer: int, heads: Float[Tensor, "B H block K"]) -> Float[Tensor, "B D"]:
        """Values that each row's query heads take up.

        heads: for each key-value head the queries, key and value of the new token, unturned; it
        is used up.
        """
        num_rows, num_kv_heads, block, size = heads.shape
        turned = heads[:, :, :-1].unflatten(-1, (-1, 2))
        torch.view_as_complex(turned).mul_(self._turn)
        self._columns.write(layer, heads[:, :, -2:])
        blocks = heads.view(num_rows * num_kv_heads, block, size)
        own = torch.bmm(blocks[:, :-2], self._columns.keys[layer])
        if self._prompts is None:
            weights = self._softmax(own, num_rows)
            return torch.bmm(weights, self._columns.values[layer]).view(num_rows, -1)
        # Into memory of its own first: a product written into a part of a tensor is five times
        # as slow as the product and a copy.
        before = self._prompts.scores(layer, blocks)
        num_before = before.shape[-1]
        scores = own.new_empty(*own.shape[:2], num_before + own.shape[2])
        self._prompts.bring_apart(before, into=scores.view(-1, scores.shape[2])[:, :num_before])
        scores[:, :, num_before:] = own
        weights = self._softmax(scores, num_rows)
        out = torch.bmm(weights[:, :, num_before:], self._columns.values[layer])
        self._prompts.add_values(layer, weights, out)
        return out.view(num_rows, -1)

    def _softmax(self, scores: Float[Tensor, "BH r W"], num_rows: int) -> Float[Tensor, "BH r W"]:
        if self._mask is not None:
            scores.view(num_rows, -1, scores.shape[-1]).add_(self._mask)
        return scores.softmax(-1)
