"""A micro-batch without padding, in which responses of a group share the tokens they begin with.

All tokens of the micro-batch are one row of T. Each group puts down its common beginning once (the
prompt, up to its last token, which already predicts), then what is each response's own:

    prompt of group 0 | response 0 | response 1 | ... | prompt of group 1 | response 8 | ...

A segment attends to itself causally, and a response also to its group's beginning. The matrix
products see T = sum over groups of (beginning + own tokens); padded rows would be G times the
prompt plus the longest response for each. Nothing is approximated: a token's log-prob and every
gradient are those of the response alone, up to float32 rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from gspo.policy.packing import check_budget
from gspo.types import RolloutBatch

#: Below this many tokens saved in a group, its beginning is repeated: attending to a shared one
#: costs two more kernels a layer.
MIN_TOKENS_SAVED = 16
#: Segments are padded to the longest of their bucket for attention alone, where padding costs
#: little: up to this share of the bucket's real tokens.
MAX_BUCKET_PADDING = 0.25


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens [start, start + length) of the row, causal among themselves. prefix: the segment they
    all attend to as well, or None."""

    start: int
    length: int
    prefix: Segment | None = None

    @property
    def stop(self) -> int:
        """First token behind it."""
        return self.start + self.length

    def tokens(self) -> Int[Tensor, "L"]:
        """Its places in the row."""
        return torch.arange(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Segments of similar length, padded on the right to the longest, L tokens.

    index [b * L]: place in the row of each padded token; padding points at token 0. real [n]: which
    of them are tokens; where it is None all are. places [n]: where the real ones belong in the row.
    """

    segments: tuple[Segment, ...]
    longest: int
    index: Int[Tensor, "P"]
    real: Int[Tensor, "n"] | None
    places: Int[Tensor, "n"]
    padding: Int[Tensor, "p"]

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> Bucket:
        """These segments side by side."""
        longest = max(segment.length for segment in segments)
        start = torch.tensor([segment.start for segment in segments])
        length = torch.tensor([segment.length for segment in segments])
        column = torch.arange(longest)
        inside = column < length[:, None]
        index = torch.where(inside, start[:, None] + column, 0).flatten()
        real = inside.flatten().nonzero().squeeze(1)
        everything = real.numel() == index.numel()
        padding = (~inside).flatten().nonzero().squeeze(1)
        return cls(
            tuple(segments), longest, index, None if everything else real, index[real], padding
        )

    def to(self, device: torch.device) -> Bucket:
        """Its indices on the model's device."""
        real = None if self.real is None else self.real.to(device)
        index, places, padding = (x.to(device) for x in (self.index, self.places, self.padding))
        return Bucket(self.segments, self.longest, index, real, places, padding)


@dataclass(frozen=True, slots=True)
class Layout:
    """What attention must know of the row: its buckets, and for each shared beginning the run of
    tokens, side by side, that attend to it. longest: tokens of the longest sequence."""

    num_tokens: int
    buckets: tuple[Bucket, ...]
    crosses: tuple[tuple[Segment, Segment], ...]
    longest: int


@dataclass(frozen=True, slots=True)
class Ragged:
    """input_ids, positions [1, T]. predicts [N]: the place in the row whose hidden state predicts
    each trained token, in the order of the batch's N."""

    input_ids: Int[Tensor, "1 T"]
    positions: Int[Tensor, "1 T"]
    predicts: Int[Tensor, "N"]
    layout: Layout

    @classmethod
    def of(cls, batch: RolloutBatch, device: torch.device) -> Ragged:
        """The row of this micro-batch. A response without a trained token takes no part."""
        row = _Row(batch)
        for group in _groups(batch):
            row.add(group)
        layout = Layout(
            row.num_tokens,
            tuple(bucket.to(device) for bucket in _buckets(row.segments)),
            tuple(row.crosses),
            row.longest,
        )
        keep = torch.cat(row.sources) if row.sources else torch.zeros(0, dtype=torch.int64)
        return cls(
            batch.input_ids[keep][None].to(device),
            batch.positions[keep][None].to(device),
            (batch.target - 1 + row.shift_N).to(device),
            layout,
        )


class _Row:
    """The row while it is put together."""

    def __init__(self, batch: RolloutBatch) -> None:
        self.num_tokens = 0
        self.longest = 0
        self.segments: list[Segment] = []
        self.crosses: list[tuple[Segment, Segment]] = []
        self.sources: list[Tensor] = []  # places in the batch's T, piece by piece
        self.shift_N = torch.zeros(batch.num_tokens, dtype=torch.int64)
        self._batch = batch

    def add(self, group: _Beginning) -> None:
        """A group's shared beginning, if it has one, and its responses behind it."""
        first = group.spans[0]
        prefix = self._put(first.start, group.shared, None) if group.shared else None
        start = self.num_tokens
        for span in group.spans:
            own = self._put(
                span.start + group.shared, span.stop - span.start - group.shared, prefix
            )
            self.shift_N[span.tokens] = own.start - (span.start + group.shared)
            self.longest = max(self.longest, span.stop - span.start)
        if prefix:
            self.crosses.append((prefix, Segment(start, self.num_tokens - start, prefix)))

    def _put(self, source: int, length: int, prefix: Segment | None) -> Segment:
        segment = Segment(self.num_tokens, length, prefix)
        self.segments.append(segment)
        self.sources.append(torch.arange(source, source + length))
        self.num_tokens += length
        return segment


@dataclass(frozen=True, slots=True)
class _Span:
    """A response's tokens [start, stop) of the batch's T that have something to predict, from its
    first token to the one before its last target. first: its first token that predicts. tokens:
    which of the N are its."""

    start: int
    stop: int
    first: int
    tokens: slice


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Responses of one group and how many first tokens they share."""

    spans: list[_Span]
    shared: int

    @property
    def num_tokens(self) -> int:
        """What they add to a row."""
        own = sum(span.stop - span.start - self.shared for span in self.spans)
        return self.shared + own


def _spans(batch: RolloutBatch) -> list[_Span | None]:
    """One a response; None for one without a trained token."""
    starts = (batch.sequence_lengths.cumsum(0) - batch.sequence_lengths).tolist()
    counts = batch.segments.lengths
    ends = counts.cumsum(0).tolist()
    spans: list[_Span | None] = []
    for start, count, end in zip(starts, counts.tolist(), ends, strict=True):
        if not count:
            spans.append(None)
            continue
        first, last = int(batch.target[end - count]), int(batch.target[end - 1])
        spans.append(_Span(start, last, first - 1, slice(end - count, end)))
    return spans


def _groups(batch: RolloutBatch) -> list[_Beginning]:
    members: dict[int, list[_Span]] = {}
    for group, span in zip(batch.group.tolist(), _spans(batch), strict=True):
        if span is not None:
            members.setdefault(group, []).append(span)
    return [_Beginning(spans, _shared(batch, spans)) for spans in members.values()]


def _shared(batch: RolloutBatch, spans: Sequence[_Span]) -> int:
    """First tokens that all have in common, ids and positions, and that predict nothing."""
    limit = min(span.first - span.start for span in spans)
    if limit * (len(spans) - 1) < MIN_TOKENS_SAVED:
        return 0
    same = torch.ones(limit, dtype=torch.bool)
    first = spans[0].start
    for span in spans[1:]:
        for values in (batch.input_ids, batch.positions):
            same &= values[first : first + limit] == values[span.start : span.start + limit]
    shared = int(same.int().cumprod(0).sum())
    return shared if shared * (len(spans) - 1) >= MIN_TOKENS_SAVED else 0


def _buckets(segments: Sequence[Segment]) -> Iterator[Bucket]:
    """Longest first; a bucket ends where padding would pass its share."""
    ordered = sorted(segments, key=lambda segment: -segment.length)
    start = 0
    while start < len(ordered):
        longest = ordered[start].length
        stop, real = start, 0
        while stop < len(ordered):
            grown = real + ordered[stop].length
            if longest * (stop + 1 - start) > (1 + MAX_BUCKET_PADDING) * grown:
                break
            stop, real = stop + 1, grown
        yield Bucket.of(ordered[start:stop])
        start = stop


def shared_microbatches(
    batch: RolloutBatch, max_tokens: int, good_tokens: int | None = None
) -> list[Int[Tensor, "_"]]:
    """Rows of each micro-batch of at most max_tokens tokens, a shared beginning counted once;
    good_tokens: stay below this many as well, as far as single responses allow.

    Groups stay together where they fit, largest first. One that does not is cut between responses,
    and each part begins with its prompt. Responses without a trained token go with the first.

    Raises:
        RecipeError: one sequence alone is longer than the budget.
    """
    longest = int(batch.sequence_lengths.max()) if batch.num_responses else 0
    check_budget(longest, max_tokens)
    budget = max(min(max_tokens, good_tokens or max_tokens), longest)
    pieces = sorted(_pieces(batch, budget), key=lambda piece: -piece[0])
    cuts: list[list[int]] = []
    room = 0
    for cost, rows in pieces:
        if not cuts or cost > room:
            cuts.append([])
            room = budget
        cuts[-1] += rows
        room -= cost
    return [torch.tensor(rows) for rows in cuts]


def _pieces(batch: RolloutBatch, max_tokens: int) -> Iterator[tuple[int, list[int]]]:
    """(tokens, rows) of whole groups, or of parts of one that is larger than the budget."""
    spans = _spans(batch)
    rows_of: dict[int, list[int]] = {}
    for row, group in enumerate(batch.group.tolist()):
        rows_of.setdefault(group, []).append(row)
    for rows in rows_of.values():
        running = [row for row in rows if spans[row] is not None]
        waiting = [row for row in rows if spans[row] is None]
        while running:
            count = len(running)
            while (cost := _cost(batch, spans, running[:count])) > max_tokens:
                count = min(count - 1, max(count * max_tokens // cost, 1))
            yield cost, running[:count] + waiting
            running, waiting = running[count:], []
        if waiting:
            yield 0, waiting


def _cost(batch: RolloutBatch, spans: Sequence[_Span | None], rows: Sequence[int]) -> int:
    members = [span for row in rows if (span := spans[row]) is not None]
    return _Beginning(members, _shared(batch, members)).num_tokens
