"""`a.b=c` over a file."""

from typing import Any

import pytest

from gspo.errors import RecipeError
from gspo.recipes import load
from gspo.recipes.objective_section import Band
from gspo.recipes.sections import FileData, SavedModel, TaskData

GRPO = {
    "data": {"task": "addition"},
    "objective": {"name": "grpo", "clip": {"low": 0.2, "high": 0.27}},
}


def loaded(recipe, overrides=()) -> Any:
    return load.load_recipe(recipe, overrides)


def made(values, overrides=()) -> Any:
    return load.recipe_from(values, overrides)


def test_one_setting_changes_and_the_rest_stays():
    recipe = loaded("demo", ["optimizer.lr=1e-6", "optimizer.betas=[0.9, 0.95]", "seed=3"])
    assert (recipe.optimizer.lr, recipe.optimizer.betas, recipe.seed) == (1e-6, (0.9, 0.95), 3)
    assert recipe.trainer == loaded("demo").trainer


@pytest.mark.parametrize("override", ["objective=gspo", "objective.name=gspo"])
def test_the_range_of_grpo_never_survives_into_gspo(override):
    objective = made(GRPO, [override]).objective
    assert (objective.name, objective.clip, objective.cut_share) == ("gspo", "auto", 0.15)


def test_another_objective_has_its_own_defaults():
    objective = loaded("demo", ["objective=dapo"]).objective
    assert (objective.name, objective.clip) == ("dapo", Band(low=0.2, high=0.28))


def test_the_order_does_not_matter():
    overrides = ["objective.kl.coefficient=1e-3", "objective=gspo"]
    recipe = made(GRPO, overrides)
    assert recipe == made(GRPO, overrides[::-1])
    assert (recipe.objective.name, recipe.objective.kl.coefficient) == ("gspo", 1e-3)


def test_a_name_alone_opens_into_a_section():
    recipe = made(
        {"data": {"task": "addition"}, "objective": "dapo"},
        ["objective.clip.high=0.3", "objective.clip.low=0.2"],
    )
    assert (recipe.objective.name, recipe.objective.clip.high) == ("dapo", 0.3)


def test_another_clip_takes_the_share_auto_aimed_at_along():
    objective = loaded("demo", ["objective.clip=paper"]).objective
    assert (objective.clip, objective.cut_share) == ("paper", None)
    objective = loaded("demo", ["objective.clip.low=1e-3", "objective.clip.high=2e-3"]).objective
    assert objective.clip == Band(low=1e-3, high=2e-3)
    with pytest.raises(RecipeError, match=r"objective.cut_share is what clip: auto aims at"):
        loaded("demo", ["objective.clip=paper", "objective.cut_share=0.1"])


def test_a_path_turns_the_section_into_the_other_kind(tmp_path):
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(load.to_yaml(loaded("demo")), encoding="utf-8")
    for recipe in ("demo", resolved):
        assert loaded(recipe, ["model.path=/m"]).model == SavedModel(path="/m")
        changed = loaded(
            recipe,
            ["data.path=a.jsonl", "coldstart=null", "verifier.kind=exact", "model.path=/m"],
        )
        assert changed.data == FileData(path="a.jsonl")
    assert loaded(
        "own-data", ["data.task=addition", "verifier={}", "rollout.max_tokens=64"]
    ).data == TaskData(task="addition", overlong="drop")


def test_an_override_is_never_taken_along():
    with pytest.raises(
        RecipeError, match=r"override 'model.hidden=8': model.hidden is a setting of"
    ):
        loaded("demo", ["model.path=/m", "model.hidden=8"])


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("a..b=2", "a..b is not a setting"),
        ("trainer..steps=2", "did you mean 'trainer.steps'?"),
        ("num-epochs=3", "num-epochs is not a setting; did you mean 'trainer.steps'?"),
        (
            "trainer.num_epoch=2",
            "trainer.num_epoch is not a setting; did you mean 'trainer.steps'?",
        ),
        ("trainr.steps=2", "trainr is not a setting; did you mean 'trainer'?"),
        ("trainer.steps.x=3", "trainer.steps is {'x': 3}; wanted a whole number"),
        ("seed", "wanted SETTING=VALUE"),
        ("=3", "wanted SETTING=VALUE"),
        ("seed=", "no value; none is written null"),
        ("seed=[1", "this is not YAML"),
        ("optimizer.lr=-1", "optimizer.lr is -1; wanted at least 0"),
        ("seed=" + "1" * 3000, "11…"),
    ],
)
def test_what_is_no_override(override, words):
    with pytest.raises(RecipeError) as caught:
        loaded("demo", [override])
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert len(message) < 400


def test_one_setting_twice_is_refused():
    with pytest.raises(RecipeError, match="also set by 'seed=1'; keep one"):
        loaded("demo", ["seed=1", "seed=2"])


def test_a_message_names_the_override_or_the_line():
    with pytest.raises(
        RecipeError, match=r"^override 'trainer.minibatches=5': trainer.minibatches"
    ):
        loaded("demo", ["trainer.minibatches=5"])
    with pytest.raises(RecipeError, match=r"demo.yaml line \d+: trainer.minibatches is 4"):
        loaded("demo", ["rollout.prompts=30"])
