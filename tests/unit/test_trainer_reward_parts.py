"""Means of the parts of the reward."""

from __future__ import annotations

from dataclasses import replace

from gspo.trainer.reward_parts import MAX_PARTS, part_stats
from gspo.verifiers.strict import STRICT
from tests.recorder_rows import ROW


def row(reward, parts):
    return replace(ROW, reward=reward, parts=parts)


def means(rows):
    return {name: stat.value() for name, stat in part_stats(rows).items()}


def test_a_part_is_averaged_over_the_scored_responses_that_have_it():
    rows = [
        row(reward=1.0, parts={"answer": 1.0, "form": 0.5}),
        row(reward=0.2, parts={"answer": 0.0, "form/tags": 1.0}),
        row(reward=None, parts={"answer": 1.0}),  # a verdict that failed says nothing
    ]
    assert means(rows) == {
        "reward/part/answer": 0.5,
        "reward/part/form": 0.5,
        "reward/part/form/tags": 1.0,
    }


def test_the_strict_grader_is_no_part():
    assert means([row(reward=1.0, parts={STRICT: 0.0})]) == {}


def test_names_that_a_function_invents_have_an_end():
    rows = [row(reward=1.0, parts={f"name {n}": float(n)}) for n in range(2 * MAX_PARTS)]
    found = means(rows)
    assert len(found) == MAX_PARTS
    assert found["reward/part/name 3"] == 3.0
