"""Keys and values of the rows that the lean path decodes, in memory taken once.

Every row owns [kv heads, columns, head_dim] in every layer. Row i writes its token at its own
column, so that what attention reads is no longer than the longest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

CLEAN_AHEAD = 16  # columns: a page of memory at head_dim 64, which the next tokens touch anyway


@dataclass(frozen=True, slots=True)
class HeadShape:
    """Attention's sizes: query heads per key-value head are `num_queries`."""

    num_layers: int
    num_kv_heads: int
    num_queries: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class StepColumns:
    """What a step reads and writes, layer by layer, as views.

    keys [B x kv heads, K, L] and values [B x kv heads, L, K]: every row's columns, this step's
    included. late [B, L]: columns past a row's own; None when all rows are of one length.
    """

    keys: Sequence[Float[Tensor, "BH K L"]]
    values: Sequence[Float[Tensor, "BH L K"]]
    late: Bool[Tensor, "B L"] | None
    places: Sequence[Float[Tensor, "B H two K"]] | None
    states: Float[Tensor, "layers two R H C K"]
    rows: Int64[Tensor, "B"]
    ends: Int64[Tensor, "B"]

    def write(self, layer: int, token: Float[Tensor, "B H two K"]) -> None:
        """The keys and values of this step's token."""
        if self.places is not None:
            self.places[layer].copy_(token)
        else:
            self.states[layer][:, self.rows, :, self.ends] = token.transpose(1, 2)


class LeanCache:
    """Columns of up to num_rows rows; the first `len(lengths)` of them are in use."""

    def __init__(
        self, heads: HeadShape, num_rows: int, num_columns: int, device: torch.device
    ) -> None:
        self._states = torch.empty(
            (heads.num_layers, 2, num_rows, heads.num_kv_heads, num_columns, heads.head_dim),
            device=device,
        )
        self.lengths: list[int] = []  # columns filled, row by row
        # Columns that hold numbers in every row in use, at least the longest row's. A shorter row's
        # columns past its end are read too, and masked: memory as it was found may hold NaN, and
        # 0 x NaN is NaN.
        self._num_clean = 0

    def join(self, num_rows: int, states: Float[Tensor, "layers two H P K"] | None) -> None:
        """New rows, which begin with these columns or with none."""
        first = len(self.lengths)
        length = 0 if states is None else states.shape[3]
        rows = self._states[:, :, first : first + num_rows]
        if states is not None:
            rows[:, :, :, :, :length] = states[:, :, None]
        if first:
            rows[:, :, :, :, length : self._num_clean] = 0
            self._states[:, :, :first, :, self._num_clean : length] = 0
        self._num_clean = max(length, self._num_clean if first else 0)
        self.lengths += [length] * num_rows

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was."""
        moved = [(source, into) for into, source in enumerate(rows) if source != into]
        if moved:
            length = max(self.lengths[source] for source, _ in moved)
            source, into = torch.tensor(moved, device=self._states.device).unbind(1)
            columns = self._states[:, :, :, :, :length]
            columns[:, :, into] = columns[:, :, source]
        self.lengths = [self.lengths[row] for row in rows]

    def step(self) -> StepColumns:
        """One more column for every row, counted as filled."""
        ends, num_rows = self.lengths, len(self.lengths)
        num_columns = max(ends) + 1
        even = min(ends) == max(ends)
        self.lengths = [length + 1 for length in ends]
        used = self._states[:, :, :num_rows]
        if not even and num_columns > self._num_clean:
            used[:, :, :, :, self._num_clean : self._num_clean + CLEAN_AHEAD] = 0
            self._num_clean += CLEAN_AHEAD
        self._num_clean = max(self._num_clean, num_columns)
        at = torch.tensor(ends, device=used.device)
        columns = torch.arange(num_columns, device=used.device)
        keys, values = used[:, :, :, :, :num_columns].flatten(2, 3).unbind(1)
        places = used[:, :, :, :, ends[0]].permute(0, 2, 3, 1, 4).unbind()
        return StepColumns(
            keys=keys.transpose(-1, -2).unbind(),
            values=values.unbind(),
            late=None if even else columns > at[:, None],
            places=places if even else None,
            states=self._states,
            rows=torch.arange(num_rows, device=used.device),
            ends=at,
        )
