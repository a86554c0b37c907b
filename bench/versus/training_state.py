"""What both workers do with a model and its AdamW: allocate, set back, write gradients.

torch and safetensors only: both environments read it.
"""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn


def allocate(optimizer: torch.optim.Optimizer) -> None:
    """Moments of zero, as before the first step: a step with gradients of zero, then forgotten."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    forget(optimizer)


def forget(optimizer: torch.optim.Optimizer) -> None:
    """Moments and step counts back to zero, memory kept."""
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()


def restore(model: nn.Module, folder: Path) -> None:
    """The weights of the folder, written into the model's own memory."""
    own = model.state_dict()
    with torch.no_grad():
        for name, tensor in load_file(folder / "model.safetensors").items():
            own[name].copy_(tensor)


class GradientCapture:
    """Writes what the optimizer is about to use: one file for each step of a run."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model = model
        self._folder: Path | None = None
        self._step = 0
        optimizer.register_step_pre_hook(lambda *_: self._write())

    def start(self, folder: str | None) -> None:
        """Write the steps of the next run into this folder; None for not at all."""
        self._folder = None if folder is None else Path(folder)
        self._step = 0

    def _write(self) -> None:
        if self._folder is None:
            return
        gradients = {
            name: parameter.grad.float().contiguous()
            for name, parameter in self._model.named_parameters()
            if parameter.grad is not None
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        save_file(gradients, self._folder / f"{self._step}.safetensors")
        self._step += 1
