"""Model folders: exact round trip, and refusals that say what is missing."""

import json

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast, Qwen3ForCausalLM

from gspo.errors import DataError, NumericsError, RecipeError
from gspo.policy.model import load_model, save_model, tiny_model


def tiny(seed=0, **changes):
    shape = {
        "hidden": 32,
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "intermediate": 48,
        "max_positions": 64,
    }
    return tiny_model(11, seed=seed, **(shape | changes))


def tokenizer():
    words = Tokenizer(WordLevel({"<eos>": 0, "a": 1, "b": 2}, unk_token="<eos>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>")


@pytest.fixture
def folder(tmp_path):
    save_model(tiny(), tokenizer(), tmp_path / "model")
    return tmp_path / "model"


def test_the_documented_shape_has_0_8_million_parameters():
    model = tiny(hidden=128, layers=4, intermediate=384)
    assert 0.75e6 < sum(p.numel() for p in model.parameters()) < 1e6
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_seed_decides_the_weights_and_the_random_state_stays():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two, other = tiny(1), tiny(1), tiny(2)
    assert torch.equal(torch.rand(3), expected)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
        assert a.dtype == torch.float32
    assert not torch.equal(one.lm_head.weight, other.lm_head.weight)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(RecipeError, match="hidden 32, heads 4, kv_heads 3"):
        tiny(kv_heads=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_round_trip_is_bitwise_exact(tmp_path, dtype):
    model = tiny().to(dtype)
    model.generation_config = GenerationConfig(eos_token_id=[0, 2], pad_token_id=0)
    save_model(model, tokenizer(), tmp_path)
    again = load_model(tmp_path, dtype)
    assert again.dtype == dtype
    assert again.lm_head.weight is again.model.embed_tokens.weight
    before, after = model.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    assert again.generation_config.eos_token_id == [0, 2]
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == tokenizer().get_vocab()
    assert not list(tmp_path.glob("*.bin"))


def test_dtype_is_what_was_asked_not_what_was_saved(folder):
    assert load_model(folder, torch.bfloat16).dtype == torch.bfloat16


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    model = tiny()
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 3] = torch.nan
    with pytest.raises(NumericsError, match=r"model\.layers\.1\.mlp\.up_proj\.weight' has 1 of"):
        save_model(model, tokenizer(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_hub_name_is_no_folder():
    with pytest.raises(DataError, match=r"'Qwen/Qwen3-0\.6B' does not exist.*Nothing is fetched"):
        load_model("Qwen/Qwen3-0.6B", torch.float32)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "has no config.json"),
        (lambda f: (f / "model.safetensors").unlink(), "neither model.safetensors nor"),
        (
            lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
            r"found \['pytorch_model.bin'\].*Pickled weights are not read",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 9), "no whole safetensors file"),
        (lambda f: (f / "config.json").write_text("{"), "cannot be loaded"),
    ],
)
def test_a_damaged_folder_says_what_is_wrong(folder, damage, message):
    damage(folder)
    with pytest.raises(DataError, match=message):
        load_model(folder, torch.float32)


def test_a_missing_shard_is_named(folder):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=r"lacks 1 of 1 weight files, first 'model-00001"):
        load_model(folder, torch.float32)


def test_weights_that_are_not_in_the_folder_are_not_left_at_random(folder):
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = 3
    config["layer_types"] = ["full_attention"] * 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=r"lacks 11 weights.*first 'model\.layers\.2\."):
        load_model(folder, torch.float32)


def test_code_in_a_model_folder_is_not_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "surprise",
        "auto_map": {
            "AutoConfig": "surprise.SurpriseConfig",
            "AutoModelForCausalLM": "surprise.Surprise",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "surprise.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    with pytest.raises(DataError, match="cannot be loaded"):
        load_model(folder, torch.float32)
    assert not (folder / "ran").exists()


def test_the_folder_is_one_any_hugging_face_program_reads(folder):
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    assert torch.equal(model.lm_head.weight, tiny().lm_head.weight)
