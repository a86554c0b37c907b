"""Recipes, model folders and cached models are found; what is not there is said."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from gspo.errors import DataError, RecipeError
from gspo.plan import source
from gspo.plan.headers import weight_files
from gspo.plan.memory import plan_memory
from gspo.plan.source import config_of, find_source

CONFIG = {
    "model_type": "llama",
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}


@pytest.fixture
def model(tmp_path):
    """A folder with a config and no weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_recipe_is_one_with_its_overrides():
    found = find_source("demo", ["rollout.group=4"])
    assert (found.from_model, found.recipe.rollout.group, found.files) == (False, 4, None)


@pytest.mark.parametrize("name", ["", "config.json"])
def test_a_model_needs_its_config_alone(model, name):
    found = find_source(str(model / name), ["rollout.max_tokens=1000"])
    assert found.from_model
    assert found.recipe.rollout.max_tokens == 1000
    assert config_of(found.recipe).hidden_size == 16
    planned = plan_memory(found.recipe, precision="mixed")
    assert planned.setup.workload.prompt_tokens == source.ASSUMED_PROMPT_TOKENS


@pytest.mark.parametrize("name", ["owner/small", "small"])
def test_a_cached_model_by_its_name(cache, model, name):
    snapshot = cache / "models--owner--small" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    model.rename(snapshot)
    assert find_source(name, []).recipe.model.path == str(snapshot)


def test_a_name_that_is_nothing_names_the_nearest():
    with pytest.raises(DataError, match="did you mean 'demo'"):
        find_source("dem", [])


def test_a_recipe_whose_model_is_not_there(tmp_path):
    found = find_source("own-data", [f"model.path={tmp_path / 'gone'}"])
    with pytest.raises(DataError, match="does not exist"):
        plan_memory(found.recipe)


def test_code_that_comes_with_a_model_is_not_run(model):
    about = {"model_type": "strange", "auto_map": {"AutoConfig": "evil.Config"}}
    (model / "config.json").write_text(json.dumps(about))
    (model / "evil.py").write_text("raise SystemExit('this code was run')\n")
    with pytest.raises(DataError, match="no model config that loads"):
        config_of(find_source(str(model), []).recipe)


def test_a_setting_that_is_none_is_an_error(model):
    with pytest.raises(RecipeError, match="rollout.max_tokens"):
        find_source(str(model), ["rollout.max_tokenz=1"])


def test_headers_count_what_the_files_hold(model):
    save_file({"a": torch.zeros(3, 5, dtype=torch.bfloat16)}, model / "model-1.safetensors")
    save_file({"b": torch.zeros(7), "c": torch.zeros(())}, model / "model-2.safetensors")
    found = weight_files(model)
    assert found is not None
    assert (found.num_parameters, found.num_files) == (23, 2)
    assert found.dtypes == {"BF16": 15, "F32": 8}


def test_a_header_is_read_without_the_weights(model):
    """Billions of values that no disk here holds: the header alone is there."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 1]}})
    content = len(header).to_bytes(8, "little") + header.encode()
    (model / "model.safetensors").write_bytes(content)
    found = weight_files(model)
    assert found is not None
    assert found.num_parameters == 10**12


def test_a_file_without_a_header_is_named(model):
    (model / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match="no whole safetensors file"):
        find_source(str(model), [])


def save(model, name, count):
    save_file({f"t{count}": torch.zeros(count)}, model / name)


def test_the_index_says_which_files_belong_to_the_model(model):
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"weight_map": {"t3": names[0], "t5": names[1]}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weight_files(model) is None
    save(model, names[0], 3)
    save(model, "consolidated.safetensors", 8)  # the same weights once more
    found = weight_files(model)
    assert (found.num_parameters, found.num_files, found.missing) == (3, 1, (names[1],))
    save(model, names[1], 5)
    found = weight_files(model)
    assert (found.num_parameters, found.num_files, found.missing) == (8, 2, ())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": 3}'])
def test_an_index_that_is_none_is_named(model, text):
    save(model, "model.safetensors", 3)
    (model / "model.safetensors.index.json").write_text(text)
    with pytest.raises(DataError, match=r"index.json is no index of weight files"):
        weight_files(model)


def test_a_device_that_is_unknown_is_said_once(model):
    recipe = find_source(str(model), []).recipe
    with pytest.raises(RecipeError, match=r"no device 'h10'; did you mean 'h100'\?$"):
        plan_memory(recipe, device="h10")
