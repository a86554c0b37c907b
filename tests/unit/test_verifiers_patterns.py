"""Regular expressions and sections in tags."""

import pytest

from gspo.errors import RecipeError
from gspo.types import Prompt
from gspo.verifiers.patterns import FormatVerifier, RegexVerifier
from gspo.verifiers.written import written

PROMPT = Prompt(id="p", text="?", ids=(1,))


def rewards(verifier, *texts, prompt=PROMPT):
    return [v.reward for v in verifier.judge(prompt, [written(text) for text in texts])]


def test_a_pattern_is_searched_and_a_dot_is_any_character():
    verifier = RegexVerifier("a.b$")
    assert rewards(verifier, "a\nb", "xa-b", "a-bx", "") == [1, 1, 0, 0]
    assert verifier.probe(PROMPT) is None
    verifier.close()


def test_a_pattern_that_never_ends_is_the_patterns_fault():
    verifier = RegexVerifier("(a+)+$", limit_s=0.5)
    slow, fine = verifier.judge(PROMPT, [written("a" * 60 + "b"), written("aaa")])
    assert (slow.reward, slow.failure) == (None, "timeout: killed after 0.5 s")
    assert fine.reward == 1
    verifier.close()


def test_what_is_no_pattern():
    with pytest.raises(RecipeError, match="is no regular expression"):
        RegexVerifier("(")


GOOD = "<think>so</think>\n<answer>42</answer>"


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (GOOD, 1),
        (f"  {GOOD}\n", 1),
        ("<think>\nso\n</think><answer>4 < 5</answer>", 1),
        ("<answer>42</answer><think>so</think>", 0),
        ("<think>so</think>", 0),
        ("<think>so<answer>42</answer></think>", 0),
        ("<think> </think><answer>42</answer>", 0),
        (f"{GOOD}{GOOD}", 0),
        (f"Well: {GOOD}", 0),
        (f"{GOOD} Done.", 0),
        ("<think>so</think>between<answer>42</answer>", 0),
        ("</think><think>so<answer>42</answer>", 0),
        ("", 0),
        ("<think>" * 100_000, 0),
    ],
)
def test_sections(text, reward):
    assert rewards(FormatVerifier(), text) == [reward]


def test_a_prompt_may_open_the_first_section():
    opened = Prompt(id="p", text="Q: ?\n<think>\n", ids=(1,))
    assert rewards(FormatVerifier(), GOOD[len("<think>") :], GOOD, prompt=opened) == [1, 0]
    assert rewards(FormatVerifier(), GOOD[len("<think>") :]) == [0]


def test_other_tags():
    assert rewards(FormatVerifier(("plan",)), "<plan>x</plan>", GOOD) == [1, 0]
    for tags in ((), ("a b",), ("<",)):
        with pytest.raises(RecipeError, match="wanted names"):
            FormatVerifier(tags)
