"""Recipes from files: what is read, what is refused, and with which words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gspo.errors import RecipeError
from gspo.recipes.load import LIBRARY, load_recipe, recipe_from, recipe_names, to_yaml
from gspo.recipes.names import OTHER_NAMES, all_settings, sections_of
from gspo.recipes.schema import Recipe
from gspo.recipes.sections import FileData, SavedModel, TaskData

TASK = "data: {task: addition}\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write my.yaml in an empty working folder and load it, with overrides."""
    monkeypatch.chdir(tmp_path)

    def load(text, *overrides):
        (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
        return load_recipe("my.yaml", overrides)

    return load


def refused(load, text, *overrides):
    with pytest.raises(RecipeError) as caught:
        load(text, *overrides)
    return str(caught.value)


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_loads_and_survives_a_round_trip(name, written):
    recipe = load_recipe(name)
    assert written(to_yaml(recipe)) == recipe
    assert load_recipe(LIBRARY / f"{name}.yaml") == recipe


def test_the_shipped_recipes_are_these():
    assert recipe_names() == ["code", "countdown", "demo", "own-data"]
    assert isinstance(load_recipe("own-data").model, SavedModel)
    assert isinstance(load_recipe("own-data").data, FileData)


def test_the_demo_has_the_measured_values():
    recipe: Any = load_recipe("demo")
    assert isinstance(recipe.data, TaskData)
    assert (recipe.data.task, recipe.data.options) == ("addition", {"digits": 4})
    assert (recipe.rollout.prompts, recipe.rollout.group) == (32, 8)
    assert (recipe.optimizer.lr, recipe.trainer.minibatches) == (3e-5, 4)
    assert (recipe.coldstart.steps, recipe.coldstart.lr) == (280, 2e-3)
    objective = recipe.objective
    assert (objective.name, objective.clip, objective.cut_share) == ("gspo", "auto", 0.15)


def test_every_setting_has_a_description():
    def undescribed(section, place):
        for name, field in section.model_fields.items():
            if not (field.description or "").strip().endswith((".", ")")):
                yield f"{place}.{name}"
            for inner, _ in sections_of(field.annotation):
                yield from undescribed(inner, f"{place}.{name}")

    assert list(undescribed(Recipe, "recipe")) == []


def test_names_of_other_trainers_lead_to_settings():
    assert set(OTHER_NAMES.values()) <= all_settings().keys()
    assert not OTHER_NAMES.keys() & {name.rpartition(".")[2] for name in all_settings()}


def test_unknown_key_names_file_line_and_the_nearest_setting(written):
    text = TASK + "trainer:\n  steps: 3\n  num_epoch: 2\n"
    assert refused(written, text) == (
        "my.yaml line 4: trainer.num_epoch is not a setting; did you mean 'trainer.steps'?"
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "learning_rate: 1e-6",
            "line 2: learning_rate is not a setting; did you mean 'optimizer.lr'?",
        ),
        ("optimiser: {lr: 1}", "did you mean 'optimizer'?"),
        ("rollout: {max-tokens: 3}", "did you mean 'rollout.max_tokens'?"),
        (
            "rollout: {steps: 3}",
            "mean 'coldstart.steps' or 'rollout.length_schedule.steps' or 'trainer.steps'",
        ),
        ("lr: 3", "did you mean 'coldstart.lr' or 'optimizer.lr'?"),
        ("trainer: {xyzzy: 3}", "those of trainer are trainer.steps, trainer.minibatches"),
        (
            "objective: {name: gspo, tau_pos: 1}",
            "objective.tau_pos is a setting of sapo, not of gspo",
        ),
        ("objective: gpso", "objective 'gpso' is unknown; did you mean 'gspo'?"),
        ("objective: {name: gpso}", "objective 'gpso' is unknown; did you mean 'gspo'?"),
    ],
)
def test_unknown_names_lead_somewhere(written, text, hint):
    assert hint in refused(written, TASK + text)


def test_all_faults_are_told_at_once(written):
    text = TASK + "seed: x\nrollout: {group: y}\n"
    assert refused(written, text).splitlines() == [
        "my.yaml line 2: seed is 'x'; wanted a whole number",
        "my.yaml line 3: rollout.group is 'y'; wanted a whole number",
    ]


@pytest.mark.parametrize(
    ("text", "value"), [("1e-6", 1e-6), ("'1e-6'", 1e-6), ("2", 2.0), (".5", 0.5), ("1.0e-6", 1e-6)]
)
def test_a_number_is_a_number_however_it_is_written(written, text, value):
    lr = written(TASK + f"optimizer: {{lr: {text}}}").optimizer.lr
    assert type(lr) is float
    assert lr == value


def test_a_whole_number_may_be_written_with_an_exponent(written):
    assert written(TASK + "trainer: {steps: 1e3}").trainer.steps == 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed: 010", "seed is '010'; wanted a whole number"),
        ("seed: 12:00", "seed is '12:00'; wanted a whole number"),
        ("seed: 1_000", "seed is '1_000'; wanted a whole number"),
        ("seed: 1.5", "seed is 1.5; wanted a whole number"),
        ("seed: true", "seed is True; wanted a whole number"),
        ("seed: -1", "seed is -1; wanted at least 0"),
        ("name: no", "name is False (as yes, no, on, off are read); wanted text"),
        ("name: 2024", "name is 2024; wanted text"),
        ("name: None", "name is 'None'; none is written null"),
        ("name: ../x", "name is '../x'; wanted letters, digits"),
        ("optimizer: {lr: -1}", "optimizer.lr is -1; wanted at least 0"),
        ("optimizer: {lr: .nan}", "optimizer.lr is nan; wanted a finite number"),
        ("optimizer: {eps: nan}", "optimizer.eps is 'nan'; wanted a number"),
        ("optimizer: {lr: 1e400}", "optimizer.lr is inf; wanted a finite number"),
        ("optimizer: {lr: None}", "optimizer.lr is 'None'; wanted a number"),
        ("optimizer: {lr: false}", "optimizer.lr is False; wanted a number"),
        ("optimizer: {betas: [0.9]}", "optimizer.betas is too short; wanted a list of two numbers"),
        ("optimizer: {betas: [0.9, 1]}", "optimizer.betas.1 is 1; wanted a number below 1"),
        ("trainer: {minibatches: 0}", "trainer.minibatches is 0; wanted at least 1"),
        ("trainer: {minibatch_by: token}", "is 'token'; wanted 'group' or 'response'"),
        ("trainer: 3", "trainer is 3; wanted a mapping of settings"),
        ("record: {steps: maybe}", "record.steps is 'maybe'; wanted true or false"),
        ("record: {steps: 'no'}", "record.steps is 'no'; wanted true or false"),
        ("record: {steps: 2}", "record.steps is 2; wanted true or false"),
        ("objective: {clip: wide}", "objective.clip is 'wide'; wanted 'auto' or 'paper'"),
        ("objective: {clip: 0.2}", "objective.clip is 0.2; wanted auto, paper, {low, high} or"),
        ("objective: {clip: {low: 0.1}}", "objective.clip.high is missing"),
    ],
)
def test_what_is_no_value_of_a_setting(written, text, words):
    assert words in refused(written, TASK + text)


@pytest.mark.parametrize("off", ["False", "false", "0", "no", "off"])
def test_five_ways_to_switch_off(written, off):
    assert written(TASK + f"record: {{steps: {off}}}").record.steps is False
    assert written(TASK, f"record.steps={off}").record.steps is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "my.yaml: data is missing and has no default; set it"),
        ("data: {}", "wanted either task (addition, countdown, reasoning_gym/NAME) or path"),
        (
            "data: {task: addition, path: x}",
            "wanted either task (addition, countdown, reasoning_gym/NAME) or path",
        ),
        (
            "data: {task: subtraction}",
            "data.task is 'subtraction'; wanted 'addition', 'countdown' or 'reasoning_gym/NAME'",
        ),
        (
            "data: {task: addition, columns: {}}",
            "data.columns is a setting of a file, not of a task",
        ),
        (
            "data: {task: addition, options: {digits: [4]}}",
            "data.options.digits is [4]; wanted a fin",
        ),
        (
            TASK + "model: {path: x, hidden: 8}",
            "model.hidden is a setting of a new model, not of a saved model",
        ),
    ],
)
def test_settings_of_another_kind_of_section(written, text, words):
    assert words in refused(written, text)


def test_one_of_the_shipped_or_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError, match=r"'dmeo' is no shipped recipe; did you mean 'demo'\?"):
        load_recipe("dmeo")
    with pytest.raises(RecipeError, match=r"no recipe file x\.yaml; shipped by name: code, "):
        load_recipe("x.yaml")
    with pytest.raises(RecipeError, match="no recipe file"):
        load_recipe("../demo")


def test_a_file_that_is_no_utf8(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(RecipeError, match=r"is not UTF-8 text \(byte 9\)"):
        load_recipe(path)
    path.write_bytes("data: {task: addition}\n".encode("utf-8-sig"))
    assert load_recipe(path).data.task == "addition"


def test_a_recipe_is_frozen_and_checked_when_made_in_python():
    recipe: Any = recipe_from({"data": {"task": "addition"}})
    with pytest.raises(ValueError, match="frozen"):
        recipe.seed = 3
    with pytest.raises(RecipeError, match=r"^recipe: rollout\.group is 1: no group baseline"):
        recipe_from({"data": {"task": "addition"}, "rollout": {"group": 1}})


words = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(
    lambda text: text != "None"
)
odd_words = st.sampled_from(
    ["1e-6", "no", "010", "null", "~", "=", "<<", "2024-01-01", "#", "a: b"]
)


@given(
    folder=words | odd_words,
    option=words | odd_words | st.booleans() | st.integers(-(10**20), 10**20),
    lr=st.floats(0, allow_infinity=False, allow_nan=False),
    betas=st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)),
)
def test_yaml_of_a_recipe_gives_the_recipe(folder, option, lr, betas, tmp_path_factory):
    recipe = recipe_from(
        {
            "data": {"task": "addition", "options": {"x": option}},
            "record": {"folder": folder},
            "optimizer": {"lr": lr, "betas": list(betas)},
        }
    )
    path = tmp_path_factory.mktemp("round") / "trip.yaml"
    path.write_text(to_yaml(recipe), encoding="utf-8")
    assert load_recipe(path) == recipe
