"""Which objectives, ranges and denominators a request names."""

import pytest

from gspo.errors import DataError, RecipeError
from gspo.replay.candidates import SWEEP, default_candidates, requested, sweep
from gspo.replay.own import Own, own_objective
from gspo.settings import (
    CISPO,
    DAPO,
    GMPO,
    GRPO,
    GSPO,
    PAPER_CLIP,
    PPO,
    SAPO,
    ClipRange,
    DrGRPO,
    LengthFairClip,
    LogClip,
)
from tests.replay_run import write_run

FIXED = Own(objective=GSPO(clip=ClipRange(0.01, 0.02)), ranges=None, max_tokens=64)


def objectives(names=(), clips=(), aggregations=(), own=FIXED):
    return [c.objective for c in requested(own, names, clips, aggregations)]


def test_every_combination():
    found = requested(FIXED, ["gspo", "grpo"], ["0.1,0.2"], ["responses", "tokens"])
    clip = ClipRange(0.1, 0.2)
    assert [(c.objective, c.denominator) for c in found] == [
        (GSPO(clip=clip), "responses"),
        (GSPO(clip=clip), "tokens"),
        (GRPO(clip=clip), "responses"),
        (GRPO(clip=clip), "tokens"),
    ]


def test_what_is_not_said_is_the_runs_or_the_objectives_own():
    assert objectives() == [FIXED.objective]
    assert objectives(["gspo", "dapo", "sapo"]) == [FIXED.objective, DAPO(), SAPO()]
    assert objectives(["dr_grpo"]) == [DrGRPO(max_tokens=64)]
    assert objectives(clips=["paper"]) == [GSPO(clip=PAPER_CLIP)]
    capped = Own(objective=PPO(dual_clip=3.0), ranges=None, max_tokens=64)
    assert objectives(clips=["0.1,0.1"], own=capped) == [
        PPO(dual_clip=3.0, clip=ClipRange(0.1, 0.1))
    ]


def test_forms_of_a_range():
    assert objectives(clips=["length_fair:0.1,0.2"]) == [GSPO(clip=LengthFairClip(0.1, 0.2))]
    assert objectives(["gmpo"], ["0.1,0.2"]) == [GMPO(clip=LogClip(0.1, 0.2))]
    assert objectives(["cispo"], ["1,4"]) == [CISPO()]


@pytest.mark.parametrize(
    ("names", "clips", "aggregations", "message"),
    [
        (["gpso"], [], [], "did you mean 'gspo'"),
        ([], ["0.1"], [], "wanted LOW,HIGH, or paper, or length_fair:LOW,HIGH"),
        ([], ["0.1,0.1,0.1"], [], "wanted LOW,HIGH"),
        ([], ["wide:0.1,0.1"], [], "wanted LOW,HIGH"),
        ([], ["-1,0.1"], [], "ClipRange.low is -1"),
        ([], [], ["token"], "did you mean 'tokens'"),
        (["grpo"], ["paper"], [], "grpo clips tokens"),
        (["grpo"], ["length_fair:1,1"], [], "grpo clips tokens"),
        (["sapo"], ["0.1,0.1"], [], "sapo has no clip range"),
    ],
)
def test_what_cannot_be_says_what_can(names, clips, aggregations, message):
    with pytest.raises(RecipeError, match=message):
        requested(FIXED, names, clips, aggregations)


@pytest.mark.parametrize(
    ("aggregation", "divisor"), [(None, 3), ("responses", 3), ("tokens", 100), ("constant", 192)]
)
def test_denominators(aggregation, divisor):
    (candidate,) = requested(FIXED, [], [], [aggregation] if aggregation else [])
    assert candidate.divisor(3, 100) == divisor


def test_the_default_set_holds_the_run_once():
    paper = Own(objective=GSPO(), ranges=None, max_tokens=64)
    assert [c.label for c in default_candidates(FIXED)] == [
        "own: gspo",
        "gspo paper",
        "gspo 0.2,0.2",
        "grpo 0.2,0.27",
        "dapo",
    ]
    assert "gspo paper" not in [c.label for c in default_candidates(paper)]


def test_the_sweep_is_of_the_runs_objective_or_gspo():
    assert [c.clip for c in sweep(FIXED)] == [ClipRange(d, d) for d in SWEEP]
    gmpo = Own(objective=GMPO(), ranges=None, max_tokens=64)
    assert sweep(gmpo)[0].objective == GMPO(clip=LogClip(SWEEP[0], SWEEP[0]))
    sapo = Own(objective=SAPO(), ranges=None, max_tokens=64)
    assert sweep(sapo)[0].objective == GSPO(clip=ClipRange(SWEEP[0], SWEEP[0]))


def test_the_own_objective_comes_from_the_recipe(tmp_path):
    run = write_run(tmp_path / "run", "{name: ppo, clip: {low: 1e-1, high: 0.3}, dual_clip: 3}", [])
    own = own_objective(run)
    assert own == Own(
        objective=PPO(clip=ClipRange(0.1, 0.3), dual_clip=3.0), ranges=None, max_tokens=64
    )


def test_a_measured_range_is_that_of_each_step(tmp_path):
    run = write_run(
        tmp_path / "run", "gspo", [[], [], []], ranges=[(0.09, 0.11), None, (0.01, 0.02)]
    )
    own = own_objective(run)
    assert own.objective == GSPO(clip=ClipRange(0.01, 0.02))
    (candidate,) = requested(own, ["gspo"], [], ["tokens"])
    assert candidate.at(1) == GSPO(clip=ClipRange(0.09, 0.11))
    assert candidate.at(2) is None
    (fixed,) = requested(own, ["gspo"], ["paper"], [])
    assert fixed.at(2) == GSPO(clip=PAPER_CLIP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "restore the file"),
        ("objective: gspo\n", "restore the file"),
        ("objective: {name: nope}\nrollout: {max_tokens: 4}\n", "objective 'nope' is unknown"),
        ("objective: [\n", "not YAML"),
    ],
)
def test_a_recipe_that_cannot_be_read_says_so(tmp_path, text, message):
    run = write_run(tmp_path / "run", "gspo", [])
    (run.path / "recipe.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        own_objective(run)
