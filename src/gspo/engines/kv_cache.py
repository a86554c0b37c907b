"""Keys and values of the rows being decoded, in memory taken once, as a cache of transformers'.

transformers' own dynamic cache copies every key and value at every token, to append one column.
Here every layer owns [rows, heads, columns, size], a token writes one column in place, and what
attention reads is a view. All rows write the same column and end there; each begins at a column
of its own. What lies before the first of them is not read, and its room is used again.

Sliding-window layers keep all columns too: the model's own mask narrows what they see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DummyLayer,
    get_layer_types_and_kwargs,
)

from gspo.errors import DataError

SUPPORTED_LAYERS = ("full_attention", "sliding_attention")
NO_CACHE_LAYERS = ("dummy",)  # transformers' word for a layer that reads another one's keys


class RowLayer(CacheLayerMixin):
    """One attention layer's keys and values, [num_rows, heads, num_columns, size] each.

    Columns from `first` to `end` are in use.
    """

    def __init__(self, num_rows: int, num_columns: int) -> None:
        super().__init__()
        self.num_rows = num_rows
        self.num_columns = num_columns
        self.first = 0
        self.end = 0

    def lazy_initialization(
        self,
        key_states: Shaped[Tensor, "B H L K"],
        value_states: Shaped[Tensor, "B H L D"],
    ) -> None:
        """Takes the memory at the first tokens, which tell number of heads, sizes and dtype."""
        self._memory(key_states, value_states)

    def update(
        self,
        key_states: Shaped[Tensor, "B H L K"],
        value_states: Shaped[Tensor, "B H L D"],
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Shaped[Tensor, "B H M K"], Shaped[Tensor, "B H M D"]]:
        """Writes L columns of the first B rows; returns those rows' M columns so far, as views."""
        keys, values = self._memory(key_states, value_states)
        if self.end + key_states.shape[2] > self.num_columns:
            self._shift(keys)
            self._shift(values)
            self.end, self.first = self.end - self.first, 0
        num_rows, end = key_states.shape[0], self.end + key_states.shape[2]
        keys[:num_rows, :, self.end : end] = key_states
        values[:num_rows, :, self.end : end] = value_states
        self.end = end
        return keys[:num_rows, :, self.first : end], values[:num_rows, :, self.first : end]

    def put(self, prompt: RowLayer, number: int, rows: slice, length: int) -> None:
        """The last `length` columns of the other's row `number`, into the last ones of these rows.

        At least so many columns must be in use; for the first rows, they come to be.
        """
        if prompt.keys is None or prompt.values is None:
            return
        self.end = max(self.end, length)
        own = self._memory(prompt.keys, prompt.values)
        for states, others in zip(own, (prompt.keys, prompt.values), strict=True):
            begin = prompt.end - length
            states[rows, :, self.end - length : self.end] = others[number, :, begin : prompt.end]

    def copy_rows(self, source: Int64[Tensor, "N"], into: Int64[Tensor, "N"]) -> None:
        """Row source[i] is written to row into[i]; all are read before any is written."""
        for states in (self.keys, self.values):
            if states is not None:
                used = states[:, :, self.first : self.end]
                used[into] = used[source]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(columns attention will see, first column)."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Columns in use, padding included."""
        return self.end - self.first

    def get_max_length(self) -> int:
        """Columns there are."""
        return self.num_columns

    def _memory(
        self,
        key_states: Shaped[Tensor, "B H L K"],
        value_states: Shaped[Tensor, "B H L D"],
    ) -> tuple[Shaped[Tensor, "R H C K"], Shaped[Tensor, "R H C D"]]:
        if self.keys is None or self.values is None:
            self.keys = self._empty_like(key_states)
            self.values = self._empty_like(value_states)
            self.is_initialized = True
        return self.keys, self.values

    def _empty_like(self, states: Shaped[Tensor, "B H L D"]) -> Shaped[Tensor, "R H C D"]:
        # Zeros, because what lies left of a row's first column is read and masked: 0 x NaN is NaN.
        _, num_heads, _, size = states.shape
        return states.new_zeros(self.num_rows, num_heads, self.num_columns, size)

    def _shift(self, states: Shaped[Tensor, "R H C K"]) -> None:
        """The columns in use come to lie at the front; a copy between, as the two may overlap."""
        states[:, :, : self.end - self.first] = states[:, :, self.first : self.end].clone()


class RowCache(Cache):
    """The layers of one model. Raises DataError for a model with layers of another kind.

    num_rows, num_columns: the most that will be used; the columns count padding, prompt and
    every token that is fed back.
    """

    def __init__(self, config: PreTrainedConfig, num_rows: int, num_columns: int) -> None:
        layer_types = _layer_types(config)
        super().__init__(
            layers=[
                DummyLayer() if kind in NO_CACHE_LAYERS else RowLayer(num_rows, num_columns)
                for kind in layer_types
            ]
        )

    @property
    def length(self) -> int:
        """Columns in use, padding included."""
        return self.get_seq_length()

    def put(self, prompts: RowCache, number: int, rows: slice, length: int) -> None:
        """These rows become copies of the other's row `number`: one prompt, many responses.

        length: of the prompt, which ends where the other's columns end, and will end where these
        do. At least so many must be in use, unless none are.
        """
        for layer, other in zip(self._row_layers(), prompts._row_layers(), strict=True):
            layer.put(other, number, rows, length)

    def move(self, rows: Sequence[int], first: int) -> None:
        """Row i becomes what row rows[i] was; the first columns in use are not read any more."""
        moved = [(source, into) for into, source in enumerate(rows) if source != into]
        for layer in self._row_layers():
            if moved and layer.keys is not None:
                layer.copy_rows(*torch.tensor(moved, device=layer.keys.device).unbind(1))
            layer.first += first
            if not rows:
                layer.first = layer.end = 0

    def states(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of every layer that has its own."""
        return [
            (layer.keys, layer.values)
            for layer in self._row_layers()
            if layer.keys is not None and layer.values is not None
        ]

    def _row_layers(self) -> list[RowLayer]:
        return [layer for layer in self.layers if isinstance(layer, RowLayer)]


def check_supported(config: PreTrainedConfig) -> None:
    """Raises DataError when a model's layers keep another state than keys and values."""
    _layer_types(config)


def _layer_types(config: PreTrainedConfig) -> list[str]:
    layer_types, _ = get_layer_types_and_kwargs(config.get_text_config(decoder=True))
    unknown = sorted(set(layer_types) - {*SUPPORTED_LAYERS, *NO_CACHE_LAYERS})
    if unknown:
        raise DataError(
            f"model type {config.model_type!r} has layers of kind {', '.join(unknown)}; the local "
            f"engine decodes {', '.join(SUPPORTED_LAYERS)}: choose another engine or model"
        )
    return layer_types
