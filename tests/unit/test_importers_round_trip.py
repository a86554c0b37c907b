"""There and back: nothing is lost that the report does not name."""

from pathlib import Path

import pytest

from gspo.errors import RecipeError
from gspo.recipes.importers.convert import TRAINERS, import_settings
from gspo.recipes.importers.export import export_recipe
from gspo.recipes.load import load_recipe, recipe_from

FILES = Path(__file__).parents[1] / "importers"
SUFFIX = {"trl": ".yaml", "verl": ".sh", "openrlhf": ".sh"}
SETTINGS = sorted(
    path.name
    for path in FILES.glob("*_*")
    if path.suffix in (".py", ".sh", ".txt", ".yaml") and not path.name.startswith("_")
)
OBJECTIVES = ("gspo", "gspo_token", "grpo", "dapo", "dr_grpo", "gmpo", "cispo", "sapo", "ppo")
#: What each trainer has no loss for.
WITHOUT = {
    "trl": {"gmpo"},
    "verl": set(),
    "openrlhf": {*OBJECTIVES} - {"gspo", "gspo_token", "dapo", "ppo"},
}
#: A recipe with something set in every section that has counterparts.
FULL = {
    "name": "full",
    "seed": 5,
    "model": {"path": "models/start", "dtype": "bfloat16"},
    "data": {
        "path": "example/maths",
        "split": "main",
        "max_prompt_tokens": 300,
        "overlong": "drop",
    },
    "verifier": {"kind": "function", "function": "lib/rewards.py:right"},
    "rollout": {
        "prompts": 24,
        "group": 4,
        "max_tokens": 700,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 40,
    },
    "advantage": {"baseline": "loo", "scale": "none"},
    "objective": {
        "name": "gspo",
        "clip": {"low": 0.001, "high": 0.002},
        "kl": {"coefficient": 0.01, "estimator": "k2"},
    },
    "optimizer": {
        "lr": 3e-6,
        "schedule": "cosine",
        "warmup_steps": 7,
        "betas": [0.8, 0.99],
        "eps": 1e-6,
    },
    "trainer": {"steps": 60, "minibatches": 3, "checkpoint_every": 10, "keep_checkpoints": 4},
    "evaluate": {"every": 5, "samples": 6},
    "record": {"folder": "out", "to": ["tensorboard", "wandb"]},
}


def trainer_of(name):
    return name.partition("_")[0]


def back(trainer, recipe, folder):
    """The recipe after the way there and back, and the report of the way there."""
    exported = export_recipe(trainer, recipe, "recipe.yaml")
    path = folder / f"exported{SUFFIX[trainer]}"
    path.write_text(exported.text)
    return import_settings(trainer, path).recipe, exported.report


def flat(values, above=""):
    found = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{above}{name}.")
        else:
            found[above + name] = value
    return found


def differences(first, second):
    one, other = flat(first.model_dump(mode="json")), flat(second.model_dump(mode="json"))
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def unnamed(first, second, report):
    """Settings that came back different and that the report does not name as changed or left out."""
    named = [line.key for line in (*report.changed, *report.not_carried)]
    if "objective.name" in named:  # another objective has other settings
        named.append("objective")
    return {
        key
        for key in differences(first, second)
        if not any(
            f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.") for name in named
        )
    }


def test_there_are_four_settings_of_each():
    assert all(sum(trainer_of(name) == trainer for name in SETTINGS) >= 4 for trainer in TRAINERS)


@pytest.mark.parametrize("name", SETTINGS)
def test_import_export_import_gives_the_same_recipe(name, tmp_path):
    trainer = trainer_of(name)
    recipe = import_settings(trainer, FILES / name, lenient=name == "trl_capped.py").recipe
    again, report = back(trainer, recipe, tmp_path)
    if name == "trl_capped.py":  # its reward stands in the script itself, and has no file yet
        assert unnamed(recipe, again, report) == set()
        assert differences(recipe, again) == {"verifier.function"}
    else:
        assert differences(recipe, again) == set()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_text_loads_as_the_recipe(name, tmp_path):
    imported = import_settings(trainer_of(name), FILES / name, lenient=True)
    path = tmp_path / "recipe.yaml"
    path.write_text(imported.text)
    assert load_recipe(path) == imported.recipe
    assert imported.text.startswith(f"# From {name} (")


@pytest.mark.parametrize("name", ["demo", "countdown", "own-data", "code"])
@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_shipped_recipes_lose_nothing_unnamed(trainer, name, tmp_path):
    recipe = load_recipe(name)
    again, report = back(trainer, recipe, tmp_path)
    assert unnamed(recipe, again, report) == set()
    assert (again.rollout.prompts, again.rollout.group) == (
        recipe.rollout.prompts,
        recipe.rollout.group,
    )
    assert (again.trainer.steps, again.trainer.minibatches) == (
        recipe.trainer.steps,
        recipe.trainer.minibatches,
    )
    assert again.objective.name == recipe.objective.name


@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_a_recipe_with_everything_loses_nothing_unnamed(trainer, tmp_path):
    recipe = recipe_from(FULL)
    again, report = back(trainer, recipe, tmp_path)
    assert unnamed(recipe, again, report) == set()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_every_objective_comes_back_or_is_refused(trainer, objective, tmp_path):
    recipe = load_recipe("own-data", [f"objective={objective}"])
    if objective in WITHOUT[trainer]:
        with pytest.raises(RecipeError, match=f"objective.name is '{objective}'.*no counterpart"):
            export_recipe(trainer, recipe, "r")
        return
    again, report = back(trainer, recipe, tmp_path)
    assert unnamed(recipe, again, report) == set()
    changed = {line.key for line in report.changed}
    assert again.objective.name == objective or "objective.name" in changed


@pytest.mark.parametrize(
    "clip", ["{low: 0.001, high: 0.002}", "{length_fair: {low: 0.02, high: 0.03}}", "auto"]
)
@pytest.mark.parametrize("trainer", list(TRAINERS))
def test_ranges(trainer, clip, tmp_path):
    recipe = load_recipe("own-data", [f"objective.clip={clip}", "rollout.max_tokens=400"])
    again, report = back(trainer, recipe, tmp_path)
    changed = {line.key for line in report.changed}
    expected = {"auto": (3e-4, 4e-4)}.get(
        clip, (0.001, 0.002) if "fair" not in clip else (0.001, 0.0015)
    )
    assert (again.objective.clip.low, again.objective.clip.high) == pytest.approx(expected)
    assert ("objective.clip" in changed) == (clip == "auto" or "fair" in clip)


def test_verl_needs_whole_prompts_an_update():
    recipe = load_recipe("own-data", ["trainer.minibatches=64", "trainer.minibatch_by=response"])
    with pytest.raises(RecipeError, match="32 prompts have no 64 equal parts"):
        export_recipe("verl", recipe, "r")
