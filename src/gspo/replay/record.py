"""One step of a run folder as tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.diagnostics.lengths import MAX_POWER, bucket_index
from gspo.recorders.schema import RESPONSE_COLUMNS, arrow_schema
from gspo.segments import Segments

if TYPE_CHECKING:
    import pyarrow as pa

NUM_BUCKETS = MAX_POWER + 1

COLUMNS = (
    "advantage",
    "length",
    "minibatch",
    "old_logp",
    "logp",
    "cut_low",
    "cut_high",
    "loss",
)


@dataclass(frozen=True, slots=True)
class MinibatchSize:
    """What the denominator D of an optimizer step counts: non-empty responses, their tokens."""

    num_responses: int
    num_tokens: int


@dataclass(frozen=True, kw_only=True)
class Responses:
    """S responses of one or more steps whose log-probs are known: what a candidate sees.

    update: number of the optimizer step that used the response, from 0 within these. sizes: of
    each of those; responses that are left out here stay in its D. off_policy: in a minibatch after
    the first of its step.
    """

    logp: Float[Tensor, "N"]
    old_logp: Float[Tensor, "N"]
    advantage: Float[Tensor, "S"]
    segments: Segments
    update: Int[Tensor, "S"]
    off_policy: Bool[Tensor, "S"]
    sizes: Sequence[MinibatchSize]
    num_steps: int

    @cached_property
    def condensed(self) -> Responses:
        """The same with one token a response, whose log-ratio is log s: all that an objective sees
        which has one ratio, one advantage and one range a response."""
        filled = self.segments.lengths > 0
        log_s = self.segments.mean(self.logp - self.old_logp)[filled]
        segments = Segments.from_lengths(self.segments.lengths.clamp(max=1))
        return replace(self, logp=log_s, old_logp=torch.zeros_like(log_s), segments=segments)

    @cached_property
    def by_length(self) -> Float[Tensor, "B S"]:
        """1 where the response is in the length bucket and counts: off-policy, A != 0, not empty."""
        lengths = self.segments.lengths
        counts = self.off_policy & (self.advantage != 0) & (lengths > 0)
        bucket = torch.where(counts, bucket_index(lengths), -1)
        return (bucket == torch.arange(NUM_BUCKETS)[:, None]).double()

    @classmethod
    def join(cls, parts: Sequence[Responses]) -> Responses:
        """The responses of several steps, in order."""
        starts = list(accumulate((len(part.sizes) for part in parts), initial=0))
        updates = [part.update + start for part, start in zip(parts, starts, strict=False)]
        return cls(
            logp=torch.cat([part.logp for part in parts]),
            old_logp=torch.cat([part.old_logp for part in parts]),
            advantage=torch.cat([part.advantage for part in parts]),
            segments=Segments.from_lengths(torch.cat([part.segments.lengths for part in parts])),
            update=torch.cat(updates),
            off_policy=torch.cat([part.off_policy for part in parts]),
            sizes=[size for part in parts for size in part.sizes],
            num_steps=sum(part.num_steps for part in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """One step. cut_low, cut_high, loss: of each response as recorded, the loss NaN where it is
    not. num_left_out: rows without log-probs, not trained on or not run by the update."""

    step: int
    responses: Responses
    cut_low: Int[Tensor, "S"]
    cut_high: Int[Tensor, "S"]
    loss: Float[Tensor, "S"]
    num_left_out: int


def read_step(step: int, table: pa.Table) -> RecordedStep | str:
    """The step, or what is wrong with its file. table: `COLUMNS`."""
    for name, wanted in _types().items():
        if (given := table.schema.field(name).type) != wanted:
            return f"column {name} is {given}; wanted {wanted}"
    for name in ("length", "advantage"):
        if table[name].null_count:
            return f"column {name} holds {table[name].null_count} nulls; wanted a number for each response"
    minibatch = table["minibatch"].fill_null(0).to_numpy()
    length = table["length"].to_numpy()
    keep = table["logp"].is_valid().to_numpy() & table["old_logp"].is_valid().to_numpy()
    keep &= minibatch > 0
    if not keep.all():
        table = table.filter(keep)
    logp, lengths = _flat(table["logp"])
    old_logp, old_lengths = _flat(table["old_logp"])
    if not np.array_equal(lengths, old_lengths):
        row = int((lengths != old_lengths).argmax())
        return f"a response has {lengths[row]} values in logp and {old_lengths[row]} in old_logp"
    if not (np.isfinite(logp).all() and np.isfinite(old_logp).all()):
        return "logp or old_logp holds values that are not finite"
    numbers, update = np.unique(minibatch[keep], return_inverse=True)
    responses = Responses(
        logp=torch.tensor(logp),
        old_logp=torch.tensor(old_logp),
        # A float32 number when it was recorded.
        advantage=torch.tensor(table["advantage"].to_numpy(), dtype=torch.float32),
        segments=Segments.from_lengths(torch.tensor(lengths)),
        update=torch.tensor(update, dtype=torch.int64),
        off_policy=torch.tensor(minibatch[keep] > 1),
        sizes=[_size(length[minibatch == number]) for number in numbers],
        num_steps=1,
    )
    return RecordedStep(
        step=step,
        responses=responses,
        cut_low=torch.tensor(table["cut_low"].to_numpy()),
        cut_high=torch.tensor(table["cut_high"].to_numpy()),
        loss=torch.tensor(table["loss"].fill_null(math.nan).to_numpy()),
        num_left_out=int((~keep).sum()),
    )


@cache
def _types() -> dict[str, Any]:
    schema = arrow_schema({name: RESPONSE_COLUMNS[name] for name in COLUMNS}, step=0)
    return {field.name: field.type for field in schema}


def _size(lengths: Any) -> MinibatchSize:
    return MinibatchSize(num_responses=int((lengths > 0).sum()), num_tokens=int(lengths.sum()))


def _flat(lists: Any) -> tuple[Any, Any]:
    """Values of a column of lists, one after another, and the length of each list."""
    import pyarrow as pa

    array = lists.combine_chunks() if lists.num_chunks else pa.array([], lists.type)
    return (
        array.flatten().to_numpy(zero_copy_only=False),
        array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64),
    )
