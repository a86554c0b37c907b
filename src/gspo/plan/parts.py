"""One part of the memory: its name, its bytes, its formula with the numbers filled in, and when it
is there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gspo.plan.method import Method, Precision
from gspo.plan.shape import ModelShape
from gspo.plan.workload import Workload

#: What a step goes through. reading: prompts, before their responses are sampled. loss: forward of
#: the update, and its head in both directions. backward: of the layers.
Stage = Literal["reading", "sampling", "loss", "backward"]
STAGES: tuple[Stage, ...] = ("reading", "sampling", "loss", "backward")
UPDATE: tuple[Stage, ...] = ("loss", "backward")


@dataclass(frozen=True, slots=True)
class Part:
    """bytes: on each device."""

    name: str
    bytes: int
    formula: str
    stages: tuple[Stage, ...] = STAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all parts follow from. products: the trainer multiplies float32 weights in bfloat16.
    reference: a frozen copy of the starting model is there for a KL penalty. engine_rounds: the
    engine samples from weights rounded to bfloat16. devices share weights, gradients and optimizer
    (FSDP2), and the rows of a step."""

    shape: ModelShape
    method: Method
    precision: Precision
    workload: Workload
    devices: int
    on_cpu: bool
    products: bool
    reference: bool
    engine_rounds: bool

    def share(self, size: int) -> int:
        """What of it each device keeps."""
        return -(-size // self.devices)

    @property
    def over(self) -> str:
        """Ending of a formula whose result is shared."""
        return f" / {self.devices} devices" if self.devices > 1 else ""


def stage_bytes(parts: Iterable[Part]) -> dict[Stage, int]:
    """What is there at once in each stage."""
    known = list(parts)
    return {stage: sum(part.bytes for part in known if stage in part.stages) for stage in STAGES}
