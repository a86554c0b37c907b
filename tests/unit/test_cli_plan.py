"""`gspo plan` as it is called."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from gspo.cli.main import build_app
from gspo.cli.plan import size_text
from gspo.plan import machine
from gspo.plan.devices import Device


def call(*words: str) -> Result:
    return CliRunner().invoke(build_app(), ["plan", *words])


def test_json_is_one_object_with_its_stable_keys():
    report = json.loads(call("demo", "--json").stdout)
    assert report["fits"] is None
    assert report["total"] == sum(report["parts"].values())
    wanted = {"weights", "gradients", "optimizer", "activations", "head", "kv_cache", "engine_copy"}
    assert wanted <= report["parts"].keys() == report["formulas"].keys()
    assert (report["time"], report["beside"], report["measured"]) == (None, None, None)


def test_a_device_gives_times_and_an_answer():
    report = json.loads(call("demo", "--device", "l4", "--json").stdout)
    assert report["fits"] is True
    assert report["time"]["step_s"] > 0
    assert report["beside"]["dpo_over_sft"] == pytest.approx(4 / 3, rel=0.01)
    assert report["suggestions"] == []


def test_the_page_shows_formulas_stages_and_what_to_change():
    shape = ["model.hidden=4096", "model.layers=24", "model.intermediate=16384"]
    printed = call("demo", *shape, "--device", "l4").stdout
    assert "parameters x 4 bytes" in printed
    assert "total" in printed
    assert "NO: " in printed
    assert "trainer.max_tokens_per_microbatch=74" in printed
    assert "the same tokens: SFT" in printed


def test_adapters_and_devices_are_options():
    words = (
        "--lora",
        "4",
        "--lora-targets",
        "q_proj, v_proj",
        "--base-bits",
        "8",
        "--devices",
        "2",
    )
    report = json.loads(call("demo", *words, "--json").stdout)
    assert report["method"] == "LoRA rank 4 on a 8-bit base"
    assert report["num_trained"] == 4 * 4 * ((128 + 128) + (128 + 64))
    assert report["devices"] == 2


def test_a_model_is_planned_in_mixed_precision_unless_told(tmp_path):
    config = {"model_type": "llama", "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 4096}))
    report = json.loads(call(str(tmp_path), "--json").stdout)
    assert report["precision"] == "mixed"
    assert report["parts"]["optimizer"] == 12 * report["num_parameters"]
    told = json.loads(call(str(tmp_path), "model.dtype=float32", "--json").stdout)
    assert told["precision"] == "float32"


def test_this_machine_is_measured(monkeypatch):
    limit = 3 * 2**30
    monkeypatch.setattr(machine, "memory_limit", lambda: limit)
    monkeypatch.setattr(machine, "_product_rate", lambda kind, dtype: 1e11)
    monkeypatch.setattr(machine, "_copy_rate", lambda kind: 1e10)
    monkeypatch.setattr(machine.torch.cuda, "is_available", lambda: False)
    report = json.loads(call("demo", "--device", "this-machine", "--json").stdout)
    assert (report["device"]["memory"], report["device"]["is_cpu"]) == (limit, True)
    assert report["fits"] is True


def test_the_measured_speeds_are_of_this_world():
    found: Device = machine.this_machine()
    assert 1e8 < found.float32 < 1e16
    assert 1e8 < found.bandwidth < 1e14
    assert found.memory > 2**28


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("demo", "--device", "h10"), 2, "did you mean 'h100'"),
        (("nothing-of-this-name",), 3, "no recipe, no model folder"),
        (("demo", "--base-bits", "4"), 2, "add a LoRA rank"),
        (("demo", "--run", "nowhere"), 3, "nowhere"),
    ],
)
def test_what_is_wrong_is_said(words, code, told):
    result = call(*words)
    assert result.exit_code == code
    assert told in result.stderr


def test_sizes_for_people():
    assert size_text(3 * 2**30) == "3.00 GiB"
    assert size_text(-(2**20)) == "-1.0 MiB"
