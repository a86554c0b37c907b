"""The order in which prompts are taken: a function of (seed, epoch) and a position, nothing else.

A position counts the prompts taken since the start of the run. Epoch e is the positions
e * num_prompts to (e + 1) * num_prompts - 1; it holds every prompt once, in its own order. There
is no iterator whose state could be lost: a run resumed at any position, in the middle of an epoch
or at its end, goes on as if it had not stopped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gspo.errors import DataError
from gspo.types import Prompt

KEY_BYTES = 16  # Philox takes a key of 128 bits


def prompt_indices(num_prompts: int, seed: int, cursor: int, count: int) -> list[int]:
    """Indices of the `count` prompts at positions cursor, cursor + 1, …

    They may cross the end of an epoch, and `count` may be larger than `num_prompts`: an index can
    then come up again, `prompt_places` tells the copies apart.
    """
    if num_prompts < 1:
        raise DataError(
            f"the data has {num_prompts} prompts, so no step can be made; check the file, the split and what the length limit dropped"
        )
    if cursor < 0 or count < 1:
        raise DataError(
            f"asked for {count} prompts at position {cursor}; wanted at least 1, at a position from 0"
        )
    places = (divmod(position, num_prompts) for position in range(cursor, cursor + count))
    return [_epoch_order(num_prompts, seed, epoch)[place] for epoch, place in places]


def prompt_places(num_prompts: int, seed: int, cursor: int, count: int) -> list[tuple[int, int]]:
    """(index, copy) of the same prompts; copy counts from 1 how often one came among them, so that
    each can be a group of its own."""
    times: Counter[int] = Counter()
    places: list[tuple[int, int]] = []
    for index in prompt_indices(num_prompts, seed, cursor, count):
        times[index] += 1
        places.append((index, times[index]))
    return places


def prompts_at(prompts: Sequence[Prompt], places: Sequence[tuple[int, int]]) -> list[Prompt]:
    """The prompts at these places. One that comes again is a group of its own: its id ends in "#2",
    "#3", …, so that it gets random numbers of its own."""
    return [
        prompts[k] if copy == 1 else replace(prompts[k], id=f"{prompts[k].id}#{copy}")
        for k, copy in places
    ]


@lru_cache(maxsize=2)  # a step reads one epoch, or two at its end
def _epoch_order(num_prompts: int, seed: int, epoch: int) -> tuple[int, ...]:
    """Prompts sorted by counted random keys. Philox's raw output is fixed for good, which numpy
    does not promise of its `permutation`."""
    digest = hashlib.blake2b(f"data order {seed} {epoch}".encode(), digest_size=KEY_BYTES).digest()
    keys = np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(num_prompts)
    return tuple(np.argsort(keys, kind="stable").tolist())
