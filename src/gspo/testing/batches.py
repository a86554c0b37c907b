"""The small batches a loss is tried on, as padded tensors and as plain numbers.

Rows and tokens are equally many in the first one, so that an advantage on the wrong axis is
computed instead of refused and can be told by its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gspo.testing.reference import Case, Rows
from gspo.testing.wanted import Wanted

Change = Callable[[Tensor], Tensor]

LENGTHS = (5, 2, 6, 3, 1, 4, 6, 5)
WIDTH = len(LENGTHS)
#: Not centred and not scaled, so that doing it once more shows; one zero, which stays in D.
ADVANTAGES = (1.2, -0.7, -0.9, 0.6, 0.5, -1.4, 0.0, 0.8)

#: nats beyond an edge: far more than rounding, and different ratios are told apart by it.
BEYOND = 0.02
#: nats: an open lower side is tried down to here.
OPEN_EDGE = -1.0
#: nats: no log-ratio of the ordinary batch is larger, whatever the range.
LARGEST = 3.0


@dataclass(frozen=True)
class Padded:
    """What a loss is called with. logp, old_logp: (N, T), nats. advantage: (N,), or (N, T) for
    gspo_token. mask: (N, T) bool."""

    logp: Tensor
    old_logp: Tensor
    advantage: Tensor
    mask: Tensor

    @property
    def counts(self) -> dict[str, int]:
        """What the denominators are made of."""
        return {
            "num_responses": int(self.mask.any(1).sum()),
            "num_tokens": int(self.mask.sum()),
        }

    def rows(self, pick: Sequence[int]) -> Padded:
        """These rows, in this order."""
        return self._each(lambda values: values[list(pick)])

    def columns(self, pick: Sequence[int]) -> Padded:
        """These columns, in this order; trained tokens need not come first."""
        return self._each(lambda values: values[:, list(pick)] if values.ndim == 2 else values)

    def widened(self, by: int) -> Padded:
        """More padding on the right."""
        return self._each(
            lambda values: torch.nn.functional.pad(values, (0, by)) if values.ndim == 2 else values
        )

    def with_empty_rows(self, count: int) -> Padded:
        """Rows without a trained token, of advantage 5, after the others."""
        more = self._each(
            lambda values: torch.zeros_like(values[:1]).expand(count, *values.shape[1:])
        )
        more = replace(more, advantage=more.advantage + 5)
        return Padded(
            *(
                torch.cat([mine, others])
                for mine, others in zip(self.tensors, more.tensors, strict=True)
            )
        )

    def to(self, dtype: torch.dtype) -> Padded:
        """Log-probs in another precision; advantages stay float32, as trainers have them."""
        return replace(self, logp=self.logp.to(dtype), old_logp=self.old_logp.to(dtype))

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """In the order of a call."""
        return self.logp, self.old_logp, self.advantage, self.mask

    def case(self) -> Case:
        """The same numbers, after their rounding to float32, without padding."""
        keep = self.mask.tolist()
        advantage = self.advantage
        if advantage.ndim == 1:
            advantage = advantage[:, None].expand(self.mask.shape)

        def ragged(values: Tensor) -> Rows:
            rows = values.double().tolist()
            return [
                [value for value, kept in zip(row, mask, strict=True) if kept]
                for row, mask in zip(rows, keep, strict=True)
            ]

        return Case(ragged(self.logp), ragged(self.old_logp), ragged(advantage), self.mask.shape[1])

    def _each(self, change: Change) -> Padded:
        return Padded(*(change(values) for values in self.tensors))


def padded(
    wanted: Wanted,
    log_ratios: Rows,
    advantages: Sequence[float],
    *,
    width: int | None = None,
    logp: Rows | None = None,
) -> Padded:
    """One row a response with these log-ratios; log-probs between -1.3 and -5 unless given."""
    width = width or max(map(len, log_ratios))
    mask = torch.zeros(len(log_ratios), width, dtype=torch.bool)
    new, old = torch.zeros(mask.shape), torch.zeros(mask.shape)
    for row, ratios in enumerate(log_ratios):
        for token, ratio in enumerate(ratios):
            value = logp[row][token] if logp else -1.3 - 0.37 * ((7 * row + 3 * token) % 11)
            mask[row, token], new[row, token], old[row, token] = True, value, value - ratio
    advantage = torch.tensor(list(advantages))
    if wanted.per_token:
        advantage = advantage[:, None].expand(mask.shape).contiguous() * mask
    return Padded(new, old, advantage, mask)


def ordinary(wanted: Wanted) -> Padded:
    """Eight responses in eight columns: cut and kept, above, below and inside, both signs."""
    low, high = edges(wanted)
    if wanted.level == "sequence":
        rows = _around(_means(wanted, low, high))
    else:
        rows = _token_ratios(wanted, low, high)
    batch = padded(wanted, rows, ADVANTAGES, width=WIDTH)
    if wanted.per_token:
        signs = torch.tensor([1.0, 0.5, -0.25, 2.0] * (WIDTH // 4))
        batch = replace(batch, advantage=batch.advantage * signs)
    return batch


def edges(wanted: Wanted) -> tuple[float, float]:
    """The band, with an open or a very wide side brought near."""
    low = OPEN_EDGE if wanted.low_edge == -math.inf else max(wanted.low_edge, -LARGEST)
    return low, min(wanted.high_edge, LARGEST)


def _means(wanted: Wanted, low: float, high: float) -> list[float]:
    """Mean log-ratio of each row."""
    inside_low, inside_high = _nearly_out(low, high)
    return [
        *(high + BEYOND, high + 1.5 * BEYOND, low - BEYOND, low - 1.5 * BEYOND),
        *(0.4 * high, inside_low, 0.2 * high, inside_high),
    ]


def _nearly_out(low: float, high: float) -> tuple[float, float]:
    """A log-ratio inside the band on each side. On the wider side it is further out than the
    narrower one reaches: there a range with its sides exchanged decides otherwise."""
    between = (high - low) / 2
    return (0.4 * low, between) if high > -low else (-between, 0.5 * high)


def _around(means: list[float]) -> Rows:
    """Token log-ratios with these means, 0.05 nats around them."""
    rows: Rows = []
    for row, (mean, length) in enumerate(zip(means, LENGTHS, strict=True)):
        noise = [0.05 * math.cos(2.3 * row + 1.7 * token) for token in range(length)]
        rows.append([mean + value - sum(noise) / length for value in noise])
    return rows


def _token_ratios(wanted: Wanted, low: float, high: float) -> Rows:
    inside_low, inside_high = _nearly_out(low, high)
    values = (high + BEYOND, 0.4 * high, low - BEYOND, inside_low, inside_high, 0.1 * high)
    rows = [
        [values[(row + token) % len(values)] * (1 + 0.003 * token) for token in range(length)]
        for row, length in enumerate(LENGTHS)
    ]
    if wanted.log_dual_clip is not None:
        rows[1][0] = wanted.log_dual_clip + BEYOND
    return rows
