"""AdamW: its settings, its learning rate as a function of the step, its state on disk.

The number of optimizer steps taken is Adam's own step count, kept nowhere else: the learning rate
cannot drift away from the moments, and a skipped step advances neither.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from gspo.errors import DataError, RecipeError, nearest

FORMAT_VERSION = 1
SLOTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps for each parameter


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSettings:
    """AdamW and its schedule. Gradients longer than max_grad_norm are shortened to it; infinity
    leaves them as they are. total_steps: planned optimizer steps, for cosine.

    Weight decay acts on weight matrices only: not on biases and norms (vectors), and not on
    embeddings, where it would shrink the rows of tokens that were not seen. A head tied to the
    embedding is the embedding.
    """

    learning_rate: float
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = 0
    total_steps: int | None = None
    final_fraction: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0

    def __post_init__(self) -> None:
        finite = math.isfinite
        checks = (
            ("learning_rate", finite(self.learning_rate) and self.learning_rate >= 0, "at least 0"),
            ("schedule", self.schedule in ("constant", "cosine"), "'constant' or 'cosine'"),
            ("warmup_steps", self.warmup_steps >= 0, "at least 0"),
            ("final_fraction", 0 <= self.final_fraction <= 1, "a number from 0 to 1"),
            ("betas", all(0 <= beta < 1 for beta in self.betas), "two numbers from 0 to below 1"),
            ("eps", finite(self.eps) and self.eps > 0, "a finite number above 0"),
            ("weight_decay", finite(self.weight_decay) and self.weight_decay >= 0, "at least 0"),
            ("max_grad_norm", self.max_grad_norm > 0, "a number above 0"),
        )
        for name, fine, wanted in checks:
            if not fine:
                raise RecipeError(f"optimizer.{name} is {getattr(self, name)!r}; wanted {wanted}")
        if self.schedule == "cosine" and (self.total_steps or 0) <= self.warmup_steps:
            raise RecipeError(
                f"optimizer.total_steps is {self.total_steps}; the cosine schedule needs the planned"
                f" number of optimizer steps, above optimizer.warmup_steps ({self.warmup_steps})"
            )

    def lr(self, step: int) -> float:
        """Learning rate of the optimizer step that comes after `step` others (the first is 0).

        Warm-up over W steps: learning_rate (step + 1) / W, so no step is spent at 0. Cosine: from
        learning_rate at step W down to final_fraction of it at step total_steps, which is the one
        after the last (step 10 of 10 would be the 11th), and flat from there.

        >>> OptimizerSettings(learning_rate=1.0, warmup_steps=4).lr(0)
        0.25
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        if self.schedule == "constant" or self.total_steps is None:
            return self.learning_rate
        progress = min((step - self.warmup_steps) / (self.total_steps - self.warmup_steps), 1.0)
        cosine = 0.5 * (1 + math.cos(math.pi * progress))
        return self.learning_rate * (self.final_fraction + (1 - self.final_fraction) * cosine)


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.AdamW:
    """AdamW over the trainable parameters, by name, in a decayed and an undecayed group."""
    trainable = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not trainable:
        raise RecipeError(
            "the model has no trainable parameter (requires_grad is False on all of them), so no"
            " step could change it; unfreeze some before training"
        )
    undecayed = {
        id(p)
        for module in model.modules()
        for p in module.parameters(recurse=False)
        if isinstance(module, nn.Embedding) or p.ndim < 2
    }
    groups = [
        {"params": [named for named in trainable if (id(named[1]) in undecayed) == exempt]}
        | {"weight_decay": 0.0 if exempt else settings.weight_decay}
        for exempt in (False, True)
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.lr(0),
        betas=settings.betas,
        eps=settings.eps,
        fused=True,  # one pass: the plain loop makes two temporaries of each parameter's size
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The same learning rate for every group."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def steps_taken(optimizer: torch.optim.Optimizer) -> int:
    """Optimizer steps taken so far, from Adam's own count."""
    return max((int(state["step"]) for state in optimizer.state.values()), default=0)


def save_optimizer(optimizer: torch.optim.Optimizer, folder: str | Path) -> None:
    """Write `optimizer.safetensors` (moments and step counts by parameter name) and
    `optimizer.json` (parameter names and shapes, steps taken) into an existing folder.

    Hyperparameters are not written: they are the recipe's."""
    parameters = _named(optimizer)
    tensors = {
        f"{slot}:{name}": optimizer.state[parameter][slot].contiguous()
        for name, parameter in parameters.items()
        for slot in SLOTS
        if parameter in optimizer.state
    }
    about = {
        "format": FORMAT_VERSION,
        "algorithm": "AdamW",
        "steps_taken": steps_taken(optimizer),
        "parameters": {name: list(p.shape) for name, p in parameters.items()},
    }
    save_file(tensors, Path(folder) / "optimizer.safetensors")
    (Path(folder) / "optimizer.json").write_text(json.dumps(about, indent=1) + "\n")


def load_optimizer(optimizer: torch.optim.Optimizer, folder: str | Path) -> None:
    """Fill the optimizer from what `save_optimizer` wrote; the next step is then bitwise the one
    that would have come.

    Raises:
        DataError: a file is missing or broken, or parameters or slots differ; it names them. The
            optimizer is unchanged then.
    """
    about, tensors = _read(Path(folder))
    parameters = _named(optimizer)
    _refuse_other_parameters(about["parameters"], parameters, folder)
    if not about["steps_taken"]:
        optimizer.state.clear()
        return
    wanted = {f"{slot}:{name}" for name in parameters for slot in SLOTS}
    if missing := sorted(wanted - tensors.keys()):
        raise DataError(
            f"optimizer state in {folder} lacks {len(missing)} of {len(wanted)} tensors, first"
            f" {missing[0]!r}; resuming without it would silently restart Adam. Use another checkpoint"
        )
    for name, parameter in parameters.items():
        step, *moments = (tensors[f"{slot}:{name}"] for slot in SLOTS)
        moved = [moment.to(parameter.device) for moment in moments]  # the step count stays on CPU
        optimizer.state[parameter] = dict(zip(SLOTS, (step, *moved), strict=True))


def _named(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        name: parameter
        for group in optimizer.param_groups
        for name, parameter in zip(group["param_names"], group["params"], strict=True)
    }


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    for name in ("optimizer.json", "optimizer.safetensors"):
        if not (folder / name).is_file():
            raise DataError(f"{folder} has no {name}; wanted a folder written by save_optimizer")
    try:
        about = json.loads((folder / "optimizer.json").read_text())
        tensors = load_file(folder / "optimizer.safetensors")
    except (SafetensorError, ValueError) as error:
        raise DataError(f"optimizer state in {folder} cannot be read: {error}") from error
    if about.get("format") != FORMAT_VERSION:
        raise DataError(
            f"optimizer state in {folder} has format {about.get('format')!r}; this version reads {FORMAT_VERSION}"
        )
    return about, tensors


def _refuse_other_parameters(
    saved: dict[str, list[int]], parameters: dict[str, Tensor], folder: str | Path
) -> None:
    for name, parameter in parameters.items():
        if name not in saved:
            raise DataError(
                f"optimizer state in {folder} has nothing for parameter {name!r};"
                f" {nearest(name, saved)} It belongs to another model or another choice of trained parameters"
            )
        if saved[name] != list(parameter.shape):
            raise DataError(
                f"parameter {name!r} has shape {tuple(parameter.shape)}, in the optimizer state of"
                f" {folder} {tuple(saved[name])}; it belongs to another model"
            )
    if extra := sorted(saved.keys() - parameters.keys()):
        raise DataError(
            f"optimizer state in {folder} has {len(extra)} parameters that are not trained here,"
            f" first {extra[0]!r}; train the same parameters, or start a new optimizer"
        )
