"""The public fake says what it was told, and complains when that cannot be."""

from __future__ import annotations

import pytest

from gspo.engines.base import Sampling
from gspo.engines.scripted import END_ID, ScriptedEngine, ScriptedResponse
from gspo.errors import DataError
from gspo.types import Prompt, Rollout

PROMPT = Prompt(id="sum", text="2 + 2", ids=[50, 43, 50])
ONE = Sampling(num_samples=1, max_tokens=4)


def answer(engine: ScriptedEngine, sampling: Sampling = ONE) -> Rollout:
    (group,) = engine.generate([PROMPT], sampling)
    return group.rollouts[0]


def test_text_is_spelled_as_bytes_with_an_end() -> None:
    rollout = answer(ScriptedEngine({"sum": ["é4"]}))
    assert rollout.response_ids == (0xC3, 0xA9, ord("4"), END_ID)
    assert rollout.engine_logp == (-1.0,) * 4
    assert (rollout.text, rollout.finish) == ("é4", "stop")


def test_ids_log_probs_and_finish_are_given_on_as_they_are() -> None:
    response = ScriptedResponse(ids=[9, 8], logp=[-0.25, None], text="x", finish="failed")
    rollout = answer(ScriptedEngine(lambda prompt, sample: response))
    assert (rollout.response_ids, rollout.engine_logp) == ((9, 8), (-0.25, None))
    assert (rollout.text, rollout.finish) == ("x", "failed")


def test_an_aborted_request_may_hold_nothing() -> None:
    aborted = ScriptedResponse(ids=[], logp=[], text="", finish="failed")
    assert answer(ScriptedEngine(lambda prompt, sample: aborted)).response_ids == ()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"sun": ["4"]}, "did you mean 'sun'"),
        ({"sum": []}, "has 0 scripted responses; sample 0"),
        ({"sum": ["12345"]}, "has 6 tokens, max_tokens is 4"),
        ({"sum": [ScriptedResponse(ids=[1, 2], logp=[-1.0], text="")]}, "2 tokens and 1 log-probs"),
    ],
)
def test_scripts_that_cannot_be_followed(script: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        answer(ScriptedEngine(script))
