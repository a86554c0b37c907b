"""Prompts that are kept once for their group: keys, values, and who reads them.

A prompt has a place among the others as long as one of its group's rows is decoded. Queries lie
row by row; to meet the prompts in one product they are brought together group by group, and what
comes out is brought back. Groups with fewer rows than the largest are filled up with row 0, whose
results nobody fetches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from gspo.engines.lean_cache import HeadShape


class SharedPrompts:
    """The prompts of the live rows; `groups` says whose each row is."""

    def __init__(self, heads: HeadShape, num_columns: int, device: torch.device) -> None:
        self._heads = heads
        self._device = device
        shape = (heads.num_layers, 2, 1, heads.num_kv_heads, num_columns, heads.head_dim)
        self._states = torch.empty(shape, device=device)
        self._places: list[int] = []  # which group's prompt lies in each place
        self._lengths: dict[int, int] = {}
        self._arranged = False
        self.groups: list[int] = []

    def join(self, group: int, num_rows: int, states: Float[Tensor, "layers two H P K"]) -> None:
        """New rows of a group, and its prompt's columns unless they are here already."""
        self.groups += [group] * num_rows
        if group not in self._lengths:
            place, length = len(self._places), states.shape[3]
            if place == self._states.shape[2]:
                self._states = torch.cat((self._states, torch.empty_like(self._states)), 2)
            self._states[:, :, place, :, :length] = states
            self._states[:, :, place, :, length:] = 0  # read and masked: must be finite
            self._places.append(group)
            self._lengths[group] = length
        self._arranged = False

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was; prompts that nobody reads any more make room."""
        self.groups = [self.groups[row] for row in rows]
        read = set(self.groups)
        for place in reversed(range(len(self._places))):
            if self._places[place] not in read:
                del self._lengths[self._places[place]]
                last = self._places.pop()
                if place < len(self._places):
                    self._places[place] = last
                    self._states[:, :, place] = self._states[:, :, len(self._places)]
        self._arranged = False

    def arrange(self) -> None:
        """Who meets which prompt; it changes only when rows come and go."""
        if self._arranged:
            return
        self._arranged = True
        heads, counts = self._heads, Counter(self.groups)
        most = max(counts.values())
        place_of = {group: place for place, group in enumerate(self._places)}
        members: list[list[int]] = [[] for _ in self._places]
        slot = []
        for row, group in enumerate(self.groups):
            place = place_of[group]
            slot.append((place, len(members[place])))
            members[place].append(row)

        def tensor(values: object) -> Int64[Tensor, "..."]:
            return torch.tensor(values, dtype=torch.int64, device=self._device)

        # A row has, for every kv head, its queries; where they come from, its key and value too.
        num_queries, num_heads = heads.num_queries, heads.num_kv_heads
        head = torch.arange(num_heads, device=self._device)
        query = torch.arange(num_queries, device=self._device)
        filled = tensor([rows + [0] * (most - len(rows)) for rows in members])
        by_row = filled[:, None, :, None] * num_heads + head[:, None, None]
        self._queries_together = (by_row * (num_queries + 2) + query).flatten()
        self._together = (by_row * num_queries + query).flatten()
        place, number = tensor(slot).unbind(1)
        by_place = (place[:, None] * num_heads + head) * most + number[:, None]
        self._apart = (by_place[..., None] * num_queries + query).flatten()
        lengths = [self._lengths[group] for group in self.groups]
        longest = max(lengths)
        self.is_even = min(lengths) == longest
        columns = torch.arange(longest, device=self._device)
        self.padding: Bool[Tensor, "B P"] = columns >= tensor(lengths)[:, None]
        seen = self._states[:, :, : len(self._places), :, :longest].flatten(2, 3)
        keys, values = seen.unbind(1)
        self._keys = keys.transpose(-1, -2).unbind()
        self._values = values.unbind()
        self._block = (len(self._places) * num_heads, most * num_queries)

    def scores(
        self, layer: int, blocks: Float[Tensor, "BH block K"]
    ) -> Float[Tensor, "gH queries P"]:
        """Every query of a group against its prompt, group by group. blocks: a row's queries of
        one kv head, and its key and value."""
        size = blocks.shape[-1]
        together = blocks.view(-1, size).index_select(0, self._queries_together)
        return torch.bmm(together.view(*self._block, size), self._keys[layer])

    def bring_apart(
        self, scores: Float[Tensor, "gH queries P"], *, into: Float[Tensor, "BHr P"]
    ) -> None:
        """What was computed group by group, row by row."""
        torch.index_select(scores.view(-1, scores.shape[-1]), 0, self._apart, out=into)

    def add_values(
        self,
        layer: int,
        weights: Float[Tensor, "BH r W"],
        out: Float[Tensor, "BH r K"],
    ) -> None:
        """Adds the values of the prompts, by the first of each query's weights."""
        values, size = self._values[layer], out.shape[-1]
        before = weights.view(-1, weights.shape[-1])[:, : values.shape[1]]
        together = before.index_select(0, self._together).view(*self._block, values.shape[1])
        taken = torch.bmm(together, values).view(-1, size)
        out.view(-1, size).add_(taken.index_select(0, self._apart))
