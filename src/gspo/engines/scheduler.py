"""Which responses are decoded when: a queue, a batch that is kept full, groups as they finish.

A response that is done leaves the batch at once. To close its gap the last row is copied there,
which moves about the bytes that one more token of the done row would have read. Waiting responses
join as soon as there is room for a whole group (its prompt is read once), or for a quarter of the
batch where a group is larger than that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from gspo.engines.base import Sampling
from gspo.engines.counted import uniforms
from gspo.engines.request import Response
from gspo.engines.sampling import Draw, draw

REFILL_SHARE = 0.25  # of the batch: groups larger than this are split over the places that free up
UNIFORMS_AHEAD = 32  # tokens: one call for them costs what one call for a single token does


@runtime_checkable
class Decoder(Protocol):
    """Logits of the rows in the batch. Rows are numbered from 0; those that join come last."""

    def admit(self, joining: Sequence[Response], waiting: Response | None) -> Float[Tensor, "A V"]:
        """Reads the prompts of these responses; logits of their first tokens.

        waiting: the next response in the queue. If it is of the last of these groups, that
        prompt will not be read again.
        """
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Row i becomes what row rows[i] was; the rest is left out."""
        ...

    def step(self, ids: Int64[Tensor, "B"]) -> Float[Tensor, "B V"]:
        """Feeds every row its newest token; logits of the next."""
        ...


class Schedule:
    """The responses of one request: waiting ones and live ones."""

    def __init__(
        self,
        waiting: Sequence[Response],
        sampling: Sampling,
        *,
        eos_ids: frozenset[int],
        max_batch: int,
        device: torch.device,
    ) -> None:
        self._all = tuple(waiting)
        self._waiting = deque(waiting)
        self._live: list[Response] = []
        self._missing: dict[int, int] = {}  # responses of each group that are not done
        for response in waiting:
            group = response.prompt_index
            self._missing[group] = self._missing.get(group, 0) + 1
        self._sampling = sampling
        self._eos_ids = eos_ids
        self._max_batch = max_batch
        self._device = device
        self._newest: Int64[Tensor, "B"] | None = None  # None before the first token of a batch
        self._ahead: list[Float64[Tensor, "B"]] = []

    @property
    def is_done(self) -> bool:
        """Nothing waits and nothing is live."""
        return not self._waiting and not self._live

    def restart(self) -> None:
        """Live responses go back to the head of the queue, as if they had never been begun."""
        live = {id(response) for response in self._live}
        for response in self._live:
            response.restart()
        # In the order of the request: rows of a group have moved apart in the batch.
        again = [response for response in self._all if id(response) in live]
        self._waiting.extendleft(reversed(again))
        self._live, self._newest, self._ahead = [], None, []

    def run(self, decoder: Decoder, version: int) -> list[int]:
        """Decodes until some group has no response left; which ones (prompt indices)."""
        finished: list[int] = []
        while not finished:
            logits = [] if self._newest is None else [decoder.step(self._newest)]
            joining = self._next_in()
            if joining:
                logits.append(decoder.admit(joining, self._waiting[0] if self._waiting else None))
                for response in joining:
                    response.version = version
                self._live += joining
                self._ahead = []
            drawn = self._draw(logits[0] if len(logits) == 1 else torch.cat(logits))
            finished = self._leave(decoder, drawn)
        return finished

    def _next_in(self) -> list[Response]:
        """Waiting responses that there is room for, group by group."""
        room = self._max_batch - len(self._live)
        piece = max(1, int(REFILL_SHARE * self._max_batch))
        joining: list[Response] = []
        while self._waiting and room:
            _, siblings = next(groupby(self._waiting, key=lambda response: response.prompt_index))
            left = len(list(siblings))
            if room < min(left, piece):
                break
            for _ in range(min(left, room)):
                joining.append(self._waiting.popleft())
                room -= 1
        return joining

    def _draw(self, logits: Float[Tensor, "B V"]) -> Draw:
        """One token a live row, noted in its response."""
        drawn = draw(
            logits,
            self._uniforms(),
            temperature=self._sampling.temperature,
            top_k=self._sampling.top_k,
            top_p=self._sampling.top_p,
        )
        rows = zip(self._live, drawn.ids.tolist(), drawn.logp.tolist(), strict=True)
        for response, token, logp in rows:
            response.ids.append(token)
            response.logp.append(logp)
        if drawn.kept_mass is not None:
            for response, mass in zip(self._live, drawn.kept_mass.tolist(), strict=True):
                response.kept_mass.append(mass)
        return drawn

    def _leave(self, decoder: Decoder, drawn: Draw) -> list[int]:
        """Takes the done rows out; the groups that have none left."""
        done = [row for row, response in enumerate(self._live) if response.is_done(self._eos_ids)]
        self._newest = drawn.ids
        if not done:
            return []
        finished = []
        for row in done:
            group = self._live[row].prompt_index
            self._missing[group] -= 1
            if not self._missing[group]:
                finished.append(group)
        rows = without(done, len(self._live))
        decoder.keep(rows)
        self._live = [self._live[row] for row in rows]
        self._newest = drawn.ids[self._tensor(rows)] if rows else None
        self._ahead = []
        return finished

    def _uniforms(self) -> Float64[Tensor, "B"]:
        """Of the next token of every live row."""
        if not self._ahead:
            keys = self._tensor([response.key for response in self._live])
            first = self._tensor([len(response.ids) for response in self._live])
            # The last step first, so that the next is popped from the end.
            positions = first + self._tensor(range(UNIFORMS_AHEAD - 1, -1, -1))[:, None]
            block = uniforms(keys.expand(positions.shape).flatten(), positions.flatten())
            self._ahead = list(block.view(positions.shape).unbind())
        return self._ahead.pop()

    def _tensor(self, values: Sequence[int]) -> Int64[Tensor, "n"]:
        return torch.tensor(values, dtype=torch.int64, device=self._device)


def without(done: Sequence[int], num_rows: int) -> list[int]:
    """Rows that stay, each where it is but the last ones, which fill the gaps.

    >>> without([0, 2], 5)
    [3, 1, 4]
    """
    num_live = num_rows - len(done)
    rows = list(range(num_live))
    gone = set(done)
    movers = (row for row in range(num_live, num_rows) if row not in gone)
    for gap in (row for row in done if row < num_live):
        rows[gap] = next(movers)
    return rows
