"""The maths verifier: every handed pair and more of their kind, hostile answers, and what a verdict
says."""

import asyncio
import csv
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gspo.errors import DataError
from gspo.types import Prompt
from gspo.verifiers.math import MathSettings, MathVerifier
from gspo.verifiers.written import written
from tests import loops

CASES = Path(__file__).parent.parent / "cases"
PAIRS = [
    row
    for name in ("math_pairs.tsv", "math_pairs_more.tsv")
    for row in csv.DictReader(
        (CASES / name).open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE
    )
]
ALSO_EQUAL = [
    *(("115000", form) for form in (r"115\,000", r"115\!,000")),
    *(("1200000", form) for form in ("1.2e6", "1.2*10^{6}", r"1.2 \cdot 10^6")),
    *(("E", form) for form in ("(E)", "E.", r"\textbf{(E)}", "E: option text")),
    *((r"45^\circ", form) for form in ("45°", "45")),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\\\end{bmatrix}"),
    (r"\text{odd}", "Odd"),
    (r"\frac13", "0.3333333"),
    (r"\{1,2\}", r"\boxed{\left\{1,2\right\}}"),
]
ALSO_DIFFERENT = [
    (r"\text{odd}", "even"),
    ("5", "x=5 or x=6"),
    (r"\pi", "22/7"),
    ("4", r"4\sqrt(2)"),
    ("2,3", r"\boxed{2} and \boxed{3}"),
]


def prompt(answer):
    return Prompt(id="p", text="?", ids=(1,), answer=answer)


@pytest.fixture(scope="module")
def verifier():
    made = MathVerifier()
    yield made
    made.close()


def judge(verifier, gold, *texts):
    return verifier.judge(prompt(gold), [written(text) for text in texts])


def reward(verifier, gold, text):
    return judge(verifier, gold, text)[0].reward


@pytest.mark.parametrize("pair", PAIRS, ids=[pair["id"] for pair in PAIRS])
def test_pairs(verifier, pair):
    expected = float(pair["equal"] == "true")
    assert reward(verifier, pair["gold"], pair["answer"]) == expected, pair["note"]


@pytest.mark.parametrize("pair", PAIRS, ids=[pair["id"] for pair in PAIRS])
def test_pairs_the_other_way_round(verifier, pair):
    """Where the answer is a bare one, gold and answer may change places."""
    if any(
        mark in pair["answer"] for mark in ("\\boxed", "nswer", "fbox", "know", "####", "4 10/3")
    ):
        return
    gold = pair["gold"].replace(r"\boxed", "")
    assert reward(verifier, pair["answer"], rf"\boxed{{{gold}}}") == float(pair["equal"] == "true")


@pytest.mark.parametrize(("gold", "answer"), ALSO_EQUAL)
def test_other_ways_to_write_it(verifier, gold, answer):
    assert reward(verifier, gold, answer) == 1


@pytest.mark.parametrize(("gold", "answer"), ALSO_DIFFERENT)
def test_what_is_not_the_same(verifier, gold, answer):
    assert reward(verifier, gold, answer) == 0


# -- verdicts


def test_a_verdict_says_what_was_missing(verifier):
    no_answer, right, wrong, unread = judge(
        verifier,
        "x^2",
        "It is\nnot known.",
        r"\boxed{x\cdot x}",
        r"\boxed{7}",
        r"\boxed{x^2 + \cdot}",
    )
    assert (no_answer.reward, no_answer.parts["no_answer"]) == (0, 1)
    assert (right.reward, wrong.reward) == (1, 0)
    assert set(right.parts.values()) == set(wrong.parts.values()) == {0.0}
    assert (unread.reward, unread.parts["unread"]) == (0, 1)


def test_one_verdict_a_response_in_order(verifier):
    texts = ["", r"\boxed{42}", "I don't know", r"\boxed{41}", r"\boxed{42.0}"]
    assert [v.reward for v in judge(verifier, "42", *texts)] == [0, 1, 0, 0, 1]
    assert judge(verifier, "42") == []


def test_place_and_all_boxes():
    hashes = MathVerifier(MathSettings(place="hash"))
    assert judge(hashes, "42", "The answer is 42")[0].parts["no_answer"] == 1
    assert reward(hashes, "42", "2+40=42\n#### 42\n" + "So it is. " * 50) == 1
    every = MathVerifier(MathSettings(all_boxes=True))
    assert reward(every, "2,3", r"\boxed{2} and \boxed{3}") == 1
    assert reward(every, "1", r"answer \boxed{1}. Indeed \boxed{1}.") == 1


@pytest.mark.parametrize(
    ("gold", "answer", "strict"),
    [
        ("1/3", "0.3333333", 0),
        ("0.25", "1/4", 1),
        ("5 cm", "5", 0),
        (r"28\%", "28", 0),
        ("5 cm", "5cm", 1),
    ],
)
def test_strict(gold, answer, strict):
    verifier = MathVerifier(MathSettings(strict=True))
    assert reward(verifier, gold, answer) == strict
    assert reward(MathVerifier(), gold, answer) == 1


@pytest.mark.parametrize(
    ("gold", "text", "expected"),
    [
        ("5", r"<think> maybe \boxed{5}, let me check", 0),
        ("5", r"<think>a</think>\boxed{5}<think>no, \boxed{7}", 1),
        ("7", "<think>\\boxed{5}</think>\nThe answer is 7.", 1),
        ("42", "#### Final Answer\n42", 1),
        ("42", "#### Step 3: add\n2+40=42\nThe answer is 42.", 1),
        ("Friday", "So:\n#### Friday\nGood.", 1),
    ],
)
def test_thinking_and_headings(verifier, gold, text, expected):
    assert reward(verifier, gold, text) == expected


# -- gold answers


@pytest.mark.parametrize(
    "gold", ["", "  ", r"\frac{1}{", "???", r"\boxed{", r"\boxed{}", None, True, [1], "x + * 2"]
)
def test_a_gold_answer_that_cannot_be_read_is_a_data_error(verifier, gold):
    with pytest.raises(DataError, match="prompt p has the answer"):
        verifier.check(prompt(gold))


def test_gold_answers_are_checked_together(verifier):
    fine = [
        42,
        0.5,
        "x^2",
        r"f(x)=x+1",
        r"so \boxed{7}",
        "#### 3",
        r"5^{5^{5^5}}",
        "no real solutions",
    ]
    verifier.check_all([prompt(gold) for gold in fine])
    bad = Prompt(id="the bad one", text="?", ids=(), answer="x + * 2")
    with pytest.raises(DataError, match="prompt the bad one"):
        verifier.check_all([*[prompt(gold) for gold in fine], bad])


@pytest.mark.parametrize("place", ["any", "box", "tag", "hash", "phrase", "bare"])
def test_the_gold_answer_passes_wherever_it_is_looked_for(place):
    verifier = MathVerifier(MathSettings(place=place))
    assert verifier.probe(prompt(r"\frac{1}{2}")).reward == 1


# -- hostile answers

HOSTILE = {
    "tower": r"\boxed{9^{9^{9^9}}}",
    "five": r"\boxed{5^{5^{5^{5^5}}}}",
    "letters": r"\boxed{x^{x^{x^{x^{x}}}}}",
    "e tower": r"\boxed{e^{e^{e^{e^{9}}}}}",
    "factorial": r"\boxed{(10^9)!}",
    "double factorial": r"\boxed{(15!)!}",
    "factorials": r"\boxed{n!!!!!!!!}",
    "binomial": r"\boxed{\binom{999999}{500000}}",
    "digits": "9" * 200_000,
    "boxed digits": r"\boxed{" + "9" * 200_000 + "}",
    "fractions": r"\frac{" * 100_000,
    "boxed fractions": r"\boxed{" + r"\frac{" * 100_000,
    "nested fractions": r"\boxed{" + r"\frac{1}{1+" * 150 + "x" + "}" * 150 + "}",
    "unclosed": r"\boxed{" + "x" * 1_000_000,
    "boxes": r"\boxed{" * 100_000,
    "parentheses": "(" * 50_000,
    "braces": r"\boxed{" + "{" * 900 + "1" + "}" * 900 + "}",
    "no blanks": "a" * 1_000_000,
    "bars": r"\boxed{" + "|" * 400 + "x}",
    "signs": r"\boxed{" + "-" * 1900 + "1}",
    "powers": r"\boxed{" + "x^" * 200 + "2}",
    "sum": r"\boxed{\sum_{k=1}^{10^{12}} \frac{1}{k}}",
    "integral": r"\boxed{\int_0^1 \sin(x^x)\,dx}",
    "expansion": r"\boxed{(x+1)^{999}(x-1)^{998}}",
    "sines": r"\boxed{\sin(\sin(\sin(\sin(x^{99}))))}",
    "list": r"\boxed{" + "x," * 900 + "y}",
    "roots": r"\boxed{" + r"\sqrt{" * 300 + "2" + "}" * 300 + "}",
    "import": r"\boxed{__import__('os').system('touch CANARY')}",
    "classes": r"\boxed{[].__class__.__base__.__subclasses__()}",
    "open": r"\boxed{open('CANARY','w')}",
    "lambda": r"\boxed{(lambda:open('CANARY','w'))()}",
    "input": r"\boxed{\input{/etc/passwd}}",
    "write": r"\boxed{\write18{touch CANARY}}",
    "units": r"\boxed{2 " + "m^2 " * 150 + "q!}",
    "unit letters": r"\boxed{2 " + "m h " * 200 + "q!}",
    "bidi": "\u202e24\u202c",
    "other digits": "٤٢",
    "surrogate": "\\boxed{\ud800}",
    "nul": "\\boxed{4\x002}",
    "zero width": "\u200b" * 100_000,
}


@pytest.mark.parametrize("gold", ["42", "x^2+1", r"\sqrt{2}"])
def test_hostile_answers_are_wrong_and_cost_little(verifier, gold, tmp_path):
    canary = tmp_path / "canary"
    texts = [text.replace("CANARY", str(canary)) for text in HOSTILE.values()]
    verdicts = dict(zip(HOSTILE, judge(verifier, gold, *texts), strict=True))
    assert {name: v.reward for name, v in verdicts.items()} == dict.fromkeys(HOSTILE, 0.0)
    assert {name for name, v in verdicts.items() if v.parts["timeout"]} == set()
    assert not canary.exists()
    assert reward(verifier, r"\frac{x+2}{7}", r"\boxed{\frac{x}{7}+\frac{2}{7}}") == 1


def test_what_exceeds_the_limit_is_wrong_and_the_pool_goes_on():
    """A limit that no comparison in a worker can keep: the answer's fault, never the verifier's."""
    verifier = MathVerifier(MathSettings(limit_s=1e-9))
    answers = [rf"\boxed{{(x+{k})(x+1)}}" for k in range(6)]
    golds = r"x^2+3x+2"
    start = time.process_time()
    verdicts = judge(verifier, golds, *answers)
    assert time.process_time() - start < 10
    assert [v.reward for k, v in enumerate(verdicts) if k != 2] == [
        0
    ] * 5  # refuted without a worker
    verifier.close()


# -- wherever it is called


def test_threads_event_loop_and_subprocess(verifier):
    pair = (r"\frac{x+2}{7}", r"\boxed{\frac{x}{7}+\frac{2}{7}}")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: reward(MathVerifier(), *pair), range(4))) == [1] * 4

    async def in_a_loop():
        return reward(verifier, *pair), await asyncio.to_thread(reward, verifier, *pair)

    assert loops.run(in_a_loop()) == (1, 1)
    script = f"""
from gspo.types import Prompt
from gspo.verifiers.math import MathVerifier
from gspo.verifiers.written import written
print(MathVerifier().judge(Prompt(id="p", text="?", ids=(), answer={pair[0]!r}), [written({pair[1]!r})])[0].reward)
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert run.stdout == "1.0\n", run.stderr


# -- the worker evaluates no text


def test_a_worker_compiles_no_text_and_starts_nothing(tmp_path):
    script = """
import json, os, subprocess, sys
from gspo.verifiers import math_worker
judge = math_worker.prepare(None)
compiled = []
sys.addaudithook(lambda event, args: compiled.append(str(args[1])) if event == "compile" else None)
pairs = [("x+1.5", "1.5+x"), ("f(1,234)", "f(2)"), ("3", "__import__('os')"), ("2.5x", "x*5/2")]
equal = [judge({"gold": g, "answer": a, "strict": False})["equal"] for g, a in pairs]
refused = []
for name, call in {
    "eval": lambda: eval("1+1"), "system": lambda: os.system("true"),
    "process": lambda: subprocess.run(["true"]), "write": lambda: open("x", "w"),
}.items():
    try:
        call()
    except PermissionError:
        refused.append(name)
print(json.dumps([equal, [name for name in compiled if name.startswith("<")][:1], refused]))
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    equal, texts_compiled, refused = json.loads(run.stdout.splitlines()[-1])
    assert equal == [True, False, False, True]
    assert refused == ["eval", "system", "process", "write"]
    assert texts_compiled in ([], ["<string>"])  # only our own `eval` above
