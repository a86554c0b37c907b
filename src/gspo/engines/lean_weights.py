"""The weights of the Llama and Qwen family, arranged for decoding one token a row.

Recognised are models of exactly these classes, made of exactly these modules: RMSNorm, rotary
positions, grouped-query attention to everything before, SwiGLU. For them a layer is four linear
maps, with everything constant folded in: a norm's weight into the map behind it, the softmax scale
into the query, and each head's two halves interleaved, so that a rotation is one complex product.
A dot product of query and key does not see that order.

Folding changes where floats are rounded (1e-7 relative) and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Complex64, Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import SiLUActivation
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3

from gspo.engines.linear import LinearMap, LinearMaps

FAMILIES: dict[str, tuple[str, ModuleType]] = {
    "llama": ("Llama", modeling_llama),
    "qwen2": ("Qwen2", modeling_qwen2),
    "qwen3": ("Qwen3", modeling_qwen3),
}
PARTS = ("ForCausalLM", "Model", "DecoderLayer", "Attention", "MLP", "RMSNorm", "RotaryEmbedding")
PLAIN_MODULES = (nn.Linear, nn.Embedding, nn.ModuleList, SiLUActivation)
#: Rotations that depend on the position alone; the other types change with the longest sequence.
FIXED_ROTATIONS = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class LeanLayer:
    """One layer. Inputs of qkv and gate_up are divided by their norm, without its weight.

    qkv: for each key-value head its query heads, its key, its value, each of head_dim. head_scale:
    weights of the norms over these query heads and the key; None where the family has none.
    """

    qkv: LinearMap
    out: LinearMap
    gate_up: LinearMap
    down: LinearMap
    head_scale: Float[Tensor, "r K"] | None


@dataclass(frozen=True, slots=True)
class LeanWeights:
    """A model's weights as they were when this was built.

    head_gain: weight of the norm before the head, which is not folded in: with many tokens the copy
    would be the largest of all. root, head_root: what a vector's Euclidean norm is joined with, sqrt(size * epsilon), for the
    norms over the hidden size and over a head. num_queries: query heads per key-value head.
    """

    embedding: Float[Tensor, "V D"]
    layers: Sequence[LeanLayer]
    head: LinearMap
    head_gain: Float[Tensor, "D"]
    root: Float[Tensor, ""]
    head_root: Float[Tensor, ""]
    num_kv_heads: int
    num_queries: int
    head_dim: int
    intermediate_size: int


def obstacle(model: PreTrainedModel) -> str | None:
    """Why the lean path does not know this model; None where it does."""
    kind = model.config.model_type
    if kind not in FAMILIES:
        return f"the lean path knows {', '.join(FAMILIES)}, not {kind}"
    prefix, modeling = FAMILIES[kind]
    known = {*PLAIN_MODULES, *(getattr(modeling, prefix + part) for part in PARTS)}
    if type(model) is not getattr(modeling, prefix + PARTS[0]):
        return f"{type(model).__name__} is not {prefix}{PARTS[0]}"
    for name, module in model.named_modules():
        if type(module) not in known or "forward" in vars(module):
            return f"{kind}, but {name} is a {type(module).__name__} of its own"
        if any(vars(module)[hooks] for hooks in ("_forward_hooks", "_forward_pre_hooks")):
            return f"{kind}, but hooks are registered on {name or 'the model'}"
    core: Any = model.model
    if any(getattr(layer.self_attn, "sliding_window", None) for layer in core.layers):
        return f"{kind} has sliding-window layers"
    if core.rotary_emb.rope_type not in FIXED_ROTATIONS:
        return f"{kind} has rotations of type {core.rotary_emb.rope_type}, which change with length"
    other = {parameter.dtype for parameter in model.parameters()} - {torch.float32}
    if other:
        return f"{kind} has weights in {other.pop()}; the lean path computes in float32"
    if len({parameter.device for parameter in model.parameters()}) > 1:
        return f"{kind} is spread over several devices"
    return None


def lean_weights(model: PreTrainedModel, linear_maps: LinearMaps) -> LeanWeights:
    """Weights of a model that `obstacle` has nothing against, as they are now."""
    whole: Any = model
    core, config = whole.model, model.config
    attention = core.layers[0].self_attn
    num_kv_heads = config.num_key_value_heads
    layers = core.layers[: config.num_hidden_layers]

    def root(norm: Any) -> Float[Tensor, ""]:
        return (norm.weight.numel() * torch.full_like(norm.weight[0], norm.variance_epsilon)).sqrt()

    return LeanWeights(
        embedding=core.embed_tokens.weight.detach(),
        layers=[_layer(layer, linear_maps, num_kv_heads) for layer in layers],
        head=linear_maps(whole.lm_head.weight, whole.lm_head.bias),
        head_gain=_gain(core.norm),
        root=root(core.norm),
        head_root=root(attention.q_norm if hasattr(attention, "q_norm") else core.norm),
        num_kv_heads=num_kv_heads,
        num_queries=attention.num_key_value_groups,
        head_dim=attention.head_dim,
        intermediate_size=config.intermediate_size,
    )


def interleaved(values: Float[Tensor, "*_ K"]) -> Float[Tensor, "*_ K"]:
    """Elements i and i + K/2, which one rotation mixes, side by side.

    >>> interleaved(torch.tensor([0.0, 1.0, 2.0, 3.0])).tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    return torch.stack(values.chunk(2, -1), -1).flatten(-2)


def rotations(model: PreTrainedModel, num_positions: int) -> Complex64[Tensor, "T half"]:
    """By how much each pair of a head is turned at positions 0, 1, …, as the model's own module
    says, its scaling included."""
    whole: Any = model
    position = torch.arange(num_positions, device=model.device)[None]
    cos, sin = whole.model.rotary_emb(whole.lm_head.weight, position)
    half = cos.shape[-1] // 2
    return torch.complex(cos[0, :, :half].contiguous(), sin[0, :, :half].contiguous())


def _layer(layer: Any, linear_maps: LinearMaps, num_kv_heads: int) -> LeanLayer:
    attention, feed = layer.self_attn, layer.mlp
    head_scale, scaling = None, attention.scaling
    if hasattr(attention, "q_norm"):
        query, key = (interleaved(_gain(norm)) for norm in (attention.q_norm, attention.k_norm))
        head_scale = torch.stack([query * scaling] * attention.num_key_value_groups + [key])
        scaling = 1.0

    def joined(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Output features in blocks: the queries of a key-value head, its key, its value."""
        blocks = [part.unflatten(0, (num_kv_heads, -1)) for part in (query, key, value)]
        heads = [block.unflatten(1, (-1, attention.head_dim)) for block in blocks]
        turned = [_interleaved_features(head) for head in heads[:2]]
        return torch.cat((turned[0] * scaling, turned[1], heads[2]), 1).flatten(0, 2)

    linear = [getattr(attention, f"{which}_proj") for which in "qkv"]
    qkv_bias = None if linear[0].bias is None else joined(*(each.bias for each in linear))
    qkv = joined(*(each.weight for each in linear)) * _gain(layer.input_layernorm)
    gates = (feed.gate_proj, feed.up_proj)
    gate_bias = None if gates[0].bias is None else torch.cat([each.bias for each in gates])
    gate_up = torch.cat([each.weight for each in gates]) * _gain(layer.post_attention_layernorm)
    return LeanLayer(
        qkv=linear_maps(qkv, qkv_bias),
        out=linear_maps(attention.o_proj.weight, attention.o_proj.bias),
        gate_up=linear_maps(gate_up, gate_bias),
        down=linear_maps(feed.down_proj.weight, feed.down_proj.bias),
        head_scale=head_scale,
    )


def _interleaved_features(
    heads: Float[Tensor, "H r K *D"],
) -> Float[Tensor, "H r K *D"]:
    """The head's size is the third dimension here, of a weight and of a bias."""
    return interleaved(heads.transpose(2, -1)).transpose(2, -1)


def _gain(norm: Any) -> Float[Tensor, "D"]:
    """The norm's weight times sqrt(D), so that dividing by the Euclidean norm is enough:
    x / sqrt(|x|^2 / D + e) = sqrt(D) x / sqrt(|x|^2 + D e)."""
    return norm.weight.detach() * norm.weight.numel() ** 0.5
