"""What is counted of a model: against torch's own count, and by hand."""

from __future__ import annotations

import pytest
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PreTrainedConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    ViTConfig,
)

from gspo.errors import DataError, RecipeError
from gspo.plan.method import Method, num_quantised, quantised_bytes
from gspo.plan.shape import shape_of

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
LLAMA = LlamaConfig(**SIZES, tie_word_embeddings=False)
QWEN = Qwen3Config(**SIZES, head_dim=4, tie_word_embeddings=True)
MIXTURE = Qwen3MoeConfig(
    **SIZES, head_dim=4, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=6
)


@pytest.mark.parametrize("config", [LLAMA, QWEN, MIXTURE], ids=lambda config: config.model_type)
def test_parameters_are_those_of_the_real_model(config: PreTrainedConfig):
    model = AutoModelForCausalLM.from_config(config)
    shape = shape_of(config)
    assert shape.num_parameters == sum(p.numel() for p in model.parameters())
    assert shape.num_body == sum(p.numel() for p in model.model.layers.parameters())
    assert shape.num_body == 3 * shape.largest_layer


def test_a_tied_head_is_counted_once():
    tied, apart = shape_of(QWEN), shape_of(LLAMA)
    assert (tied.num_embedding, tied.num_head, tied.head_size) == (800, 0, 800)
    assert (apart.num_embedding, apart.num_head) == (800, 800)


def test_a_layer_by_hand():
    """q and o 16 x 16, k and v 16 x 8, three maps 16 x 24, two norms of 16."""
    shape = shape_of(LLAMA)
    assert shape.largest_layer == 2 * 256 + 2 * 128 + 3 * 384 + 2 * 16
    assert sum(linear.numel for linear in shape.linears) == 3 * (512 + 256 + 1152)


def test_a_token_passes_its_experts_alone():
    """Three layers of 8 experts, each 3 maps of 16 x 6; a token uses 2 of the 8."""
    shape = shape_of(MIXTURE)
    assert shape.num_expert == 3 * 8 * 288
    assert shape.num_parameters - shape.num_active == 3 * 6 * 288
    assert shape.num_multiplied == shape.num_active - 800
    assert shape.intermediate == 12


def test_the_family_says_what_is_fused_and_decoded_lean():
    llama, qwen, mixture = (shape_of(config) for config in (LLAMA, QWEN, MIXTURE))
    assert (llama.head_norms, qwen.head_norms, mixture.head_norms) == (False, True, True)
    assert (llama.fused_norms, llama.fused_mlp, llama.lean) == (True, True, True)
    assert (mixture.fused_norms, mixture.fused_mlp, mixture.lean) == (False, False, False)


def test_a_model_that_is_no_language_model_is_refused():
    with pytest.raises(DataError, match="no causal language model for this config"):
        shape_of(ViTConfig())


def test_adapters_by_hand():
    """Rank 2 of q (16 + 16) and v (16 + 8), three layers."""
    method = Method(lora_rank=2, lora_targets=("q_proj", "v_proj"))
    assert method.num_adapter(shape_of(LLAMA)) == 3 * 2 * (32 + 24)
    assert method.num_trained(shape_of(LLAMA)) == 336


def test_without_targets_every_map_of_the_layers_has_an_adapter():
    maps = 2 * 32 + 2 * 24 + 3 * 40
    assert Method(lora_rank=1).num_adapter(shape_of(QWEN)) == 3 * maps


def test_an_unknown_target_names_the_nearest():
    with pytest.raises(RecipeError, match="did you mean 'q_proj'"):
        Method(lora_rank=1, lora_targets=("q_pro",)).num_adapter(shape_of(LLAMA))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"lora_rank": 0}, "wanted at least 1"),
        ({"lora_rank": 8, "base_bits": 5}, "wanted 4 or 8"),
        ({"base_bits": 4}, "add a LoRA rank"),
        ({"lora_targets": ("q_proj",)}, "add a LoRA rank"),
    ],
)
def test_a_method_that_cannot_be_is_refused(settings, told):
    with pytest.raises(RecipeError, match=told):
        Method(**settings)


def test_quantised_weights_carry_their_scales():
    """4 bits: half a byte, a byte for 64 weights and 4 bytes for 256 of those bytes."""
    assert quantised_bytes(16384, 4) == 8192 + 256 + 4
    assert quantised_bytes(1024, 8) == 1024 + 4


def test_experts_are_quantised_with_the_maps():
    shape = shape_of(MIXTURE)
    attention = 2 * 256 + 2 * 128
    assert num_quantised(shape) == 3 * (attention + 8 * 288)
    assert num_quantised(shape_of(LLAMA)) == 3 * (512 + 256 + 1152)
