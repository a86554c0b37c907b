"""The `verifier` section: what goes together, what is built, and the check on gold answers."""

from dataclasses import replace

import pytest

from gspo.errors import DataError, RecipeError, VerifierError
from gspo.recipes.judges import build_judges
from gspo.recipes.load import load_recipe, recipe_from, to_yaml
from gspo.types import Prompt
from gspo.verifiers.code import CodeSettings, CodeVerifier
from gspo.verifiers.math import MathSettings, MathVerifier
from gspo.verifiers.parts import WeightedParts
from gspo.verifiers.pool import num_workers
from gspo.verifiers.strict import StrictlyWatched
from gspo.verifiers.written import written

MATH = ["verifier.kind=math"]
PARTS = {
    "parts": [
        {"kind": "math", "weight": 1},
        {"kind": "format", "weight": 0.5, "tags": ["plan", "answer"]},
        {"kind": "overlong", "buffer_tokens": 16},
    ],
    "strict": "math",
}


def refused(*overrides):
    with pytest.raises(RecipeError) as caught:
        load_recipe("demo", overrides)
    return str(caught.value)


def with_verifier(section):
    return recipe_from({"data": {"task": "addition"}, "verifier": section})


def prompt(answer, **columns):
    return Prompt(id="p", text="?", ids=(1,), answer=answer, columns=columns)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["verifier.kind=regex"], "verifier.pattern is null, but verifier.kind is regex"),
        (["verifier.kind=length", "verifier.short_tokens=3"], "verifier.long_tokens is null"),
        (
            [*MATH, "verifier.marker='#'"],
            "verifier.marker goes with verifier.kind: exact, which is math",
        ),
        (
            ["verifier.answer_in=box"],
            "verifier.answer_in goes with verifier.kind: math, which is task",
        ),
        (["verifier.limit_s=2"], "goes with verifier.kind: function or math or code or regex"),
        (
            ["verifier.kind=overlong", "verifier.buffer_tokens=65"],
            "set it below the 64 of rollout.max_tokens",
        ),
        (["verifier.strict=strictly"], "wanted exact, math, file.py:name"),
        ([*MATH, "verifier.limit_s=0"], "wanted a number above 0"),
        (["verifier.kind=maths"], "verifier.kind is 'maths'"),
    ],
)
def test_what_does_not_go_together(overrides, words):
    assert words in refused(*overrides)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"parts": [{"kind": "math"}, {"kind": "math"}]}, "verifier.parts has math more than once"),
        ({"parts": [{"kind": "math"}], "kind": "exact"}, "verifier.kind goes with one verifier"),
        ({"parts": [{"kind": "regex"}]}, "verifier.parts.0.pattern is null"),
        ({"parts": [{"kind": "math", "tags": ["a"]}]}, "verifier.parts.0.tags goes with"),
        ({"parts": [{"kind": "task", "name": "strict"}]}, "a part named strict"),
        ({"parts": [{"kind": "math", "wieght": 2}]}, "wieght is not a setting"),
    ],
)
def test_parts_that_do_not_go_together(section, words):
    with pytest.raises(RecipeError, match=words):
        with_verifier(section)


def test_a_recipe_with_parts_is_written_and_read_again():
    recipe = with_verifier(PARTS)
    again = to_yaml(recipe)
    assert "buffer_tokens: 16" in again
    assert with_verifier(recipe.verifier.model_dump(mode="json")) == recipe


def test_the_sum_is_built_with_a_strict_grader_beside_it():
    judges = build_judges(with_verifier(PARTS), None)
    assert isinstance(judges.verifier, WeightedParts)
    assert isinstance(judges.together, StrictlyWatched)
    assert judges.check([prompt("1/3")]) == 1
    text = r"<plan>divide</plan><answer>\boxed{0.3333333}</answer>"
    (verdict,) = judges.together.judge(prompt("1/3"), [written(text)])
    assert verdict.reward == 1.5
    assert verdict.parts["math"] == verdict.parts["format"] == 1
    assert (verdict.parts["overlong"], verdict.parts["strict"]) == (0, 0)


def test_settings_of_maths_reach_it():
    recipe = load_recipe(
        "demo", [*MATH, "verifier.answer_in=hash", "verifier.exact_form=true", "verifier.limit_s=1"]
    )
    verifier = build_judges(recipe, None).verifier
    assert isinstance(verifier, MathVerifier)
    assert verifier.settings == MathSettings(place="hash", strict=True, limit_s=1.0)


def test_every_gold_answer_is_read_before_the_run():
    judges = build_judges(load_recipe("demo", MATH), None)
    bad = Prompt(id="the bad one", text="?", ids=(1,), answer="x + * 2")
    with pytest.raises(DataError, match="prompt the bad one"):
        judges.check([*[prompt("1")] * 50, bad])


def test_a_gold_answer_that_does_not_pass_stops_the_run():
    judges = build_judges(load_recipe("demo", ["verifier.kind=exact"]), None)
    with pytest.raises(VerifierError, match="gives the gold answer of prompt p the reward 0"):
        judges.check([prompt("1", gold="2")])


def test_a_function_runs_in_workers_when_it_has_a_limit(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def f(completion):\n    while completion == 'x': pass\n    return 1\n")
    recipe = with_verifier({"kind": "function", "function": f"{path}:f", "limit_s": 1})
    judges = build_judges(recipe, None)
    hung, fine = judges.verifier.judge(prompt("1"), [written("x"), written("y")])
    assert (hung.failure, fine.reward) == ("timeout: killed after 1 s", 1)
    assert len(judges.verifier_digest) == 64


def test_code_with_its_defaults_and_with_its_settings():
    judges = build_judges(with_verifier({"kind": "code", "sandbox": "kernel"}), None)
    assert isinstance(judges.verifier, CodeVerifier)
    assert judges.verifier.settings == replace(
        CodeSettings(), sandbox="kernel", num_workers=num_workers()
    )
    judges.verifier.close()
    section = {"kind": "code", "sandbox": "kernel", "limit_s": 2, "tests_pass": "share"}
    judges = build_judges(with_verifier(section), None)
    half = prompt("assert f(3) == 9\nassert f(2) == 4")
    (verdict,) = judges.verifier.judge(half, [written("```python\ndef f(x): return 9\n```")])
    assert (verdict.reward, verdict.parts["wrong"]) == (0.5, 1)
    assert judges.check([prompt("assert f(3) == 9", gold="def f(x): return x * x")]) == 1
    with pytest.raises(DataError, match="wanted assert lines"):
        judges.check([prompt(9)])
    judges.verifier.close()
