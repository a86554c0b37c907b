"""Weights that an engine is given: all of a model's parameters, in its shapes, finite."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from transformers import PreTrainedModel

from gspo.errors import DataError, NumericsError, nearest


def check_names(
    given: Mapping[str, Tensor], own: Mapping[str, Tensor], model: PreTrainedModel
) -> None:
    """Every parameter once; of tied ones any name will do, buffers may come along."""
    unknown = sorted(given.keys() - own.keys())
    if unknown:
        raise DataError(
            f"weights hold {unknown[0]!r}, which the engine's model has not; {nearest(unknown[0], own)}"
        )
    present = {id(p) for name, p in model.named_parameters(remove_duplicate=False) if name in given}
    missing = [name for name, p in model.named_parameters() if id(p) not in present]
    if missing:
        raise DataError(
            f"weights lack {len(missing)} of the model's parameters, {missing[0]!r} first; "
            "an engine takes all of them or none"
        )


def checked(name: str, tensor: Tensor, own: Tensor, version: int) -> Tensor:
    """The tensor in the model's dtype, where finite values may have become infinite."""
    if tensor.shape != own.shape:
        raise DataError(
            f"weights give {name!r} shape {tuple(tensor.shape)}; the engine's model has "
            f"{tuple(own.shape)}: trainer and engine must be built from the same model"
        )
    tensor = tensor.to(own.dtype)
    if not bool(tensor.isfinite().all()):
        raise NumericsError(
            f"weights of version {version} hold NaN or inf in {name!r}; the engine keeps the ones "
            "it has: go back to the last good checkpoint"
        )
    return tensor
