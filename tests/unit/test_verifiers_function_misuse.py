"""What a function may not do: return rewards without order, change its columns, be async."""

import functools

import pytest

from gspo.errors import RecipeError
from gspo.types import Prompt
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.written import written

PROMPT = Prompt(id="p", text="?", ids=(1,), answer="42", columns={"tests": ["t"]})


def judge(function, *texts):
    return FunctionVerifier(function, "mine").judge(PROMPT, [written(text) for text in texts])


@pytest.mark.parametrize("values", [{0.0, 1.0}, b"\1\0", frozenset({0.0, 1.0})])
def test_rewards_without_an_order_are_nobodys(values):
    verdicts = judge(lambda completions: values, "a", "b")
    assert [verdict.reward for verdict in verdicts] == [None, None]
    assert "wanted 2 rewards" in (verdicts[0].failure or "")


def test_a_function_cannot_change_the_columns_for_its_next_call():
    def mine(completion, tests):
        tests.append(completion)
        return float(len(tests))

    def trl(completions, tests):
        for own in tests:
            own.append("x")
        return [float(len(own)) for own in tests]

    assert [verdict.reward for verdict in judge(mine, "a", "b")] == [2, 2]
    assert [verdict.reward for verdict in judge(trl, "a", "b")] == [2, 2]
    assert PROMPT.columns == {"tests": ["t"]}


class AsyncJudge:
    async def __call__(self, completion):
        return 1.0


async def async_judge(completion):
    return 1.0


@pytest.mark.parametrize(
    "function", [async_judge, AsyncJudge(), functools.partial(async_judge), AsyncJudge().__call__]
)
def test_an_async_function_is_refused_at_once(function):
    with pytest.raises(RecipeError, match="async"):
        FunctionVerifier(function, "mine")
