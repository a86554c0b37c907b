"""The local engine's log-probs against one teacher-forced forward, family by family.

Prompts of different lengths share a batch, so that padding, positions, windows and rows that leave
early all take part. GSPO's clip range is 3e-4 on a mean of such numbers; 1e-5 stays far below.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen3Config,
    Qwen3MoeConfig,
)

from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.errors import DataError
from gspo.types import Prompt, Rollout

SIZES = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 48,
    "initializer_range": 0.2,
}
END_IDS = (1, 2, 7, 8, 13)  # enough for rows to leave at different times
WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
# Without the special ids that some families would otherwise take from a larger vocabulary.
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}

FAMILIES: dict[str, PreTrainedConfig] = {
    "qwen3": Qwen3Config(**SIZES, **NO_IDS),
    "qwen3 eager": Qwen3Config(**SIZES, **NO_IDS, attn_implementation="eager"),
    "llama": LlamaConfig(**SIZES, **NO_IDS),
    "gpt2, learned positions": GPT2Config(
        vocab_size=32,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=48,
        initializer_range=0.2,
        **NO_IDS,
    ),
    "bloom, positions from the mask": BloomConfig(
        vocab_size=32, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.2, **NO_IDS
    ),
    "gemma2, soft-caps and window": Gemma2Config(
        **SIZES,
        **WINDOW,
        **NO_IDS,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
        query_pre_attn_scalar=8,
        attn_implementation="eager",
    ),
    "gemma3, window": Gemma3TextConfig(**SIZES, **WINDOW, **NO_IDS, query_pre_attn_scalar=8),
    "qwen3 moe": Qwen3MoeConfig(
        **SIZES, **NO_IDS, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2
    ),
}


def build(config: PreTrainedConfig) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def decode(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def prompts(lengths: Sequence[int]) -> list[Prompt]:
    return [
        Prompt(id=str(k), text="", ids=[(5 * k + 3 * place) % 29 + 3 for place in range(length)])
        for k, length in enumerate(lengths)
    ]


def rollouts(model: PreTrainedModel, lengths: Sequence[int], max_batch: int) -> list[Rollout]:
    engine = LocalEngine(model, decode, END_IDS, max_batch)
    sampling = Sampling(num_samples=4, max_tokens=9, temperature=0.7, seed=1)
    groups = sorted(engine.generate(prompts(lengths), sampling), key=lambda g: int(g.prompt.id))
    return [rollout for group in groups for rollout in group.rollouts]


def teacher_forced(model: PreTrainedModel, rollout: Rollout, temperature: float) -> list[float]:
    """Log-probs of the response, its sequence alone in one forward without a cache."""
    ids = torch.tensor([[*rollout.prompt_ids, *rollout.response_ids]])
    with torch.no_grad():
        logits = model.eval()(input_ids=ids, use_cache=False).logits[0]
    predicting = logits[len(rollout.prompt_ids) - 1 : -1].float() / temperature
    response = torch.tensor(rollout.response_ids)
    return predicting.log_softmax(-1).gather(-1, response[:, None]).squeeze(-1).tolist()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [(3, 9, 1, 6), (4, 4, 4)])
def test_log_probs_equal_teacher_forcing(family: str, lengths: tuple[int, ...]) -> None:
    model = build(FAMILIES[family])
    sampled = rollouts(model, lengths, max_batch=100)
    assert len({len(rollout.response_ids) for rollout in sampled}) > 2
    for rollout in sampled:
        expected = teacher_forced(model, rollout, temperature=0.7)
        assert rollout.engine_logp == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("family", ["gpt2, learned positions", "gemma3, window"])
def test_batches_of_every_size_give_the_same_samples(family: str) -> None:
    model = build(FAMILIES[family])
    expected = [rollout.response_ids for rollout in rollouts(model, (3, 9, 1, 6), max_batch=100)]
    for max_batch in (1, 3):
        got = [rollout.response_ids for rollout in rollouts(model, (3, 9, 1, 6), max_batch)]
        assert got == expected


def test_recurrent_layers_are_refused_by_name() -> None:
    model = build(MambaConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1))
    with pytest.raises(DataError, match=r"'mamba'.*linear_attention"):
        LocalEngine(model, decode, [1], 8)
