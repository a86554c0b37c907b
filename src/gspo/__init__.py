"""Critic-free reinforcement learning for language models, with a measured trust region.

Names are imported when first used, so that `import gspo` loads neither torch nor anything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gspo import objectives, testing
    from gspo.advantages import group_advantage
    from gspo.calibrate.fit import fit_clip_range
    from gspo.padded import gspo_loss, objective_loss
    from gspo.plan.memory import plan_memory
    from gspo.recipes.load import load_recipe
    from gspo.recipes.train import train
    from gspo.recorders.reader import open_run
    from gspo.segments import Segments
    from gspo.settings import ClipRange, LengthFairClip, LogClip

__all__ = [
    "ClipRange",
    "LengthFairClip",
    "LogClip",
    "Segments",
    "fit_clip_range",
    "group_advantage",
    "gspo_loss",
    "load_recipe",
    "objective_loss",
    "objectives",
    "open_run",
    "plan_memory",
    "testing",
    "train",
]

#: Where each name is defined.
_HOME = {
    "ClipRange": "gspo.settings",
    "LengthFairClip": "gspo.settings",
    "LogClip": "gspo.settings",
    "Segments": "gspo.segments",
    "fit_clip_range": "gspo.calibrate.fit",
    "group_advantage": "gspo.advantages",
    "gspo_loss": "gspo.padded",
    "load_recipe": "gspo.recipes.load",
    "objective_loss": "gspo.padded",
    "open_run": "gspo.recorders.reader",
    "plan_memory": "gspo.plan.memory",
    "train": "gspo.recipes.train",
}


def __getattr__(name: str) -> Any:
    if name in {"objectives", "testing"}:
        return import_module(f"gspo.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gspo' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
