"""A real run, replayed under its own objective, gives the numbers it recorded."""

import json

import pytest

from gspo.objectives import OBJECTIVES
from gspo.recorders.reader import open_run
from tests.e2e.conftest import without

NARROW = "clip: {low: 0.0005, high: 0.0005}"
SETTINGS = {
    "gspo": NARROW,
    "gspo_token": NARROW,
    "grpo": NARROW,
    "dapo": NARROW,
    "dr_grpo": NARROW,
    "gmpo": NARROW,
    "cispo": NARROW,
    "sapo": "tau_pos: 1.0",
    "ppo": f"{NARROW}, dual_clip: 1.001",
}
CUTS_NOTHING = {"cispo", "sapo"}


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_a_run_is_reproduced(gspo, small, name):
    small = without(small, "coldstart", "evaluate", "trainer.steps")
    objective = f"objective={{name: {name}, {SETTINGS[name]}}}"
    speed = ["coldstart=null", "evaluate.prompts=1", "evaluate.samples=1", "trainer.steps=1"]
    lr = "optimizer.lr=1e-3"  # far enough that the narrow range cuts
    trained = gspo("train", "demo", objective, *small, *speed, lr, "name=a")
    assert trained.exit_code == 0, trained.stderr
    result = gspo("replay", "runs/a", "--objective", name, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    (row,) = report["rows"]
    recorded = open_run("runs/a").metrics()[-1]

    again = report["reproduction"]
    assert (again["num_responses"], report["num_left_out"]) == (16, 0)
    assert again["cuts"] == 0
    assert again["loss"] < 1e-6
    assert again["kept_weight"] < 1e-6
    assert row["cut_share"] == pytest.approx(recorded["clip/cut_share"], abs=1e-12)
    assert row["kept_weight"] == pytest.approx(recorded["weight/kept_share"], rel=1e-6)
    assert row["ess"] == pytest.approx(recorded["weight/ess_share"], rel=1e-6)
    assert row["loss"] == pytest.approx(recorded["loss/policy"], rel=1e-5, abs=1e-6)
    if name not in CUTS_NOTHING:
        assert row["cut_share"] > 0
    assert recorded["attribution/top1_share"] > 0


def test_a_run_that_measures_its_range_is_reproduced(gspo, small):
    assert gspo("train", "demo", *small, "name=a").exit_code == 0
    report = json.loads(gspo("replay", "runs/a", "--json").stdout)
    assert report["rows"][0]["label"] == "own: gspo (auto)"
    assert report["rows"][0]["num_steps"] == 2
    assert report["reproduction"]["cuts"] == 0
    assert report["reproduction"]["loss"] < 1e-6
