"""Which objective a loss means to be, as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gspo.named_settings import objective_settings

#: What a ratio is formed over, and so what a token's gradient weighs: `reference` has the formulas.
Level = Literal["sequence", "token", "geometric", "weight", "gate"]
#: "mean": each response weighs the same, its tokens share that. "uniform": each token the same.
Shape = Literal["mean", "uniform"]

FORMS: dict[str, tuple[Level, Shape]] = {
    "gspo": ("sequence", "mean"),
    "gspo_token": ("sequence", "mean"),
    "grpo": ("token", "mean"),
    "dapo": ("token", "uniform"),
    "dr_grpo": ("token", "uniform"),
    "gmpo": ("geometric", "mean"),
    "cispo": ("weight", "uniform"),
    "sapo": ("gate", "mean"),
    "ppo": ("token", "uniform"),
}

#: Where an objective has no range: between which log-ratios the batches lie, in nats.
NO_RANGE = (math.log(0.8), math.log(1.2))


@dataclass(frozen=True)
class Wanted:
    """low_edge, high_edge: the band on the log-ratio, in nats. log_dual_clip: where PPO's dual
    clip stops a token, in nats, or None. settings: as given, defaults filled in, for display."""

    name: str
    level: Level
    shape: Shape
    low_edge: float
    high_edge: float
    tau_pos: float
    tau_neg: float
    log_dual_clip: float | None
    max_tokens: int | None
    settings: Mapping[str, Any]

    @property
    def per_token(self) -> bool:
        """Advantages are (N, T)."""
        return self.name == "gspo_token"

    @property
    def cuts(self) -> bool:
        """Its clip can make a gradient zero."""
        return self.level in ("sequence", "token", "geometric")

    def divisor(self, num_responses: int, num_tokens: int) -> int:
        """D of the whole optimizer step."""
        if self.max_tokens is not None:
            return num_responses * self.max_tokens
        return num_responses if self.shape == "mean" else num_tokens

    def __str__(self) -> str:
        settings = ", ".join(f"{key}={value:g}" for key, value in self.settings.items())
        return f"{self.name}({settings})"


def wanted_objective(name: str, given: Mapping[str, Any]) -> Wanted:
    """The objective of this name with these settings, named as in `gspo.objective_loss`.

    Raises RecipeError for an unknown name or setting, or an impossible value.
    """
    objective: Any = objective_settings(name, given)
    clip = getattr(objective, "clip", None)
    low_edge, high_edge = clip.band(None) if clip else NO_RANGE
    dual_clip = getattr(objective, "dual_clip", None)
    shown = {"low": clip.low, "high": clip.high} if clip else {}
    rest = ("tau_pos", "tau_neg", "max_tokens", "dual_clip")
    shown |= {key: getattr(objective, key) for key in rest if getattr(objective, key, None)}
    level, shape = FORMS[name]
    return Wanted(
        name=name,
        level=level,
        shape=shape,
        low_edge=low_edge,
        high_edge=high_edge,
        tau_pos=getattr(objective, "tau_pos", 1.0),
        tau_neg=getattr(objective, "tau_neg", 1.05),
        log_dual_clip=None if dual_clip is None else math.log(dual_clip),
        max_tokens=getattr(objective, "max_tokens", None),
        settings=shown,
    )
