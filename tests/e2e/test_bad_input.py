"""One clear line, the right exit code, and no model is built."""

import json

import pytest

from gspo.data.tokenizer import character_tokenizer
from gspo.policy.model import save_model, tiny_model
from tests.e2e.conftest import without

LINES = {
    "a step takes more prompts than there are": (
        ["rollout.prompts=20"],
        2,
        "fewer than the 20 of one step",
    ),
    "no group baseline": (["rollout.group=1"], 2, "no group baseline possible"),
    "batch that does not divide": (["rollout.prompts=5"], 2, "rollout.prompts"),
    "unknown key": (["trainer.num_epoch=2"], 2, "trainer.num_epoch"),
    "wrong type": (["rollout.group=many"], 2, "rollout.group"),
    "longer than the token budget": (["trainer.max_tokens_per_microbatch=8"], 2, "microbatch"),
    "no room for a prompt": (["rollout.max_tokens=64"], 2, "must fit the model"),
    "prompt longer than the limit": (["data.max_prompt_tokens=3"], 3, "longer than 3 tokens"),
    "unknown recipe": (["--dry-run"], 2, "demoo"),
}


@pytest.fixture(autouse=True)
def _no_model(monkeypatch):
    def refuse(*arguments, **settings):
        raise AssertionError("a model was built")

    monkeypatch.setattr("gspo.recipes.build.build_model", refuse)


@pytest.mark.parametrize("case", LINES)
def test_settings(gspo, small, case):
    overrides, code, said = LINES[case]
    changed = {s.split("=")[0] for s in overrides}
    kept = [s for s in small if s.split("=")[0] not in changed]
    recipe = "demoo" if case == "unknown recipe" else "demo"
    result = gspo("train", recipe, *kept, *overrides)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("gspo: ")


FILES = {
    "empty file": ("", "holds no row"),
    "missing column": (json.dumps({"question": "1+1="}), "no column 'prompt'"),
    "not JSON": ("{", "line 1"),
    "blank prompt": (json.dumps({"prompt": " ", "answer": "2"}), "not blank"),
}


@pytest.mark.parametrize("case", FILES)
def test_data(gspo, small, tmp_path, case):
    text, said = FILES[case]
    (tmp_path / "own.jsonl").write_text(text)
    rest = [s for s in small if s.startswith(("rollout", "trainer"))]
    (tmp_path / "tokenizer").mkdir()
    character_tokenizer("0123456789+=;>").save_pretrained(tmp_path / "tokenizer")
    result = gspo(
        "train",
        "demo",
        *rest,
        "coldstart=null",
        "data={path: own.jsonl}",
        "verifier.kind=exact",
        "model.tokenizer=tokenizer",
    )
    assert result.exit_code == 3, result.stderr
    assert said in result.stderr


def test_a_verifier_that_refuses_gold_answers(gspo, small, tmp_path):
    (tmp_path / "own.py").write_text("def reward(prompt, completion, answer):\n    return 0.0\n")
    refusing = "verifier={kind: function, function: 'own.py:reward'}"
    result = gspo("train", "demo", *without(small, "verifier"), refusing)
    assert result.exit_code == 3
    assert "gold answer" in result.stderr


def test_no_such_model_folder(gspo, small):
    rest = [s for s in small if not s.startswith("model")]
    result = gspo("train", "demo", "model={path: nowhere}", *rest)
    assert result.exit_code == 3
    assert "nowhere" in result.stderr


def test_a_name_that_is_taken_is_refused_before_a_model_is_built(gspo, small, tmp_path):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "notes.txt").write_text("mine")
    result = gspo("train", "demo", "name=a", *small)
    assert result.exit_code == 3
    assert "not empty (it holds notes.txt)" in result.stderr


def test_an_option_of_the_wrong_type_for_the_task(gspo, small):
    result = gspo("train", "demo", *without(small, "data.options"), "data.options={digits: two}")
    assert result.exit_code == 2
    assert "addition.digits is 'two'; wanted int" in result.stderr


def test_resume_of_a_folder_that_is_no_run(gspo, tmp_path):
    (tmp_path / "f").mkdir()
    result = gspo("train", "f", "--resume")
    assert result.exit_code == 3
    assert "f is no run folder" in result.stderr


def test_a_cut_weight_file_is_found_by_a_dry_run(gspo, small, tmp_path):
    folder = tmp_path / "model"
    tokenizer = character_tokenizer("0123456789+=;>")
    shape = {"hidden": 16, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate": 32}
    save_model(tiny_model(len(tokenizer), seed=0, **shape, max_positions=64), tokenizer, folder)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-8])
    settings = [*without(small, "model", "coldstart"), "coldstart=null"]
    result = gspo("train", "demo", *settings, "model={path: model}", "--dry-run")
    assert result.exit_code == 3
    assert "no whole safetensors file" in result.stderr
