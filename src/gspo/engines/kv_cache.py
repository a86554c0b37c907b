"""Keys and values of the rows being decoded, in memory taken once.

transformers' own dynamic cache copies every key and value at every token, to append one column.
Here every layer owns [rows, heads, columns, size], a token writes one column in place, and what
attention reads is a view. All rows write the same column, so shorter prompts are padded on the
left. Rows that are done make room by moving the last live rows into their places.

Sliding-window layers keep all columns too: the model's own mask narrows what they see.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Int64, Shaped
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
    """One attention layer's keys and values, [num_rows, heads, num_columns, size] each."""

    def __init__(self, num_rows: int, num_columns: int) -> None:
        super().__init__()
        self.num_rows = num_rows
        self.num_columns = num_columns
        self.length = 0

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
        num_rows, end = key_states.shape[0], self.length + key_states.shape[2]
        keys[:num_rows, :, self.length : end] = key_states
        values[:num_rows, :, self.length : end] = value_states
        self.length = end
        return keys[:num_rows, :, :end], values[:num_rows, :, :end]

    def copy_rows(self, source: Int64[Tensor, "R"], into: Int64[Tensor, "R"]) -> None:
        """Row source[i] is written to row into[i]; all are read before any is written."""
        for states in (self.keys, self.values):
            if states is not None:
                states[into, :, : self.length] = states[source, :, : self.length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(columns attention will see, first column)."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Columns written, padding included."""
        return self.length

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
        _, num_heads, _, size = states.shape
        return states.new_empty(self.num_rows, num_heads, self.num_columns, size)


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
        """Columns written, padding included."""
        return self.get_seq_length()

    def spread(self, source: Int64[Tensor, "B"]) -> None:
        """Row i becomes a copy of what row source[i] was: one prompt, many responses."""
        self._copy_rows(source, torch.arange(source.numel(), device=source.device))

    def drop(self, done: Bool[Tensor, "B"]) -> Int64[Tensor, "R"]:
        """Leave out the rows that are done. Returns which old row each of the R rows left is.

        Only the places of done rows among the first R are written, by the live rows behind them.
        """
        num_live = done.numel() - int(done.sum())
        order = torch.arange(num_live, device=done.device)
        holes = done[:num_live].nonzero().squeeze(1)
        movers = num_live + (~done[num_live:]).nonzero().squeeze(1)
        self._copy_rows(movers, holes)
        order[holes] = movers
        return order

    def _copy_rows(self, source: Int64[Tensor, "R"], into: Int64[Tensor, "R"]) -> None:
        for layer in self.layers:
            if isinstance(layer, RowLayer):
                layer.copy_rows(source, into)


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
