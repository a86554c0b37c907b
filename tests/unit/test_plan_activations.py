"""The formula of a layer against what autograd saves, to the byte."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config, Qwen3MoeConfig

from gspo.plan.activations import kept_a_layer, layers_made_twice
from gspo.plan.memory import Request, plan
from gspo.plan.parts import Setup
from gspo.plan.shape import shape_of
from gspo.policy.forward import TokenLogp
from gspo.recipes.load import load_recipe
from gspo.segments import Segments
from gspo.types import RolloutBatch

PROMPT, RESPONSE, RESPONSES = 20, 30, 2
#: The prompt but its last token once, and each response with that token but without its own last.
TOKENS = PROMPT - 1 + RESPONSES * RESPONSE
SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48}


def batch() -> RolloutBatch:
    generator = torch.Generator().manual_seed(0)
    prompt = torch.arange(PROMPT)
    sequences = [
        torch.cat([prompt, torch.randint(97, (RESPONSE,), generator=generator)])
        for _ in range(RESPONSES)
    ]
    positions = torch.arange(PROMPT + RESPONSE).repeat(RESPONSES)
    segments = Segments.from_lengths([RESPONSE] * RESPONSES)
    zeros = torch.zeros(RESPONSES)
    return RolloutBatch(
        input_ids=torch.cat(sequences),
        positions=positions,
        sequence_lengths=torch.tensor([PROMPT + RESPONSE] * RESPONSES),
        target=(positions >= PROMPT).nonzero().squeeze(1),
        segments=segments,
        engine_logp=torch.zeros(segments.num_tokens),
        advantage=zeros,
        reward=zeros,
        group=zeros.long(),
        version=zeros.long(),
        truncated=zeros.bool(),
        temperature=1.0,
    )


def saved_bytes(config: Any, dtype: torch.dtype, products: torch.dtype | None) -> int:
    """Of all memory that the forward keeps for its backward, parameters left out."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to(dtype)
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved: dict[int, int] = {}
    kept: list[Tensor] = []  # so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    token_logp = TokenLogp(model, products)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        token_logp(batch())
    return sum(saved.values())


def setup_of(config: Any, *settings: str) -> Setup:
    recipe = load_recipe("demo", settings)
    return plan(Request(recipe=recipe, shape=shape_of(config))).setup


@pytest.mark.parametrize(
    ("kind", "more", "dtype", "products"),
    [
        (Qwen3Config, {"head_dim": 16}, torch.float32, None),
        (LlamaConfig, {}, torch.float32, None),
        (Qwen3Config, {"head_dim": 16}, torch.bfloat16, None),
        (Qwen3Config, {"head_dim": 16}, torch.float32, torch.bfloat16),
        (Qwen3MoeConfig, {"head_dim": 16, **EXPERTS}, torch.float32, None),
    ],
    ids=["qwen3", "llama", "bfloat16", "bfloat16 products", "mixture"],
)
def test_a_layer_keeps_what_the_formula_says(kind, more, dtype, products):
    few, many = (kind(**SIZES, **more, num_hidden_layers=number) for number in (1, 3))
    layer = (saved_bytes(many, dtype, products) - saved_bytes(few, dtype, products)) / 2
    name = "bfloat16" if dtype == torch.bfloat16 else "float32"
    trainer = "bfloat16" if products else "model"
    setup = setup_of(many, f"model.dtype={name}", f"trainer.dtype={trainer}")
    weights = 2 * sum(linear.numel for linear in setup.shape.linears) / 3 if products else 0
    planned = TOKENS * kept_a_layer(setup)[0] + weights
    assert layer == pytest.approx(planned, abs=8 * setup.shape.num_experts)  # offsets of experts


def test_the_words_of_the_formula_add_up():
    setup = setup_of(LlamaConfig(**SIZES, num_hidden_layers=2))
    total, text = kept_a_layer(setup)
    terms = [term.split()[:3] for term in text.split(" + ")]
    assert sum(int(size) * int(number.replace(",", "")) for size, _, number in terms) == total


def test_layers_are_made_twice_under_a_head_that_outweighs_them():
    small = Qwen3Config(**{**SIZES, "vocab_size": 50_000}, head_dim=16, num_hidden_layers=2)
    assert layers_made_twice(setup_of(small))
    assert not layers_made_twice(setup_of(Qwen3Config(**SIZES, head_dim=16, num_hidden_layers=2)))
