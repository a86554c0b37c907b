"""The least time: counted by hand for a shape of one layer."""

from __future__ import annotations

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from bench.versus.roofline import Rates, generation_s, update_s
from bench.versus.shapes import SMALL, SMOLLM2, Shape

# queries and output 2 x 4x4, keys and values 2 x 4x2, MLP 3 x 4x8: 32 + 16 + 96 = 144 weights.
ONE = Shape(
    name="one",
    family="qwen3",
    hidden=4,
    layers=1,
    heads=2,
    kv_heads=1,
    head_dim=2,
    intermediate=8,
    vocab=10,
)
FAST_MEMORY = Rates(flops=1.0, bytes=1e12)
FAST_ARITHMETIC = Rates(flops=1e12, bytes=1.0)


def test_what_a_token_costs():
    assert (ONE.body_parameters, ONE.head_parameters) == (144, 40)
    assert ONE.kv_values == 4  # one key and one value of 2 numbers
    assert ONE.attention_width == 8  # 2 heads x 2 numbers, once with keys and once with values


@pytest.mark.parametrize("shape", [SMALL, SMOLLM2], ids=lambda shape: shape.name)
def test_weights_are_those_of_the_model_without_its_norms(shape):
    import torch

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(shape.family, **shape.config())
        )
    matrices = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    assert matrices == shape.body_parameters + shape.head_parameters


def generation(rates: Rates) -> float:
    return generation_s(ONE, rates, groups=1, samples=2, prompt=3, response=2, width=4)


def test_generation_bound_by_arithmetic():
    # Prompt: 3 tokens attend to 1 + 2 + 3 keys, one set of logits for the group.
    prompt = 2 * 144 * 3 + 2 * 40 + 2 * 8 * 6
    # One step feeds 2 rows, each attending to 3 + 1 tokens.
    step = 2 * (144 + 40) * 2 + 2 * 8 * 2 * (3 + 1)
    assert generation(FAST_MEMORY) == pytest.approx(prompt + step)


def test_generation_bound_by_memory():
    # The body once for the prompt; then all weights, the prompt's cache once, one token a row.
    assert generation(FAST_ARITHMETIC) == pytest.approx(4 * 144 + 4 * (184 + 4 * (3 + 2)))


def test_update_reads_a_prompt_once_and_pays_three_forwards():
    prompt = 2 * 144 * 3 + 2 * 8 * 6
    # Responses of 2 and 1: their tokens attend to the 3 of the prompt and to themselves.
    responses = 2 * (144 + 40) * 3 + 2 * 8 * ((2 * 3 + 3) + (1 * 3 + 1))
    took = update_s(ONE, FAST_MEMORY, groups=[(3, [2, 1])])
    assert took == pytest.approx(3 * (prompt + responses))


def test_nothing_to_train_on_takes_no_time():
    assert update_s(ONE, FAST_MEMORY, groups=[]) == 0
