"""The scheduler by itself, over a decoder that counts and remembers what it was told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from gspo.engines.base import Sampling
from gspo.engines.request import Response
from gspo.engines.scheduler import Decoder, Schedule, without
from gspo.types import Prompt

END = 9


class Counting:
    """After token t of a row comes t + 1; a prompt's one id is the token before the first."""

    def __init__(self) -> None:
        self.rows: list[int] = []  # the newest token of each
        self.joined: list[list[int]] = []  # groups that joined, call by call
        self.held: list[int | None] = []  # the group whose responses wait, call by call
        self.batches: list[int] = []  # rows of each step

    def admit(self, joining: Sequence[Response], waiting: Response | None) -> Tensor:
        self.joined.append([response.prompt_index for response in joining])
        self.held.append(waiting.prompt_index if waiting else None)
        tokens = [response.prompt.ids[0] for response in joining]
        self.rows += tokens
        return self._logits(tokens)

    def keep(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[row] for row in rows]

    def step(self, ids: Tensor) -> Tensor:
        self.batches.append(len(self.rows))
        assert ids.tolist() == [token + 1 for token in self.rows]
        self.rows = ids.tolist()
        return self._logits(self.rows)

    def _logits(self, tokens: list[int]) -> Tensor:
        return torch.nn.functional.one_hot(torch.tensor(tokens) + 1, 12).float()


def waiting(lengths: Sequence[int], num_samples: int) -> list[Response]:
    """Groups whose responses all have this length: they begin so far below the end token."""
    return [
        Response(
            prompt_index=group,
            prompt=Prompt(id=str(group), text="", ids=[END - length]),
            limit=100,
            key=sample,
        )
        for group, length in enumerate(lengths)
        for sample in range(num_samples)
    ]


def schedule(rows: Sequence[Response], max_batch: int) -> Schedule:
    greedy = Sampling(num_samples=1, max_tokens=100, temperature=0.0)
    return Schedule(
        rows,
        greedy,
        eos_ids=frozenset([END]),
        max_batch=max_batch,
        device=torch.device("cpu"),
    )


def finish(rows: Sequence[Response], max_batch: int) -> tuple[Counting, list[list[int]]]:
    decoder, plan, finished = Counting(), schedule(rows, max_batch), []
    assert isinstance(decoder, Decoder)
    while not plan.is_done:
        finished.append(plan.run(decoder, version=3))
    for response in rows:
        assert response.ids == list(range(response.prompt.ids[0] + 1, END + 1))
        assert len(response.logp) == len(response.ids)
        assert response.version == 3
    return decoder, finished


def test_waiting_responses_take_the_places_of_done_ones() -> None:
    """One sample each, two at a time, lengths 1, 4, 2, 3: beside the second there is room for the
    first and the third, and the fourth joins as the second draws its last token."""
    decoder, finished = finish(waiting([1, 4, 2, 3], 1), max_batch=2)
    assert decoder.joined == [[0, 1], [2], [3]]
    assert finished == [[0], [2], [1], [3]]
    assert decoder.batches == [1, 2, 1, 1, 1]


def test_groups_join_whole_where_they_fit() -> None:
    """Groups of 3 in a batch of 16: five fit, and the sixth waits until three places are free,
    although one is from the beginning."""
    decoder, finished = finish(waiting([3, 3, 3, 3, 2, 2], 3), max_batch=16)
    assert decoder.joined == [[group for group in range(5) for _ in range(3)], [5] * 3]
    assert finished == [[4], [0, 1, 2, 3], [5]]


@pytest.mark.parametrize(
    ("max_batch", "joined", "held"),
    [
        (2, [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]], [0, 0, 1, 1, None]),
        (8, [[0] * 5 + [1] * 3, [1] * 2], [1, None]),
    ],
)
def test_a_group_larger_than_the_room_is_split(
    max_batch: int, joined: list[list[int]], held: list[int | None]
) -> None:
    decoder, finished = finish(waiting([2, 2], 5), max_batch)
    assert (decoder.joined, decoder.held) == (joined, held)
    assert [group for groups in finished for group in groups] == [0, 1]


def test_a_restart_begins_live_responses_again() -> None:
    rows = waiting([1, 3], 1)
    decoder, plan = Counting(), schedule(rows, max_batch=2)
    assert plan.run(decoder, version=1) == [0]
    assert rows[1].ids == [7]
    plan.restart()
    assert (rows[0].ids, rows[1].ids) == ([9], [])
    assert plan.run(Counting(), version=2) == [1]
    assert (rows[0].version, rows[1].version) == (1, 2)
    assert rows[1].ids == [7, 8, 9]
    assert plan.is_done


def test_a_restart_keeps_groups_together() -> None:
    """The first group's two rows leave, and the last ones take their places, in turn."""
    rows = waiting([1, 3, 3], 2)
    decoder, plan = Counting(), schedule(rows, max_batch=6)
    assert plan.run(decoder, version=1) == [0]
    plan.restart()
    again = Counting()
    assert plan.run(again, version=2) == [1, 2]
    assert again.joined == [[1, 1, 2, 2]]


@pytest.mark.parametrize(
    ("done", "num_rows", "rows"),
    [([], 2, [0, 1]), ([1], 2, [0]), ([0], 3, [2, 1]), ([0, 2], 5, [3, 1, 4]), ([0, 1], 2, [])],
)
def test_the_last_rows_fill_the_gaps(done: list[int], num_rows: int, rows: list[int]) -> None:
    assert without(done, num_rows) == rows
