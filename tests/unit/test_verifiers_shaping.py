"""Rewards of length, by hand."""

from dataclasses import replace

import pytest

from gspo.errors import RecipeError
from gspo.types import Prompt
from gspo.verifiers.shaping import LengthVerifier, OverlongPunishment
from gspo.verifiers.written import written

PROMPT = Prompt(id="p", text="?", ids=(1,))


def rewards(verifier, *lengths, finish="stop"):
    rollouts = [
        replace(
            written("x"),
            response_ids=(1,) * n,
            trained=(True,) * n,
            engine_logp=(0.0,) * n,
            finish=finish,
        )
        for n in lengths
    ]
    return [verdict.reward for verdict in verifier.judge(PROMPT, rollouts)]


def test_length_falls_on_a_straight_line():
    assert rewards(LengthVerifier(10, 30), 0, 10, 15, 20, 30, 99) == [1, 1, 0.75, 0.5, 0, 0]


def test_length_may_rise():
    assert rewards(LengthVerifier(30, 10), 0, 10, 15, 30, 99) == [0, 0, 0.25, 1, 1]


def test_overlong_is_equation_13_of_dapo():
    """max 100, buffer 20: nothing up to 80, then a straight line to -1 at 100."""
    punished = rewards(OverlongPunishment(100, 20), 0, 80, 81, 85, 90, 100, 101)
    assert punished == [0, 0, -0.05, -0.25, -0.5, -1, -1]


def test_a_response_that_was_cut_off_is_punished_whole():
    """Whatever its length: the context may have ended before max_tokens."""
    assert rewards(OverlongPunishment(100, 20), 10, 100, finish="length") == [-1, -1]


@pytest.mark.parametrize(
    "made",
    [
        lambda: LengthVerifier(5, 5),
        lambda: LengthVerifier(-1, 5),
        lambda: OverlongPunishment(100, 0),
        lambda: OverlongPunishment(100, 101),
    ],
)
def test_what_cannot_be(made):
    with pytest.raises(RecipeError, match="wanted"):
        made()
    assert LengthVerifier(1, 2).probe(PROMPT) is OverlongPunishment(9, 9).probe(PROMPT) is None
