"""Model shapes: their Hugging Face configuration, and what one token costs in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

PAD_ID = 0
MAX_POSITIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder with grouped-query attention, a gated MLP and a tied head."""

    name: str
    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int

    @property
    def body_parameters(self) -> int:
        """Weights of the matrices that every token passes, the head left out."""
        queries = self.hidden * self.heads * self.head_dim
        keys_and_values = 2 * self.hidden * self.kv_heads * self.head_dim
        return self.layers * (2 * queries + keys_and_values + 3 * self.hidden * self.intermediate)

    @property
    def head_parameters(self) -> int:
        """Weights of the head, which are the embedding's."""
        return self.vocab * self.hidden

    @property
    def kv_values(self) -> int:
        """Numbers that one token keeps in the cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim

    @property
    def attention_width(self) -> int:
        """Multiply-adds of one query with one key and its value, over all layers and heads."""
        return 2 * self.layers * self.heads * self.head_dim

    def config(self) -> dict[str, Any]:
        """Arguments of the family's configuration class."""
        return {
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": MAX_POSITIONS,
            "tie_word_embeddings": True,
            "pad_token_id": PAD_ID,
            "bos_token_id": None,
            "eos_token_id": None,
        }


SMALL = Shape(
    name="5M",
    family="qwen3",
    hidden=256,
    layers=6,
    heads=4,
    kv_heads=2,
    head_dim=64,
    intermediate=768,
    vocab=1024,
)
SMOLLM2 = Shape(
    name="135M",
    family="llama",
    hidden=576,
    layers=30,
    heads=9,
    kv_heads=3,
    head_dim=64,
    intermediate=1536,
    vocab=49_152,
)


def with_vocab(vocab: int) -> Shape:
    """The body of 5M under a head of this many tokens."""
    return replace(SMALL, name=f"5M, V={vocab:,}", vocab=vocab)
