"""`gspo lab clip-range`, `gradient` and `noise`: one object, tables, pictures, refusals."""

import json
from functools import partial
from inspect import signature

import pytest
from typer.testing import CliRunner

from gspo.cli import lab as cli
from gspo.cli.main import build_app
from gspo.lab import clip_range, gradient, noise, toy
from gspo.settings import PAPER_CLIP

CLIP_RANGE = ("clip-range", "--length", "16", "--length", "64", "--responses", "500")
GRADIENT = ("gradient", "--length", "8", "--sigma", "0.1")
NOISE = ("noise", "--length", "4", "--sigma", "0", "--sigma", "0.3", "--seeds", "2")
NOISE_PAIR = (*NOISE, "--objective", "gspo", "--objective", "grpo")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(toy, "Toy", partial(toy.Toy, steps=2))


def test_the_defaults_are_those_of_the_lab():
    """The command line writes them down again, as it does not import torch."""
    defaults = {
        name: option.default for name, option in signature(cli.clip_range).parameters.items()
    }
    assert defaults["responses"] == clip_range.NUM_RESPONSES
    assert defaults["clip"] == f"{PAPER_CLIP.low},{PAPER_CLIP.high}"
    fair = clip_range.LENGTH_FAIR
    assert defaults["length_fair"] == f"{fair.low},{fair.high}"
    assert signature(cli.gradient).parameters["length"].default == gradient.LENGTH
    assert signature(cli.noise).parameters["seeds"].default == noise.SEEDS


def run(*arguments):
    return CliRunner().invoke(build_app(), ["lab", *arguments])


def report(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def test_clip_range_gives_the_columns_that_are_stable():
    found = report(*CLIP_RANGE, "--sigma", "0.1", "--sigma", "0.01")
    stable = {
        "length",
        "sigma",
        "token_spread",
        "log_s_spread",
        "token_outside",
        "response_outside",
    }
    assert [(row["length"], row["sigma"]) for row in found["rows"]] == [
        (16, 0.1), (64, 0.1), (16, 0.01), (64, 0.01),
    ]  # fmt: skip
    for row in found["rows"]:
        assert stable <= set(row)
        assert row["log_s_spread"] == pytest.approx(row["exact"]["log_s_spread"], rel=0.15)
    assert found["outlier"]["log_s_shift"] == pytest.approx(0.046, abs=1e-4)
    assert found["clip"]["fixed"] == [3e-4, 4e-4]


def test_bias_outliers_and_ranges_are_options():
    options = ("--bias", "0.5", "--outliers", "2", "--clip", "0.1,0.2", "--length-fair", "1,2")
    found = report(*CLIP_RANGE, *options)
    assert found["clip"] == {"token": [0.2, 0.27], "fixed": [0.1, 0.2], "length_fair": [1.0, 2.0]}
    assert {(row["bias"], row["outliers"]) for row in found["rows"]} == {(0.5, 2)}
    assert found["rows"][0]["response_outside"] == 1.0


def test_clip_range_for_people():
    lines = run(*CLIP_RANGE).stdout.splitlines()
    assert lines[2] == "sigma 0.1, bias 0, outlier tokens 0"
    assert lines[3].split()[:4] == ["length", "token", "spread", "log"]
    assert "(0.0250)" in lines[4]
    assert lines[-1] == "One token that goes from 0.001 to 0.1 moves log s of 100 tokens by 0.046."


def test_noise_gives_the_columns_that_are_stable():
    found = report(*NOISE_PAIR)
    stable = {"objective", "length", "sigma", "clip", "accuracy", "interval", "cut_share", "seeds"}
    assert len(found["rows"]) == 6
    assert all(stable <= set(row) for row in found["rows"])
    first, _, grpo = found["rows"][:3]
    assert first["clip"] == [0.0225, 0.03]
    assert grpo["minus_grpo"] is None
    assert first["minus_grpo"]["mean"] == pytest.approx(first["accuracy"] - grpo["accuracy"])


def test_noise_knows_every_objective_and_what_the_article_leaves_open():
    found = report(
        *NOISE, "--std", "unbiased", "--draw", "without", "--mix", "even", "--initial", "0.1"
    )
    assert len(found["rows"]) == 20
    open_choices = {name: found[name] for name in ("std", "draw", "mix", "initial")}
    assert open_choices == {"std": "unbiased", "draw": "without", "mix": "even", "initial": 0.1}
    assert [row["clip"] for row in found["rows"] if row["objective"] == "sapo"] == [None, None]


def test_noise_for_people_shows_progress_apart():
    result = run(*NOISE_PAIR)
    assert result.stdout.splitlines()[1].startswith("gspo       0.0225, 0.03 ")
    assert "lab noise 2/2" in result.stderr
    assert "lab noise" not in result.stdout


def test_gradient_says_that_gspo_does_not_rotate():
    found = report(*GRADIENT)
    for row in found["rows"]:
        if row["objective"] == "gspo" and row["cosine"] is not None:
            assert row["cosine"] == pytest.approx(1.0, abs=1e-12)
        if row["objective"] == "grpo":
            assert row["cosine"] < 1.0
            assert row["cosine_limit"] < 1.0
    lines = run(*GRADIENT).stdout.splitlines()
    assert lines[2].split()[:5] == ["objective", "clip", "A", "sigma", "cosine"]


@pytest.mark.parametrize(
    "arguments", [CLIP_RANGE, GRADIENT, NOISE_PAIR], ids=lambda words: words[0]
)
def test_a_picture_is_one_page_that_needs_nothing_else(arguments, tmp_path):
    picture = tmp_path / "picture.html"
    assert report(*arguments, "--picture", str(picture))["picture"] == str(picture)
    text = picture.read_text(encoding="utf-8")
    assert "Plotly.newPlot" in text
    assert 'src="http' not in text


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("clip-range", "--clip", "1"), 2, "wanted LOW,HIGH"),
        (("clip-range", "--clip", "2,1"), 2, "ClipRange.low is 2.0"),
        (("clip-range", "--sigma", "-1"), 2, "sigma is -1.0"),
        (("gradient", "--objective", "gsop"), 2, "objective is 'gsop'"),
        (("noise", "--seeds", "0"), 2, "seeds is 0"),
        (("noise", "--std", "other"), 2, "other"),
        (("noise", "--picture", "no/such/folder.html"), 2, "there is no folder no/such"),
        (("noise", "--picture", "."), 2, ". is a folder"),
        (("noise", "--length", "300000"), 2, "length is 300000"),
    ],
)
def test_what_is_refused(arguments, code, words):
    result = run(*arguments)
    assert result.exit_code == code
    assert words in " ".join(result.stderr.replace("│", " ").split())
