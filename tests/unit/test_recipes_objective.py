"""The objective section, and the objective it makes."""

from typing import Any

import pytest

from gspo.errors import RecipeError
from gspo.recipes.load import recipe_from
from gspo.recipes.names import all_settings
from gspo.recipes.objective_section import kl_penalty, objective_settings
from gspo.settings import (
    CISPO,
    DAPO,
    GMPO,
    GRPO,
    GSPO,
    OBJECTIVES,
    PAPER_CLIP,
    PPO,
    SAPO,
    ClipRange,
    DrGRPO,
    GSPOToken,
    KLPenalty,
    LengthFairClip,
    LogClip,
)

MAX_TOKENS = 64


def section(objective) -> Any:
    return recipe_from({"data": {"task": "addition"}, "objective": objective}).objective


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gspo", GSPO()),
        ("gspo_token", GSPOToken()),
        ("grpo", GRPO()),
        ("dapo", DAPO()),
        ("dr_grpo", DrGRPO(max_tokens=MAX_TOKENS)),
        ("gmpo", GMPO()),
        ("cispo", CISPO()),
        ("sapo", SAPO()),
        ("ppo", PPO()),
    ],
)
def test_a_name_alone_is_the_objective_with_its_own_defaults(name, settings):
    assert objective_settings(section(name), MAX_TOKENS) == (settings, name.startswith("gspo"))
    assert section(name) == section({"name": name})


def test_every_objective_has_a_section():
    assert set(all_settings()["objective.name"]) == set(OBJECTIVES)


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"clip": "paper"}, GSPO(clip=PAPER_CLIP)),
        ({"clip": {"low": 0.01, "high": 0.02}}, GSPO(clip=ClipRange(low=0.01, high=0.02))),
        (
            {"clip": {"length_fair": {"low": 0.01, "high": 0.02}}},
            GSPO(clip=LengthFairClip(low=0.01, high=0.02)),
        ),
        (
            {"name": "gmpo", "clip": {"low": 0.3, "high": 3}},
            GMPO(clip=LogClip(low=0.3, high=3.0)),
        ),
        ({"name": "dr_grpo", "max_tokens": 9}, DrGRPO(max_tokens=9)),
        ({"name": "sapo", "tau_pos": 2, "tau_neg": 3}, SAPO(tau_pos=2.0, tau_neg=3.0)),
        ({"name": "ppo", "dual_clip": 3}, PPO(dual_clip=3.0)),
    ],
)
def test_what_is_given_arrives(given, settings):
    assert objective_settings(section(given), MAX_TOKENS) == (settings, False)


def test_auto_aims_at_a_share():
    assert section("gspo").cut_share == 0.15
    assert section({"clip": "auto", "cut_share": 0.3}).cut_share == 0.3
    with pytest.raises(RecipeError, match=r"objective.cut_share is 1; wanted a number below 1"):
        section({"cut_share": 1})


def test_the_penalty():
    assert kl_penalty(section("gspo")) is None
    given = {"name": "grpo", "kl": {"coefficient": 0.01, "estimator": "k2"}}
    assert kl_penalty(section(given)) == KLPenalty(coefficient=0.01, estimator="k2")
    with pytest.raises(RecipeError, match=r"objective.kl.coefficient is missing"):
        section({"kl": {}})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "sapo", "clip": {"low": 1, "high": 1}}, "objective.clip is a setting of gspo, "),
        (
            {"name": "grpo", "clip": "auto"},
            "objective.clip is 'auto'; wanted a mapping of settings",
        ),
        ({"name": "grpo", "clip": "paper"}, "objective.clip is 'paper'"),
        ({"name": "grpo", "cut_share": 0.1}, "a setting of gspo, gspo_token, not of grpo"),
        ({"name": "gspo", "max_tokens": 3}, "a setting of dr_grpo, not of gspo"),
        (
            {"name": "grpo", "clip": {"low": 1.5, "high": 1}},
            "ClipRange.low is 1.5; wanted a finite",
        ),
        ({"name": "ppo", "dual_clip": 0.5}, "ppo.dual_clip is 0.5; wanted a ratio above 1"),
    ],
)
def test_what_an_objective_does_not_take(given, words):
    with pytest.raises(RecipeError) as caught:
        section(given)
    assert words in str(caught.value)
