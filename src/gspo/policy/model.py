"""Causal language models as Hugging Face folders: make a tiny one, load, save.

Nothing here reaches a hub, runs code from a model folder or reads a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils import logging

from gspo.errors import DataError, NumericsError, RecipeError

WEIGHTS_FILE = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"


def tiny_config(
    vocab_size: int,
    *,
    hidden: int,
    layers: int,
    heads: int,
    kv_heads: int,
    intermediate: int,
    max_positions: int,
) -> Qwen3Config:
    """A Qwen3-shaped configuration with tied embeddings.

    hidden 128, 4 layers, 4 heads, 2 kv heads, intermediate 384 is 0.8 M parameters.
    """
    if hidden % heads or heads % kv_heads:
        raise RecipeError(
            f"hidden {hidden}, heads {heads}, kv_heads {kv_heads}: hidden must be a multiple of"
            " heads, and heads of kv_heads"
        )
    return Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=hidden // heads,
        max_position_embeddings=max_positions,
        tie_word_embeddings=True,
        dtype=torch.float32,
    )


def tiny_model(vocab_size: int, *, seed: int, **shape: int) -> PreTrainedModel:
    """The model of `tiny_config(vocab_size, **shape)` in float32 with random weights; the same seed
    gives the same weights, and the caller's random state is left as it was."""
    config = tiny_config(vocab_size, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config).float()


def load_model(path: str | Path, dtype: torch.dtype) -> PreTrainedModel:
    """The causal language model in a local Hugging Face folder, in this dtype.

    Raises:
        DataError: no such folder, a file is missing or broken, the architecture needs code from
            the folder, or some weights are not in it (they would be left at random).
    """
    folder = Path(path)
    check_folder(folder)
    try:
        with _without_progress_bars():
            loaded = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise DataError(f"model folder {str(folder)!r} cannot be loaded: {error}") from error
    model, report = cast("tuple[PreTrainedModel, dict[str, Any]]", loaded)
    absent = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if absent:
        raise DataError(
            f"model folder {str(folder)!r} lacks {len(absent)} weights or has them in another"
            f" shape, first {absent[0]!r}; they would be left at random. Save the model again"
        )
    return model


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, path: str | Path
) -> None:
    """Write model, generation config (end tokens included) and tokenizer as a Hugging Face folder.

    Raises:
        NumericsError: a weight is not finite; nothing is written.
    """
    refuse_nonfinite(model)
    with _without_progress_bars():
        model.save_pretrained(path)
    tokenizer.save_pretrained(path)


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """A bar for each checkpoint would drown the run's own display."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def refuse_nonfinite(model: nn.Module) -> None:
    """Raise NumericsError naming the first parameter that holds NaN or infinity: such a model is
    neither saved nor handed to an engine."""
    for name, parameter in model.named_parameters():
        # Smallest and largest carry NaN along, and need no temporary of the parameter's size.
        if not all(bool(extreme.isfinite()) for extreme in parameter.detach().aminmax()):
            num_bad = parameter.numel() - int(parameter.isfinite().sum())
            raise NumericsError(
                f"parameter {name!r} has {num_bad} of {parameter.numel()} values that are not"
                " finite; wanted none. Go back to the last good checkpoint and lower the learning rate"
            )


def without_dropout(model: nn.Module) -> None:
    """eval() mode, and every dropout at 0.

    The ratio compares the policy now with the policy at the start of the step. Dropout would make
    it differ from 1 before anything was learned, by far more than a clip range of 3e-4; so update
    and score run the same forward. Attention modules keep their own rate as a number.
    """
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "attention_dropout", None), float):
            object.__setattr__(module, "attention_dropout", 0.0)


def check_folder(path: str | Path) -> None:
    """DataError, naming what is wrong, unless this is a Hugging Face folder whose weight files are
    there and whole enough to tell their tensors."""
    folder = Path(path)
    wanted = "wanted a local Hugging Face folder with config.json and *.safetensors"
    if not folder.is_dir():
        raise DataError(
            f"model folder {str(folder)!r} does not exist; {wanted}. Nothing is fetched from a hub:"
            " download the model first"
        )
    if not (folder / "config.json").is_file():
        raise DataError(f"model folder {str(folder)!r} has no config.json; {wanted}")
    if (folder / WEIGHTS_FILE).is_file():
        _check_header(folder / WEIGHTS_FILE)
        return
    if not (folder / WEIGHTS_INDEX).is_file():
        others = sorted(p.name for p in folder.glob("*.bin")) or "nothing else with weights"
        raise DataError(
            f"model folder {str(folder)!r} has neither {WEIGHTS_FILE} nor {WEIGHTS_INDEX} (found"
            f" {others}); {wanted}. Pickled weights are not read: save them as safetensors"
        )
    shards = set(json.loads((folder / WEIGHTS_INDEX).read_text())["weight_map"].values())
    if missing := sorted(shard for shard in shards if not (folder / shard).is_file()):
        raise DataError(
            f"model folder {str(folder)!r} lacks {len(missing)} of {len(shards)} weight files,"
            f" first {missing[0]!r}; {wanted}"
        )
    for shard in sorted(shards):
        _check_header(folder / shard)


def _check_header(file: Path) -> None:
    """The header says how long the file must be: a cut file, or a pointer to one, is noticed."""
    try:
        with safe_open(file, framework="pt") as weights:
            names = list(weights.keys())
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file} is no whole safetensors file: {error}; copy it again") from error
    if not names:
        raise DataError(f"{file} holds no tensors; copy it again")
