"""What every verifier keeps to. A new verifier is one line in CASES."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from gspo.data.addition import Addition
from gspo.data.countdown import Countdown
from gspo.types import Prompt, Rollout
from gspo.verifiers.base import Verifier
from gspo.verifiers.code import CodeSettings, CodeVerifier
from gspo.verifiers.exact import ExactVerifier
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.math import MathVerifier
from gspo.verifiers.parts import Part, WeightedParts
from gspo.verifiers.strict import StrictlyWatched


@dataclass(frozen=True)
class Case:
    """A verifier, a prompt whose gold answer it can try, a right and a wrong response."""

    verifier: Verifier
    prompt: Prompt
    right: str
    wrong: str


def ours(completion, answer):
    return completion.rpartition(">")[2].strip() == answer


def trl(completions, answer, **kwargs):
    return [float(ours(c, a)) for c, a in zip(completions, answer, strict=True)]


def verl(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(ours(solution_str, ground_truth)), "length": len(solution_str)}


MADE = Addition().prompts("held_out", 1, seed=0)[0]
PUZZLE = Countdown().prompts("held_out", 1, seed=0)[0]
PROGRAM = "```python\ndef f(x): return x * x\n```\n"
CASES = {
    "ours": Case(FunctionVerifier(ours, "ours"), MADE, f"so >{MADE.answer}", ">1"),
    "trl": Case(FunctionVerifier(trl, "trl"), MADE, f"so >{MADE.answer}", ">1"),
    "verl": Case(FunctionVerifier(verl, "verl"), MADE, f"so >{MADE.answer}", ">1"),
    "exact": Case(ExactVerifier(marker=">"), MADE, f"so >{MADE.answer}", ">1"),
    "addition": Case(
        FunctionVerifier(Addition().reward, "addition"), MADE, MADE.columns["gold"], ">1"
    ),
    "watched": Case(
        StrictlyWatched(ExactVerifier(marker=">"), FunctionVerifier(ours, "ours")),
        MADE,
        f"so >{MADE.answer}",
        ">1",
    ),
    "math": Case(
        MathVerifier(), replace(MADE, columns={}), rf"so \boxed{{{MADE.answer}.0}}", r"\boxed{1}"
    ),
    "code": Case(
        CodeVerifier(CodeSettings(sandbox="kernel")),
        Prompt("f", "", (), "assert f(3) == 9", columns={"gold": PROGRAM}),
        f"So:\n{PROGRAM}",
        "```python\ndef f(x): return x\n```",
    ),
    "parts": Case(
        WeightedParts(
            (Part("right", ExactVerifier(marker=">")), Part("none", ExactVerifier(), 0.0))
        ),
        MADE,
        f"so >{MADE.answer}",
        ">1",
    ),
    "countdown": Case(
        FunctionVerifier(Countdown().reward, "countdown"), PUZZLE, PUZZLE.columns["gold"], "1"
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


def rollout(text, prompt_ids=(5,)):
    return Rollout(
        prompt_ids=prompt_ids,
        response_ids=(7, 1),
        trained=(True, True),
        engine_logp=(-0.5, -0.5),
        text=text,
        finish="stop",
        version=0,
    )


def rewards(case, texts, prompt=None):
    verdicts = case.verifier.judge(prompt or case.prompt, [rollout(text) for text in texts])
    return [verdict.reward for verdict in verdicts]


def test_it_is_a_verifier(case):
    assert isinstance(case.verifier, Verifier)


def test_one_verdict_a_rollout_in_order(case):
    texts = [case.right, "", case.wrong, "I don't know", case.right]
    assert rewards(case, texts) == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert rewards(case, texts[::-1]) == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert rewards(case, []) == []


def test_a_verdict_does_not_depend_on_its_neighbours(case):
    texts = [case.right, case.wrong, case.right, "", case.wrong]
    assert rewards(case, texts) == [rewards(case, [text])[0] for text in texts]


def test_a_scored_verdict_is_a_finite_float_without_a_failure(case):
    for verdict in case.verifier.judge(case.prompt, [rollout(case.right), rollout(case.wrong)]):
        assert type(verdict.reward) is float
        assert verdict.failure is None
        assert all(type(part) is float for part in verdict.parts.values())


def test_the_gold_answer_passes(case):
    verdict = case.verifier.probe(case.prompt)
    assert verdict is not None
    assert verdict.reward == 1.0


def test_the_response_alone_is_judged(case):
    """The prompt holds the right response, as an instruction or a few-shot example can."""
    leaking = f"Write like this: {case.right}\nQ: {case.prompt.text}"
    prompt = replace(case.prompt, text=leaking)
    assert rewards(case, ["", "I do not know", case.right], prompt) == [0.0, 0.0, 1.0]


def test_odd_text_is_judged_like_any_other(case):
    odd = [
        "\ud800",
        "\x00",
        "\ufeff",
        "9" * 5000,
        "(" * 5000,
        "\u202e>1",
        "<eos>",
        "__import__('os')",
    ]
    assert rewards(case, odd) == [0.0] * len(odd)


def test_it_works_from_threads(case):
    texts = [case.right, case.wrong, "", case.right]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: rewards(case, texts), range(8)))
    assert results == [[1.0, 0.0, 0.0, 1.0]] * 8


def test_what_it_is_given_stays_as_it_was(case):
    given = [rollout(case.right), rollout(case.wrong)]
    before = list(given)
    case.verifier.judge(case.prompt, given)
    assert given == before
    assert all(rollout.verdict is None for rollout in given)


# -- a broken verifier is no wrong answer


@pytest.mark.parametrize("kind", ["ours", "trl", "verl"])
def test_a_broken_verifier_gives_no_reward_and_shifts_none(kind):
    """Five responses, two of which it breaks on: five verdicts, each where it belongs."""

    def broken_ours(completion, answer):
        return ours(completion, answer) if completion else 1 / 0

    def broken_trl(completions, answer):
        return [float(ours(c, answer[0])) if c else None for c in completions]

    def broken_verl(solution_str, ground_truth):
        return broken_ours(solution_str, ground_truth)

    function = {"ours": broken_ours, "trl": broken_trl, "verl": broken_verl}[kind]
    texts = [f">{MADE.answer}", "", "I don't know", "", f">{MADE.answer}"]
    verdicts = FunctionVerifier(function, kind).judge(MADE, [rollout(text) for text in texts])
    assert [v.reward for v in verdicts] == [1.0, None, 0.0, None, 1.0]
    assert [v.failure is None for v in verdicts] == [True, False, True, False, True]
    assert all(v.failure for v in verdicts if v.reward is None)
