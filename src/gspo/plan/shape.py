"""What a plan must know of a model, counted on torch's meta device: nothing is allocated.

The model is built from its configuration by transformers' own classes, so that parameters are
counted, not guessed; code that comes with a model is never run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig

from gspo.errors import DataError
from gspo.policy.fused import GATED, NORMS

EXPERTS = re.compile(r"\.experts\.")
#: What configurations call the number of experts of a layer.
NUM_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
LEAN_FAMILIES = frozenset({"llama", "qwen2", "qwen3"})  # engines.lean_weights.FAMILIES


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear map of a layer: its full name in the model, outputs and inputs."""

    name: str
    num_out: int
    num_in: int

    @property
    def leaf(self) -> str:
        """Its name inside the layer, as q_proj."""
        return self.name.rpartition(".")[2]

    @property
    def numel(self) -> int:
        """Its weights."""
        return self.num_out * self.num_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes and counts. num_body: all parameters of the layers; num_embedding and num_head: [V, D]
    each, num_head 0 where it is the embedding; num_expert: those of routed experts, of which a
    token uses experts_used of num_experts. largest_layer: parameters of the largest layer;
    largest_matrix: of its largest. fused_norms, fused_mlp: they keep as little for the backward as
    `gspo.policy.fused` makes them.
    """

    kind: str
    vocabulary: int
    hidden: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate: int
    context: int
    num_parameters: int
    num_embedding: int
    num_head: int
    num_body: int
    largest_layer: int
    largest_matrix: int
    num_expert: int
    num_experts: int
    experts_used: int
    head_norms: bool
    fused_norms: bool
    fused_mlp: bool
    linears: tuple[Linear, ...]

    @property
    def num_active(self) -> int:
        """Parameters that one token passes through, embedding and head included."""
        if not self.num_experts:
            return self.num_parameters
        idle = self.num_expert * (self.num_experts - self.experts_used) // self.num_experts
        return self.num_parameters - idle

    @property
    def num_multiplied(self) -> int:
        """Active parameters that are matrix products: without the embedding, with the head."""
        looked_up = self.num_embedding if self.num_head else 0
        return self.num_active - looked_up

    @property
    def head_size(self) -> int:
        """Parameters of the head, tied or not."""
        return self.vocabulary * self.hidden

    @property
    def lean(self) -> bool:
        """The local engine has a path of its own for the family, in float32."""
        return self.kind in LEAN_FAMILIES


def shape_of(config: PreTrainedConfig) -> ModelShape:
    """Raises DataError for a configuration that transformers has no causal language model for."""
    model = _on_meta(config)
    text = config.get_text_config(decoder=True)
    layers = _layers(model)
    in_layers = {id(p) for p in layers.parameters()}
    embedding = model.get_input_embeddings().weight
    head = model.get_output_embeddings()
    apart = head is not None and head.weight is not embedding
    named = list(model.named_parameters())
    kinds = {type(module).__name__ for module in layers.modules()}
    norms = {kind for kind in kinds if kind.endswith("RMSNorm")}
    feed = {kind for kind in kinds if kind.endswith(("MLP", "MoeBlock", "Experts"))}
    num_heads = text.num_attention_heads
    num_experts = _first(text, NUM_EXPERTS) or 0
    return ModelShape(
        kind=config.model_type,
        vocabulary=embedding.shape[0],
        hidden=embedding.shape[1],
        num_layers=len(layers),
        num_heads=num_heads,
        num_kv_heads=getattr(text, "num_key_value_heads", None) or num_heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // num_heads,
        intermediate=_intermediate(text, num_experts),
        context=getattr(text, "max_position_embeddings", None) or 0,
        num_parameters=sum(p.numel() for _, p in named),
        num_embedding=embedding.numel(),
        num_head=embedding.numel() if apart else 0,
        num_body=sum(p.numel() for _, p in named if id(p) in in_layers),
        largest_layer=max(sum(p.numel() for p in layer.parameters()) for layer in layers),
        largest_matrix=max(p.numel() for p in layers.parameters()),
        num_expert=sum(p.numel() for name, p in named if EXPERTS.search(name)),
        num_experts=num_experts,
        experts_used=getattr(text, "num_experts_per_tok", None) or 0,
        head_norms=any(name.endswith(("q_norm.weight", "q_layernorm.weight")) for name, _ in named),
        fused_norms=bool(norms) and norms <= NORMS,
        fused_mlp=bool(feed) and feed <= GATED,
        linears=tuple(_linears(model, in_layers)),
    )


def _on_meta(config: PreTrainedConfig) -> Any:
    try:
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (ValueError, KeyError, AttributeError, TypeError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"transformers has no causal language model for this config (model_type {config.model_type!r}): {first}; code that comes with a model is never run"
        ) from error


def _layers(model: Any) -> nn.ModuleList:
    """The decoder's: the longest list of modules."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    found = [module for module in lists if sum(p.numel() for p in module.parameters())]
    if not found:
        raise DataError(f"{type(model).__name__} has no list of layers; wanted a transformer")
    return max(found, key=lambda module: sum(p.numel() for p in module.parameters()))


def _linears(model: Any, in_layers: set[int]) -> list[Linear]:
    return [
        Linear(name, module.out_features, module.in_features)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and id(module.weight) in in_layers
    ]


def _intermediate(text: Any, num_experts: int) -> int:
    """Width inside the MLP that one token passes: of a mixture, its experts together."""
    plain = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    if not num_experts:
        return plain
    routed = (getattr(text, "moe_intermediate_size", None) or plain) * text.num_experts_per_tok
    return routed + (getattr(text, "shared_expert_intermediate_size", None) or 0)


def _first(text: Any, names: tuple[str, ...]) -> int | None:
    return next((value for name in names if (value := getattr(text, name, None))), None)
