"""A user's function with a limit: the same verdicts, and a call that hangs costs only itself."""

import hashlib

import pytest

from gspo.errors import VerifierError
from gspo.types import Prompt, Verdict
from gspo.verifiers.function import FunctionVerifier, function_pool
from gspo.verifiers.loading import load_function
from gspo.verifiers.written import written

SOURCE = """
import os, time

def ours(prompt, completion, answer, tests):
    if completion == "spin":
        while True:
            pass
    if completion == "die":
        os._exit(0)
    if completion == "raise":
        raise KeyError(completion)
    print("chatter")
    return {"reward": completion == answer, "tests": len(tests)}

def trl(prompts, completions, answer, **kwargs):
    if "spin" in completions:
        time.sleep(1000)
    return [float(c == a) for c, a in zip(completions, answer)]

def verl(data_source, solution_str, ground_truth, extra_info=None):
    return float("nan") if solution_str == "nan" else solution_str == ground_truth
"""
PROMPT = Prompt(id="p", text="?", ids=(1,), answer="42", columns={"tests": ["a", "b"]})


@pytest.fixture
def limited(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    pools = []

    def make(name, limit_s=20.0):
        loaded = load_function(f"{path}:{name}")
        pools.append(function_pool(f"{path}:{name}", loaded.sha256, limit_s))
        return FunctionVerifier(loaded.function, name, pools[-1])

    yield make
    for pool in pools:
        pool.close()


def judge(verifier, *texts):
    return verifier.judge(PROMPT, [written(text) for text in texts])


def test_ours_with_a_hang_a_death_and_an_exception(limited):
    right, spin, die, raised, wrong = judge(
        limited("ours", limit_s=2.0), "42", "spin", "die", "raise", "41"
    )
    assert right == Verdict(1.0, {"tests": 2.0})
    assert wrong == Verdict(0.0, {"tests": 2.0})
    assert (spin.reward, spin.failure) == (None, "timeout: killed after 2 s")
    assert (die.reward, die.failure) == (None, "crash: its process died (exit code 0)")
    assert (raised.reward, raised.failure) == (None, "KeyError: 'raise'")


def test_trl_is_one_call_a_group(limited):
    verifier = limited("trl", limit_s=2.0)
    assert judge(verifier, "42", "41") == [Verdict(1.0), Verdict(0.0)]
    assert [v.failure for v in judge(verifier, "42", "spin")] == ["timeout: killed after 2 s"] * 2
    assert judge(verifier) == []


def test_verl_and_what_is_no_number(limited):
    right, bad = judge(limited("verl"), "42", "nan")
    assert right == Verdict(1.0)
    assert "wanted a finite number" in bad.failure


def test_columns_that_are_no_json_fail_their_call(limited):
    prompt = Prompt(id="p", text="?", ids=(1,), answer="42", columns={"tests": {1, 2}})
    (verdict,) = limited("ours").judge(prompt, [written("42")])
    assert verdict.failure.startswith("protocol: the job is not plain JSON")


def test_a_file_that_changed_is_refused(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    place = f"{path}:ours"
    pool = function_pool(place, hashlib.sha256(b"other").hexdigest(), 5.0)
    verifier = FunctionVerifier(load_function(place).function, "ours", pool)
    with pytest.raises(VerifierError, match="has changed since it was read"):
        judge(verifier, "42")
