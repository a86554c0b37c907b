"""Clip ranges and settings: bands by hand, impossible values refused, own defaults."""

import math
import subprocess
import sys

import pytest
import torch

from gspo.errors import RecipeError
from gspo.settings import (
    DAPO,
    GRPO,
    GSPO,
    OBJECTIVES,
    PAPER_CLIP,
    PPO,
    SAPO,
    ClipRange,
    DrGRPO,
    KLPenalty,
    LengthFairClip,
    LogClip,
    Objective,
)


def test_bands_by_hand():
    lengths = torch.tensor([0, 1, 4])
    low, high = ClipRange(low=0.2, high=0.25).band(lengths)
    assert (low, high) == pytest.approx((math.log(0.8), math.log(1.25)), rel=1e-14)
    assert ClipRange(low=1.0, high=4.0).band(lengths)[0] == -math.inf
    assert LogClip(low=0.4, high=0.5).band(lengths) == (-0.4, 0.5)
    low, high = LengthFairClip(low=0.1, high=0.2).band(lengths)
    assert low.tolist() == pytest.approx([-0.1, -0.1, -0.05])
    assert high.tolist() == pytest.approx([0.2, 0.2, 0.1])


@pytest.mark.parametrize("kind", [ClipRange, LogClip, LengthFairClip])
@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, 1e9])
def test_an_impossible_distance_is_named(kind, bad):
    with pytest.raises(RecipeError, match=rf"{kind.__name__}.low is .*; wanted a finite number"):
        kind(low=bad, high=0.1)
    with pytest.raises(RecipeError, match=rf"{kind.__name__}.high is"):
        kind(low=0.1, high=bad)


def test_each_objective_has_its_own_range():
    """Trap 1: a wide range is allowed for GSPO, but never by accident."""
    assert GSPO().clip == PAPER_CLIP == ClipRange(low=3e-4, high=4e-4)
    assert GRPO().clip == ClipRange(low=0.2, high=0.2)
    assert DAPO().clip == ClipRange(low=0.2, high=0.28)
    assert GSPO(clip=ClipRange(low=0.2, high=0.2)).clip.low == 0.2


def test_the_table_names_every_objective_and_each_is_one():
    assert list(OBJECTIVES) == [
        "gspo", "gspo_token", "grpo", "dapo", "dr_grpo", "gmpo", "cispo", "sapo", "ppo",
    ]  # fmt: skip
    for name, cls in OBJECTIVES.items():
        objective = cls(max_tokens=8) if cls is DrGRPO else cls()
        assert isinstance(objective, Objective)
        assert objective.name == name
        assert "arXiv" in objective.source


def test_divisors_by_hand():
    """Five responses of 40 tokens in all; nothing to divide is 1, not 0."""
    divisors = {
        name: (cls(max_tokens=16) if cls is DrGRPO else cls()).divisor(5, 40)
        for name, cls in OBJECTIVES.items()
    }
    assert divisors == {
        "gspo": 5, "gspo_token": 5, "grpo": 5, "gmpo": 5, "sapo": 5,
        "dapo": 40, "cispo": 40, "ppo": 40, "dr_grpo": 80,
    }  # fmt: skip
    assert GSPO().divisor(0, 0) == 1
    assert DrGRPO(max_tokens=16).divisor(0, 0) == 16


def test_a_clip_of_the_wrong_kind_is_refused():
    """A log-space or length-fair range on token ratios would mean something else."""
    with pytest.raises(RecipeError, match=r"gmpo.clip is ClipRange.*wanted LogClip"):
        unchecked("gmpo", ClipRange(low=0.4, high=0.4))
    with pytest.raises(RecipeError, match=r"grpo.clip is LengthFairClip.*wanted ClipRange with"):
        unchecked("grpo", LengthFairClip(low=0.4, high=0.4))
    with pytest.raises(RecipeError, match=r"gspo.clip is 0.2; wanted ClipRange or LengthFairClip"):
        unchecked("gspo", 0.2)


def unchecked(name, clip):
    """Settings past the annotation check that only tests have."""
    made = object.__new__(OBJECTIVES[name])
    object.__setattr__(made, "clip", clip)
    made.__post_init__()


def test_other_impossible_settings_are_named():
    for tau in (0.0, -1.0, math.nan):
        with pytest.raises(RecipeError, match=r"sapo.tau_neg is"):
            SAPO(tau_neg=tau)
    for cap in (1.0, math.inf):
        with pytest.raises(RecipeError, match=r"ppo.dual_clip is .* above 1 \(3 is usual\)"):
            PPO(dual_clip=cap)
    with pytest.raises(RecipeError, match=r"dr_grpo.max_tokens is 0"):
        DrGRPO(max_tokens=0)
    for coefficient in (0.0, -1.0, math.nan):
        with pytest.raises(RecipeError, match=r"kl.coefficient is"):
            KLPenalty(coefficient=coefficient)
    assert KLPenalty(coefficient=0.01).estimator == "k3"


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        GSPO().clip = PAPER_CLIP  # pyright: ignore[reportAttributeAccessIssue]


def test_settings_do_not_import_torch():
    code = "import sys, gspo.settings; gspo.settings.GSPO(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
