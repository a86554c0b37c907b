"""`gspo lab worked` prints the article's numbers."""

import json

import pytest
from typer.testing import CliRunner

from gspo.cli import lab
from gspo.cli.main import build_app
from gspo.lab.worked import CURRENT_PROBS, SAMPLING_PROBS


def run(*options):
    return CliRunner().invoke(build_app(), ["lab", "worked", *options])


def test_the_defaults_are_the_articles():
    assert [float(text) for text in lab.SAMPLING.split(",")] == list(SAMPLING_PROBS)
    assert [float(text) for text in lab.CURRENT.split(",")] == list(CURRENT_PROBS)


def test_json_has_the_articles_numbers():
    report = json.loads(run("--json").stdout)
    assert report["token_ratios"] == pytest.approx([1.16, 0.75, 1.0, 1.25])
    assert report["s"] == pytest.approx(1.0212, abs=5e-5)
    assert report["gspo"]["positive"] == {"cut": True, "weights": [0, 0, 0, 0]}
    assert report["gspo"]["negative"]["weights"] == pytest.approx([-0.2553] * 4, abs=5e-5)
    assert report["grpo"]["positive"]["weights"] == pytest.approx([0.29, 0.1875, 0.25, 0])
    assert report["grpo"]["negative"]["weights"] == pytest.approx([-0.29, 0, -0.25, -0.3125])


def test_the_table_reads_like_the_article():
    lines = run().stdout.splitlines()
    assert lines[3].split() == ["1", "0.5", "0.58", "1.16", "0.29", "0", "-0.29", "-0.2553"]
    assert lines[-3:] == [
        "s = exp(mean log ratio) = exp(0.02097) = 1.0212",
        "gspo keeps s in [0.9997, 1.0004]: A=+1 cuts the response, A=-1 keeps the response",
        "grpo keeps each ratio in [0.8, 1.2]: A=+1 cuts token 4, A=-1 cuts token 2",
    ]


def test_other_ranges_decide_otherwise():
    lines = run("--high", "0.03", "--eps", "0.3").stdout.splitlines()
    assert lines[-2].endswith("A=+1 keeps the response, A=-1 keeps the response")
    assert lines[-1].endswith("A=+1 cuts no token, A=-1 cuts no token")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sampling", "0.5,x"], "wanted numbers with commas between"),
        (["--sampling", "0.5"], "1 sampling and 4 current probabilities"),
        (["--current", "0,1,1,1"], "current probability of token 1 is 0.0"),
        (["--low", "3"], "ClipRange.low is 3.0"),
    ],
)
def test_what_is_no_example(options, words):
    result = run(*options)
    assert result.exit_code == 2
    assert words in result.stderr
