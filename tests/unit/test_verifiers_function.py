"""Three signatures, every kind of return value, and everything a function can raise."""

import functools
import sys

import numpy as np
import pytest
import torch

from gspo.errors import DataError, RecipeError
from gspo.types import Prompt, Rollout, Verdict
from gspo.verifiers.contained import contained
from gspo.verifiers.function import FunctionVerifier, verdict_of

PROMPT = Prompt(
    id="p", text="What is 6*7?", ids=(1,), answer="42", source="sums", columns={"tests": ["t"]}
)
MESSAGES = [{"role": "user", "content": "What is 6*7?"}]


def rollouts(*texts):
    return [
        Rollout((1,), (k, 9), (True,) * 2, (None,) * 2, t, "stop", 0) for k, t in enumerate(texts)
    ]


def judge(function, *texts, prompt=PROMPT):
    return FunctionVerifier(function, "mine").judge(prompt, rollouts(*texts))


def seen(function_of, prompt=PROMPT, texts=("a", "b")):
    """Every call's arguments, by a function made from `function_of(calls)`."""
    calls = []
    judge(function_of(calls), *texts, prompt=prompt)
    return calls


# -- the three signatures


def test_our_form_gets_text_and_the_columns_it_asks_for():
    def of(calls):
        def mine(prompt, completion, answer, tests, unused="default"):
            calls.append((prompt, completion, answer, tests, unused))
            return 1.0

        return mine

    asked = "What is 6*7?"
    assert seen(of) == [(asked, "a", "42", ["t"], "default"), (asked, "b", "42", ["t"], "default")]


def test_our_form_with_kwargs_gets_all_columns():
    def of(calls):
        return lambda completion, **columns: calls.append((completion, columns))

    columns = {"prompt": "What is 6*7?", "answer": "42", "tests": ["t"]}
    assert seen(of) == [("a", columns), ("b", columns)]


def test_trl_form_gets_the_group_in_one_call_as_lists():
    def of(calls):
        def trl(prompts, completions, **kwargs):
            calls.append((prompts, completions, kwargs))
            return [1.0, 0.0]

        return trl

    ((prompts, completions, kwargs),) = seen(of)
    assert prompts == ["What is 6*7?"] * 2
    assert completions == ["a", "b"]
    assert kwargs == {
        "completion_ids": [[0, 9], [1, 9]],
        "answer": ["42", "42"],
        "tests": [["t"], ["t"]],
    }


def test_trl_form_gets_conversations_as_trl_passes_them():
    def of(calls):
        def trl(completions, answer):
            calls.append([c[0]["content"] == a for c, a in zip(completions, answer, strict=True)])
            return calls[-1]

        return trl

    prompt = Prompt(id="p", text="<user>What is 6*7?", ids=(1,), answer="42", messages=MESSAGES)
    assert seen(of, prompt, ("41", "42")) == [[False, True]]


def test_verl_form_gets_source_answer_and_extra_info():
    def of(calls):
        def compute_score(data_source, solution_str, ground_truth, extra_info=None):
            calls.append((data_source, solution_str, ground_truth, extra_info))
            return {"score": 1.0, "acc": True, "pred": solution_str}

        return compute_score

    assert seen(of) == [
        ("sums", "a", "42", {"tests": ["t"]}),
        ("sums", "b", "42", {"tests": ["t"]}),
    ]
    columns = {"data_source": "openai/gsm8k", "extra_info": {"index": 3}}
    prompt = Prompt(id="p", text="?", ids=(1,), answer="42", columns=columns)
    assert seen(of, prompt, ("a",)) == [("openai/gsm8k", "a", "42", {"index": 3})]


def test_verls_own_scorers_take_only_two_of_the_four():
    def compute_score(solution_str, ground_truth, method="strict"):
        return float(solution_str == ground_truth and method == "strict")

    assert judge(compute_score, "42", "41") == [Verdict(1.0), Verdict(0.0)]


def test_methods_partials_and_callable_objects_are_functions():
    class Scorer:
        def __call__(self, completion, answer):
            return completion == answer

        def score(self, completion, answer):
            return completion == answer

    def with_scale(completion, answer, scale):
        return scale * (completion == answer)

    for function in (Scorer(), Scorer().score, functools.partial(with_scale, scale=1)):
        assert judge(function, "42", "41") == [Verdict(1.0), Verdict(0.0)]


@pytest.mark.parametrize(
    "function",
    [
        lambda: 1.0,
        lambda text: 1.0,
        lambda prompt, response: 1.0,
        lambda *args, **kwargs: 1.0,
        lambda completion, completions: 1.0,
        lambda completion, solution_str: 1.0,
        lambda completion, /: 1.0,
    ],
)
def test_another_signature_is_refused_and_the_three_are_listed(function):
    with pytest.raises(RecipeError) as error:
        FunctionVerifier(function, "mine")
    for part in ("verifier mine has the parameters (", "(prompt, completion, **columns)"):
        assert part in str(error.value)
    assert "TRL's (prompts, completions, **columns)" in str(error.value)
    assert "verl's (data_source, solution_str, ground_truth, extra_info)" in str(error.value)


# -- columns, before anything is generated


def test_a_missing_column_is_named_before_generation():
    def mine(completion, answer, unit_tests):
        return 1.0

    verifier = FunctionVerifier(mine, "mine")
    message = r"verifier mine needs \['unit_tests'\], which prompt p has not; its columns are \['answer', 'tests'\]"
    with pytest.raises(DataError, match=message):
        verifier.check(PROMPT)
    with pytest.raises(DataError, match=message):
        verifier.probe(PROMPT)
    (verdict,) = verifier.judge(PROMPT, rollouts("a"))
    assert verdict.reward is None
    assert "unit_tests" in (verdict.failure or "")


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (lambda completion, answer: 1.0, "answer"),
        (lambda completions, answer: 1.0, "answer"),
        (lambda completions, trainer_state: 1.0, "trainer_state"),
        (lambda solution_str, ground_truth: 1.0, "ground_truth"),
        (lambda solution_str, ground_truth, tests: 1.0, "tests"),
    ],
)
def test_a_prompt_without_answer_is_named_in_every_form(function, missing):
    with pytest.raises(DataError, match=missing):
        FunctionVerifier(function, "mine").check(Prompt(id="p", text="?", ids=(1,)))


@pytest.mark.parametrize(
    ("function", "column"),
    [
        (lambda completion: 1.0, "completion"),
        (lambda completion: 1.0, "prompt"),
        (lambda completion: 1.0, "answer"),
        (lambda completions: 1.0, "completions"),
        (lambda completions: 1.0, "completion_ids"),
        (lambda solution_str: 1.0, "ground_truth"),
    ],
)
def test_a_column_with_a_name_of_ours_is_an_error(function, column):
    prompt = Prompt(id="p", text="?", ids=(1,), answer="42", columns={column: "x"})
    with pytest.raises(DataError, match=rf"the data has columns \['{column}'\].*rename"):
        FunctionVerifier(function, "mine").check(prompt)


def test_the_gold_response_is_tried_when_there_is_one():
    def mine(completion, answer):
        return completion.endswith(f"> {answer}")

    verifier = FunctionVerifier(mine, "mine")
    assert verifier.probe(PROMPT) is None
    for gold, reward in (("so > 42", 1.0), ("42", 0.0)):
        prompt = Prompt(id="p", text="?", ids=(1,), answer="42", columns={"gold": gold})
        assert verifier.probe(prompt) == Verdict(reward)


# -- what it returns


@pytest.mark.parametrize(
    ("value", "reward"),
    [
        (1, 1.0),
        (True, 1.0),
        (False, 0.0),
        (-0.5, -0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.bool_(True), 1.0),
        (np.array(0.25), 0.25),
        (torch.tensor(0.5), 0.5),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
        (torch.tensor(True), 1.0),
        (torch.tensor(0.5, requires_grad=True), 0.5),
    ],
)
def test_numbers_of_every_kind(value, reward):
    (verdict,) = judge(lambda completion: value, "a")
    assert verdict == Verdict(reward)
    assert type(verdict.reward) is float
    assert judge(lambda completions: [value], "a") == [Verdict(reward)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "returned None, wanted a finite number"),
        (float("nan"), "returned nan"),
        (float("inf"), "returned inf"),
        (np.float64("-inf"), "returned np.float64(-inf)"),
        (torch.tensor(float("nan")), "returned tensor(nan)"),
        ("1.0", "returned '1.0'"),
        (b"1", "returned b'1'"),
        ([1.0], "returned [1.0]"),
        (np.array([1.0]), "returned array"),
        (torch.tensor([1.0]), "returned tensor"),
        (1j, "returned 1j"),
        (np.array("1.0"), "returned array('1.0'"),
        (10**400, "wanted a finite number of at most 1e100"),
        ({}, "returned {}, without 'reward' or 'score'"),
        ({"acc": 1.0}, "without 'reward' or 'score'"),
        ({"score": None}, "returned None"),
        ({"reward": {"score": 1.0}}, "returned {'score': 1.0}"),
        ("x" * 10**6, "returned 'xxxx"),
    ],
)
def test_what_is_no_number_fails_with_a_reason(value, reason):
    (verdict,) = judge(lambda completion: value, "a")
    assert verdict.reward is None
    assert reason in (verdict.failure or "")
    assert len(verdict.failure or "") < 200


def test_a_dict_has_parts():
    value = {"score": True, "format": np.float32(0.5), "pred": "42", "bad": float("nan"), 3: 1}
    assert verdict_of(value) == Verdict(1.0, {"format": 0.5, "3": 1.0})
    assert verdict_of({"score": 0.25, "reward": 1}) == Verdict(1.0, {"score": 0.25})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "returned None, wanted 3 rewards"),
        (1.0, "returned 1.0, wanted 3 rewards"),
        ("abc", "returned 'abc', wanted 3 rewards"),
        ({"reward": 1, "b": 2, "c": 3}, "wanted 3 rewards"),
        ([], "returned 0 rewards for 3 responses"),
        ([1.0, 1.0], "returned 2 rewards for 3 responses"),
        ([1.0] * 4, "returned 4 rewards for 3 responses"),
        (iter([1.0] * 3), "wanted 3 rewards"),
    ],
)
def test_trl_form_of_the_wrong_length_fails_the_group(value, reason):
    verdicts = judge(lambda completions: value, "a", "b", "c")
    assert [v.reward for v in verdicts] == [None] * 3
    assert all(reason in (v.failure or "") for v in verdicts)


def test_trl_form_with_one_bad_reward_fails_that_response_only():
    for values in ([1.0, None, 0.0], (1.0, float("nan"), 0), np.array([1.0, np.nan, 0.0])):
        verdicts = judge(lambda completions, values=values: values, "a", "b", "c")
        assert [v.reward for v in verdicts] == [1.0, None, 0.0]


def test_trl_form_is_not_called_for_no_responses():
    calls = []

    def trl(completions):
        calls.append(completions)
        return []

    assert judge(trl) == []
    assert calls == []


# -- what it raises


class SilentError(Exception):
    def __str__(self):
        raise ValueError("no message")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no box"), "ValueError: no box"),
        (KeyError("tests"), "KeyError: 'tests'"),
        (AssertionError(), "AssertionError"),
        (SystemExit(0), "SystemExit: 0"),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError"),
        (SilentError(), "SilentError"),
        (ValueError("x" * 10**6), "ValueError: xxx"),
    ],
)
def test_raising_fails_that_response_and_no_other(error, reason):
    def mine(completion):
        if completion == "bad":
            raise error
        return 1.0

    first, bad, last = judge(mine, "a", "bad", "c")
    assert (first, last) == (Verdict(1.0), Verdict(1.0))
    assert bad.reward is None
    assert reason in (bad.failure or "")
    assert len(bad.failure or "") <= 500


def test_raising_in_trl_form_fails_the_call():
    verdicts = judge(lambda completions: 1 / 0, "a", "b")
    assert verdicts == [Verdict.failed("ZeroDivisionError: division by zero")] * 2


def test_recursion_without_end_is_contained():
    def mine(completion):
        return mine(completion)

    (verdict,) = judge(mine, "a")
    assert "RecursionError" in (verdict.failure or "")
    assert sys.getrecursionlimit() >= 1000


def test_an_interrupt_passes_through():
    def mine(completion):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(mine, "a")


def test_contained_keeps_the_error():
    with contained() as caught:
        raise ValueError("x")
    assert caught.reason == "ValueError: x"
    with contained() as caught:
        pass
    assert caught.error is None
