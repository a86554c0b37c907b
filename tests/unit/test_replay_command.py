"""`gspo replay`: its JSON, its words, its picture."""

import json
import re

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.settings import GSPO, ClipRange
from tests.replay_run import simulated, write_run

NARROW = "{name: gspo, clip: {low: 0.01, high: 0.02}}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    objective = GSPO(clip=ClipRange(0.01, 0.02))
    steps = [simulated(objective, seed=s, num_responses=200) for s in range(2)]
    return write_run(tmp_path_factory.mktemp("runs") / "run<b>", NARROW, steps)


def command(run, *options):
    return CliRunner().invoke(build_app(), ["replay", str(run.path), *options])


def report(run, *options):
    result = command(run, *options, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_without_options_a_table_of_many(run):
    found = report(run)
    assert found["num_responses"] == 400
    assert found["damaged"] == []
    assert found["picture"] is None
    assert [row["label"] for row in found["rows"][:2]] == ["own: gspo", "gspo paper"]
    assert len(found["rows"]) == 17
    row = found["rows"][0]
    assert row == found["own"]
    assert {"objective", "clip", "cut_share", "kept_weight", "ess", "buckets", "loss"} <= set(row)
    assert (row["objective"], row["clip"], row["clip_form"]) == ("gspo", [0.01, 0.02], "ratio")
    assert sum(bucket["num_responses"] for bucket in row["buckets"]) == row["num_responses"]
    assert found["reproduction"]["cuts"] == 0


def test_asked_for_one_there_is_one(run):
    found = report(run, "--objective", "grpo", "--clip", "0.1,0.2", "--aggregation", "tokens")
    (row,) = found["rows"]
    assert (row["objective"], row["clip"], row["aggregation"]) == ("grpo", [0.1, 0.2], "tokens")
    assert found["own"]["objective"] == "gspo"


def test_options_given_again_are_combined(run):
    found = report(run, "--clip", "paper", "--clip", "length_fair:0.1,0.1", "--objective", "gspo")
    assert [row["clip_form"] for row in found["rows"]] == ["ratio", "length_fair"]
    assert report(run, "--objective", "sapo")["rows"][0]["clip"] is None


@pytest.mark.parametrize(
    ("text", "steps"),
    [("2", [2, 2]), ("2:", [2, 2]), (":1", [1, 1]), ("1:9", [1, 2]), (":", [1, 2])],
)
def test_steps(run, text, steps):
    assert report(run, "--steps", text, "--clip", "paper")["steps"] == steps


@pytest.mark.parametrize("text", ["3:2", "a", "1-2", ""])
def test_steps_that_are_none(run, text):
    result = command(run, "--steps", text)
    assert result.exit_code == 2
    assert "wanted A:B" in result.stderr


def test_steps_that_the_run_has_not(run):
    result = command(run, "--steps", "7:", "--clip", "paper")
    assert result.exit_code == 3
    assert "has steps 1 to 2, and none of those asked for" in result.stderr


def test_for_people(run):
    text = command(run).stdout
    assert text.startswith("400 responses of 2 steps, 1 to 2; 0 left out")
    assert "differs from the record in the cuts of 0 of 400 responses, losses by" in text
    assert re.search(r"^own: gspo +0.01, 0.02 +0\.\d+", text, flags=re.M)
    assert re.search(r"^gspo ±0.0001 +0\.\d+ +█+", text, flags=re.M)
    assert "cut 16-31" in text


def test_what_is_damaged_is_said(run, tmp_path):
    other = write_run(tmp_path / "run", NARROW, [simulated(GSPO())] * 2)
    (other.path / "steps" / "000002.parquet").write_bytes(b"PAR1")
    text = command(other).stdout
    assert re.search(r"^left out: .*000002.parquet: ", text, flags=re.M)


def test_the_picture_needs_no_network_and_shows_the_sweep(run):
    found = report(run, "--picture", "--clip", "paper")
    assert found["picture"] == str(run.path / "replay.html")
    assert len(found["rows"]) == 1
    page = (run.path / "replay.html").read_text()
    assert not re.search(r'<(?:script|link)[^>]*(?:src|href)="', page)
    assert "run<b>" not in page
    for word in ("cut share", "kept gradient weight", "effective sample size", "own high", "16-31"):
        assert word in page


def test_a_request_that_cannot_be_ends_with_exit_2(run):
    result = command(run, "--objective", "gpso")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'gspo'" in result.stderr
