"""Clip ranges and the settings of every objective. An objective's settings *are* the objective:
frozen, complete, callable on ragged log-probs. Nothing here imports torch until it is called.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from gspo.errors import RecipeError

if TYPE_CHECKING:
    from torch import Tensor

    from gspo.segments import Segments
    from gspo.types import Surrogate

Unit = Literal["sequence", "token"]
Denominator = Literal["responses", "tokens", "constant"]
AdvantagePer = Literal["response", "token"]


def _distance(owner: str, name: str, value: float, largest: float) -> None:
    if not (isinstance(value, Real) and math.isfinite(value) and 0 <= value <= largest):
        raise RecipeError(
            f"{owner}.{name} is {value!r}; wanted a finite number from 0 to {largest:g}"
        )


@dataclass(frozen=True, slots=True)
class ClipRange:
    """Distances below and above ratio 1: the ratio may move in [1 - low, 1 + high].

    low = 1 means no lower cut: a ratio is never negative.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _distance("ClipRange", "low", self.low, 1.0)
        _distance("ClipRange", "high", self.high, 1e6)

    def band(self, lengths: Tensor) -> tuple[float, float]:
        """Bounds on the log-ratio, in nats; the same for every length."""
        return (math.log1p(-self.low) if self.low < 1 else -math.inf), math.log1p(self.high)


@dataclass(frozen=True, slots=True)
class LogClip:
    """Distances in log space: the log-ratio may move in [-low, +high] nats (GMPO's form)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _distance("LogClip", "low", self.low, 1e6)
        _distance("LogClip", "high", self.high, 1e6)

    def band(self, lengths: Tensor) -> tuple[float, float]:
        """Bounds on the log-ratio, in nats; the same for every length."""
        return -self.low, self.high


@dataclass(frozen=True, slots=True)
class LengthFairClip:
    """Band on log s that narrows as 1/sqrt(L): [-low/sqrt(L), +high/sqrt(L)] nats.

    Where token log-ratios are independent noise of spread sigma, log s of a response of L tokens
    has spread sigma/sqrt(L), so this band cuts the same share at every length (FSPO,
    arXiv 2509.09177). low and high are in nats times sqrt(token).
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _distance("LengthFairClip", "low", self.low, 1e6)
        _distance("LengthFairClip", "high", self.high, 1e6)

    def band(self, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds on log s, in nats, one pair per response; an empty response counts as length 1."""
        scale = lengths.clamp(min=1).double().rsqrt()
        return -self.low * scale, self.high * scale


#: Qwen3-30B-A3B, 4 minibatches (arXiv 2507.18071, section 5.1). A starting point, not a default
#: that carries over: `clip: auto` measures.
PAPER_CLIP = ClipRange(low=3e-4, high=4e-4)

SequenceClip = ClipRange | LengthFairClip


@runtime_checkable
class Objective(Protocol):
    """What the trainer needs of an objective. Every settings class below is one."""

    name: ClassVar[str]
    source: ClassVar[str]
    unit: ClassVar[Unit]
    denominator: ClassVar[Denominator]
    advantage_per: ClassVar[AdvantagePer]

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate: ...

    def divisor(self, num_responses: int, num_tokens: int) -> int: ...

    def dead(self, surrogate: Surrogate) -> Tensor: ...


class ObjectiveSettings(ABC):
    """What all objectives share: the denominator they name and the meaning of dead."""

    __slots__ = ()
    name: ClassVar[str]
    source: ClassVar[str]
    unit: ClassVar[Unit]
    denominator: ClassVar[Denominator] = "responses"
    advantage_per: ClassVar[AdvantagePer] = "response"
    clip_kinds: ClassVar[tuple[type, ...]] = (ClipRange,)

    def __post_init__(self) -> None:
        clip = getattr(self, "clip", None)
        if clip is not None and not isinstance(clip, self.clip_kinds):
            kinds = " or ".join(kind.__name__ for kind in self.clip_kinds)
            raise RecipeError(f"{self.name}.clip is {clip!r}; wanted {kinds} with low and high")

    @abstractmethod
    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        """Undivided loss of each response and what was cut."""

    def divisor(self, num_responses: int, num_tokens: int) -> int:
        """D of one optimizer step. num_responses counts non-empty scored responses, num_tokens
        their trained tokens, both over all micro-batches and ranks. At least 1."""
        return max(num_tokens if self.denominator == "tokens" else num_responses, 1)

    def dead(self, surrogate: Surrogate) -> Tensor:
        """Bool[S]: responses whose whole gradient is exactly zero."""
        return surrogate.segments.sum(surrogate.weight.abs()) == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GSPO(ObjectiveSettings):
    """One length-normalised ratio and one clip decision per response."""

    name: ClassVar = "gspo"
    source: ClassVar = "arXiv 2507.18071, equations 5 and 7"
    unit: ClassVar[Unit] = "sequence"
    clip_kinds: ClassVar = (ClipRange, LengthFairClip)
    clip: SequenceClip = PAPER_CLIP

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.sequence import gspo

        return gspo(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class GSPOToken(ObjectiveSettings):
    """GSPO with one advantage per token; the ratio and its clip stay the response's."""

    name: ClassVar = "gspo_token"
    source: ClassVar = "arXiv 2507.18071, equations 13 and 14"
    unit: ClassVar[Unit] = "sequence"
    advantage_per: ClassVar[AdvantagePer] = "token"
    clip_kinds: ClassVar = (ClipRange, LengthFairClip)
    clip: SequenceClip = PAPER_CLIP

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.sequence import gspo_token

        return gspo_token(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class GRPO(ObjectiveSettings):
    """Token ratios, token clip, mean over tokens, then mean over responses."""

    name: ClassVar = "grpo"
    source: ClassVar = "arXiv 2402.03300, equation 3"
    unit: ClassVar[Unit] = "token"
    clip: ClipRange = ClipRange(low=0.2, high=0.2)

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.token import grpo

        return grpo(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class DAPO(ObjectiveSettings):
    """GRPO's token surrogate with a higher upper bound, summed and divided by all tokens."""

    name: ClassVar = "dapo"
    source: ClassVar = "arXiv 2503.14476, equation 8"
    unit: ClassVar[Unit] = "token"
    denominator: ClassVar[Denominator] = "tokens"
    clip: ClipRange = ClipRange(low=0.2, high=0.28)

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.token import dapo

        return dapo(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class DrGRPO(ObjectiveSettings):
    """GRPO's token surrogate, summed and divided by responses x max_tokens: no length bias.
    Meant for advantages without division by the standard deviation (`scale: none`)."""

    name: ClassVar = "dr_grpo"
    source: ClassVar = "arXiv 2503.20783, section 3.2"
    unit: ClassVar[Unit] = "token"
    denominator: ClassVar[Denominator] = "constant"
    max_tokens: int
    clip: ClipRange = ClipRange(low=0.2, high=0.2)

    def __post_init__(self) -> None:
        ObjectiveSettings.__post_init__(self)
        if self.max_tokens < 1:
            raise RecipeError(
                f"dr_grpo.max_tokens is {self.max_tokens}; wanted the response length limit, at least 1"
            )

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.token import dr_grpo

        return dr_grpo(logp, old_logp, advantage, segments, clip=self.clip)

    def divisor(self, num_responses: int, num_tokens: int) -> int:
        """Responses times the longest response allowed: a constant for a full batch."""
        return max(num_responses, 1) * self.max_tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class GMPO(ObjectiveSettings):
    """Geometric mean of token ratios, each clipped on one side in log space first."""

    name: ClassVar = "gmpo"
    source: ClassVar = "arXiv 2507.20673, equation 4"
    unit: ClassVar[Unit] = "token"
    clip_kinds: ClassVar = (LogClip,)
    clip: LogClip = LogClip(low=0.4, high=0.4)

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.geometric import gmpo

        return gmpo(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class CISPO(ObjectiveSettings):
    """REINFORCE with a clipped, detached token ratio as weight: no token's gradient is dropped.

    The default has no lower cut and holds the ratio at 5, as MiniMax-M1 leaves the lower side
    open and public recipes use 5.
    """

    name: ClassVar = "cispo"
    source: ClassVar = "arXiv 2506.13585, equations 4 and 5"
    unit: ClassVar[Unit] = "token"
    denominator: ClassVar[Denominator] = "tokens"
    clip: ClipRange = ClipRange(low=1.0, high=4.0)

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.soft import cispo

        return cispo(logp, old_logp, advantage, segments, clip=self.clip)


@dataclass(frozen=True, kw_only=True, slots=True)
class SAPO(ObjectiveSettings):
    """A sigmoid gate on the token ratio instead of a clip; tau is its steepness by sign of A."""

    name: ClassVar = "sapo"
    source: ClassVar = "arXiv 2511.20347, equations 5 and 6"
    unit: ClassVar[Unit] = "token"
    tau_pos: float = 1.0
    tau_neg: float = 1.05

    def __post_init__(self) -> None:
        for name, tau in (("tau_pos", self.tau_pos), ("tau_neg", self.tau_neg)):
            if not (math.isfinite(tau) and tau > 0):
                raise RecipeError(f"sapo.{name} is {tau!r}; wanted a finite number above 0")

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.soft import sapo

        return sapo(logp, old_logp, advantage, segments, tau_pos=self.tau_pos, tau_neg=self.tau_neg)


@dataclass(frozen=True, kw_only=True, slots=True)
class PPO(ObjectiveSettings):
    """PPO's token surrogate; dual_clip caps the ratio of a negative-advantage token."""

    name: ClassVar = "ppo"
    source: ClassVar = "arXiv 1707.06347, equation 7; dual clip arXiv 1912.09729, equation 5"
    unit: ClassVar[Unit] = "token"
    denominator: ClassVar[Denominator] = "tokens"
    clip: ClipRange = ClipRange(low=0.2, high=0.2)
    dual_clip: float | None = None

    def __post_init__(self) -> None:
        ObjectiveSettings.__post_init__(self)
        if self.dual_clip is not None and not (
            math.isfinite(self.dual_clip) and self.dual_clip > 1
        ):
            raise RecipeError(
                f"ppo.dual_clip is {self.dual_clip!r}; wanted a ratio above 1 (3 is usual), or null"
            )

    def __call__(
        self, logp: Tensor, old_logp: Tensor, advantage: Tensor, segments: Segments
    ) -> Surrogate:
        from gspo.objectives.token import ppo

        return ppo(logp, old_logp, advantage, segments, clip=self.clip, dual_clip=self.dual_clip)


#: name -> settings class; `objective: NAME` in a recipe.
OBJECTIVES: dict[str, type[ObjectiveSettings]] = {
    cls.name: cls for cls in (GSPO, GSPOToken, GRPO, DAPO, DrGRPO, GMPO, CISPO, SAPO, PPO)
}

KLEstimator = Literal["k1", "k2", "k3"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KLPenalty:
    """coefficient x estimate of KL(policy, reference), in nats per token.

    k1 goes into the reward only, k2 and k3 into the loss only, under the objective's own
    denominator: k1's gradient has mean zero, and k2/k3 as a reward penalise the wrong thing.
    """

    coefficient: float
    estimator: KLEstimator = "k3"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.coefficient) and self.coefficient > 0):
            raise RecipeError(
                f"kl.coefficient is {self.coefficient!r}; wanted a finite number above 0, or leave kl out"
            )
