"""A rough memory plan for --dry-run, by part.

Bytes for N parameters of b bytes: weights N b, gradients N b, AdamW's two moments 2 N b. The head
holds logits of one micro-batch about three times over (logits, log-softmax, their gradient),
4 bytes each. The cache holds keys and values of `engine.max_batch` responses. Parameters are
counted on torch's meta device: nothing is allocated.
"""

from __future__ import annotations

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig

from gspo.policy.model import tiny_config
from gspo.recipes.build import shape_of
from gspo.recipes.prepare import Prepared
from gspo.recipes.schema import NewModel, Recipe

LOGIT_COPIES = 3
FLOAT32_BYTES = 4


def memory_plan(recipe: Recipe, prepared: Prepared) -> dict[str, int]:
    """Bytes by part, and their sum under "total"."""
    config = _config(recipe, prepared)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    count = sum(p.numel() for p in model.parameters())
    size = {"float32": 4, "bfloat16": 2}[recipe.model.dtype]
    text = config.get_text_config()
    tokens = recipe.trainer.max_tokens_per_microbatch
    longest = max(len(p.ids) for p in prepared.prompts) + recipe.rollout.max_tokens
    response_share = recipe.rollout.max_tokens / longest
    rows = min(recipe.engine.max_batch, recipe.rollout.prompts * recipe.rollout.group)
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    kv_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    parts = {
        "weights": count * size,
        "gradients": count * size,
        "optimizer": 2 * count * size,
        "logits": round(LOGIT_COPIES * FLOAT32_BYTES * tokens * response_share * text.vocab_size),
        "kv_cache": 2 * text.num_hidden_layers * kv_heads * head_dim * rows * longest * size,
    }
    return {**parts, "total": sum(parts.values())}


def _config(recipe: Recipe, prepared: Prepared) -> PretrainedConfig:
    if not isinstance(recipe.model, NewModel):
        return AutoConfig.from_pretrained(recipe.model.path, local_files_only=True)
    return tiny_config(len(prepared.tokenizer), **shape_of(recipe.model))
