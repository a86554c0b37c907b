"""Which objectives the lab sets side by side, with which ranges, and how much noise it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from gspo.errors import RecipeError, nearest
from gspo.settings import (
    CISPO,
    DAPO,
    GMPO,
    GRPO,
    GSPO,
    OBJECTIVES,
    PAPER_CLIP,
    PPO,
    SAPO,
    ClipRange,
    DrGRPO,
    GSPOToken,
    ObjectiveSettings,
)
from gspo.types import Surrogate

#: The article's ranges for its toy: GRPO's is that of the paper's comparison, GSPO's is scaled to
#: how far a response of 32 tokens moves there.
GRPO_CLIP = ClipRange(low=0.2, high=0.27)
SCALED_CLIP = ClipRange(low=0.0225, high=0.03)
MAX_NATS = 100.0  # ten times where objectives hold a log-ratio


@dataclass(frozen=True, slots=True)
class Arm:
    """An objective with its range. What it is compared with has the name `grpo`."""

    objective: ObjectiveSettings

    @property
    def name(self) -> str:
        """The objective's."""
        return self.objective.name

    @property
    def clip(self) -> tuple[float, float] | None:
        """Low and high as the objective means them, or None: SAPO has no clip."""
        clip = getattr(self.objective, "clip", None)
        return None if clip is None else (clip.low, clip.high)

    @property
    def label(self) -> str:
        """Name and range, for a legend."""
        return self.name if self.clip is None else "{} {:g}, {:g}".format(self.name, *self.clip)


def arms(length: int) -> tuple[Arm, ...]:
    """Every objective; GSPO twice, with the article's range for the toy and the paper's.

    length: of every response, Dr. GRPO's limit. The others have their own defaults.
    """
    objectives = (
        GSPO(clip=SCALED_CLIP),
        GSPO(clip=PAPER_CLIP),
        GSPOToken(clip=SCALED_CLIP),
        GRPO(clip=GRPO_CLIP),
        DAPO(),
        DrGRPO(max_tokens=length),
        GMPO(),
        CISPO(),
        SAPO(),
        PPO(),
    )
    return tuple(Arm(objective) for objective in objectives)


def chosen_arms(length: int, names: Sequence[str]) -> tuple[Arm, ...]:
    """The arms of these objectives. Raises RecipeError for a name that is none."""
    for name in names:
        if name not in OBJECTIVES:
            raise RecipeError(f"objective is {name!r}; {nearest(name, list(OBJECTIVES))}")
    return tuple(arm for arm in arms(length) if arm.name in names)


def check_nats(name: str, value: float) -> None:
    """Raises RecipeError for a size of noise that is none, or that no float32 log-prob stands."""
    if not 0 <= value <= MAX_NATS:
        raise RecipeError(f"{name} is {value}; wanted 0 to {MAX_NATS:g} nats")


def cut(surrogate: Surrogate) -> Bool[Tensor, "S"] | Bool[Tensor, "N"]:
    """Units, responses or tokens, whose gradient the clip stopped."""
    return surrogate.cut_low | surrogate.cut_high
