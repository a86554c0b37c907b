"""How parameters are kept and trained: bytes of each, in full training, LoRA and a quantised base.

    float32    weights 4, gradient 4, Adam's moments 4 + 4                      16 bytes a parameter
    bfloat16   weights 2, gradient 2, moments 2 + 2                              8
    mixed      weights 2, gradient 2, float32 copy 4, moments 4 + 4             16

The first two are what a recipe's model.dtype says and the trainer here does. `mixed` is what
trainers with a float32 copy of bfloat16 weights do, the plan of a model without a recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gspo.errors import RecipeError, nearest
from gspo.plan.shape import Linear, ModelShape

PrecisionName = Literal["float32", "bfloat16", "mixed"]
BASE_BITS = (4, 8)
#: Bytes a weight beside its own bits. 8 bits: one float32 scale a row, here of 1,024 weights.
#: 4 bits (NF4, arXiv 2305.14314): a scale of 8 bits for 64 weights, and a float32 for 256 of those.
SCALE_BYTES = {8: 4 / 1024, 4: 1 / 64 + 4 / (64 * 256)}
ADAPTER_BYTES = 4  # float32: adapters are few, and their updates small


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes a parameter. optimizer: Adam's moments, and a float32 copy where there is one. compute:
    of activations and of weights that are gathered for a product."""

    name: PrecisionName
    weight: int
    gradient: int
    optimizer: int
    compute: int


PRECISIONS: dict[PrecisionName, Precision] = {
    "float32": Precision("float32", 4, 4, 8, 4),
    "bfloat16": Precision("bfloat16", 2, 2, 4, 2),
    "mixed": Precision("mixed", 2, 2, 12, 2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """lora_rank None: all parameters are trained. lora_targets: names of linear maps, as q_proj;
    empty is all of the layers. base_bits: of the frozen base under adapters, None for its own
    precision.

    Raises RecipeError for a rank below 1, other bits, or a quantised base that would be trained.
    """

    lora_rank: int | None = None
    lora_targets: tuple[str, ...] = ()
    base_bits: int | None = None

    def __post_init__(self) -> None:
        if self.lora_rank is not None and self.lora_rank < 1:
            raise RecipeError(f"the rank of LoRA is {self.lora_rank}; wanted at least 1, as 16")
        if self.base_bits is not None and self.base_bits not in BASE_BITS:
            raise RecipeError(f"a base of {self.base_bits} bits is not known; wanted 4 or 8")
        if self.lora_rank is None and (self.base_bits or self.lora_targets):
            given = "a quantised base" if self.base_bits else "a choice of targets"
            raise RecipeError(
                f"{given} goes with adapters, which are trained instead; add a LoRA rank, as 16"
            )

    @property
    def name(self) -> str:
        """As people call it."""
        if self.lora_rank is None:
            return "full"
        base = f" on a {self.base_bits}-bit base" if self.base_bits else ""
        return f"LoRA rank {self.lora_rank}{base}"

    def adapted(self, shape: ModelShape) -> list[Linear]:
        """The linear maps that get an adapter. RecipeError for a target that the model has not."""
        if self.lora_rank is None:
            return []
        known = {linear.leaf for linear in shape.linears}
        for target in self.lora_targets:
            if target not in known:
                raise RecipeError(
                    f"the model has no linear map {target!r} in its layers; {nearest(target, known)}"
                )
        wanted = set(self.lora_targets) or known
        return [linear for linear in shape.linears if linear.leaf in wanted]

    def num_adapter(self, shape: ModelShape) -> int:
        """Parameters of the adapters: rank x (inputs + outputs) of each map."""
        rank = self.lora_rank or 0
        return sum(rank * (linear.num_in + linear.num_out) for linear in self.adapted(shape))

    def num_trained(self, shape: ModelShape) -> int:
        """Parameters with a gradient."""
        return shape.num_parameters if self.lora_rank is None else self.num_adapter(shape)


def quantised_bytes(num_weights: int, bits: int) -> int:
    """Of weights in so many bits, scales included.

    >>> quantised_bytes(1024, 8)
    1028
    """
    return round(num_weights * (bits / 8 + SCALE_BYTES[bits]))


def num_quantised(shape: ModelShape) -> int:
    """Weights of matrices in the layers, experts included; embedding, head and norms keep their
    precision."""
    inside: Sequence[int] = [linear.numel for linear in shape.linears]
    return sum(inside) + (shape.num_expert if not _experts_are_linear(shape) else 0)


def _experts_are_linear(shape: ModelShape) -> bool:
    return any(".experts." in linear.name for linear in shape.linears)
