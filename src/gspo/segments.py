"""Which response each trained token belongs to: the whole of what an objective knows about shape.

Objectives see only the N response tokens they train on, one after another. No padding reaches
them, so no masked mean can be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from gspo.errors import GspoError


@dataclass(frozen=True, slots=True)
class Segments:
    """N tokens in S responses, responses in order, tokens of one response side by side.

    ids: response of each token, non-decreasing.  lengths: trained tokens of each response; 0 is
    allowed.  index: where each token lies in the flattened padded tensor it was taken from, when
    it was taken from one.

    >>> segments = Segments.from_lengths([2, 0, 1])
    >>> segments.mean(torch.tensor([1.0, 3.0, 5.0]))
    tensor([2., 0., 5.])
    """

    ids: Int[Tensor, "N"]
    lengths: Int[Tensor, "S"]
    index: Int[Tensor, "N"] | None = None

    @classmethod
    def from_lengths(cls, lengths: Sequence[int] | Int[Tensor, "S"]) -> Segments:
        """Segments of consecutive responses with these token counts."""
        lengths_S = torch.as_tensor(lengths, dtype=torch.int64)
        if lengths_S.numel() and bool((lengths_S < 0).any()):
            raise GspoError(f"response lengths are {lengths_S.tolist()}; none may be negative")
        ids = torch.repeat_interleave(
            torch.arange(lengths_S.numel(), device=lengths_S.device), lengths_S
        )
        return cls(ids, lengths_S)

    @classmethod
    def from_mask(cls, mask: Bool[Tensor, "B L"]) -> Segments:
        """Segments of the true positions of a padded mask, one response a row."""
        if mask.dtype != torch.bool or mask.ndim != 2:
            raise GspoError(
                f"mask is {mask.dtype} of shape {tuple(mask.shape)}; wanted bool of shape (rows, tokens): use mask.bool()"
            )
        index = mask.flatten().nonzero().squeeze(1)
        return cls(index // max(mask.shape[1], 1), mask.sum(1), index)

    @property
    def num_responses(self) -> int:
        """S, empty responses included."""
        return self.lengths.numel()

    @property
    def num_tokens(self) -> int:
        """N."""
        return self.ids.numel()

    def sum(self, values: Float[Tensor, "N"]) -> Float[Tensor, "S"]:
        """Sum over the tokens of each response; 0 for an empty one."""
        return values.new_zeros(self.num_responses).index_add(0, self.ids, values)

    def mean(self, values: Float[Tensor, "N"]) -> Float[Tensor, "S"]:
        """Mean over the tokens of each response; 0 for an empty one."""
        return self.sum(values) / self.lengths.clamp(min=1)

    def spread(self, values: Shaped[Tensor, "S"]) -> Shaped[Tensor, "N"]:
        """The response's value at each of its tokens."""
        return values[self.ids]

    def take(self, padded: Shaped[Tensor, "B L"]) -> Shaped[Tensor, "N"]:
        """The trained tokens of a padded tensor of the mask's shape."""
        if self.index is None:
            raise GspoError(
                "these segments were not made from a mask, so take() has no positions; use Segments.from_mask"
            )
        return padded.flatten()[self.index]
