"""How the peer is set. A ratio counts against the best of a workload's settings.

Standard library only: both environments read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSetting:
    """checkpointing: of activations. microbatch: responses in one forward, 0 for the whole
    minibatch. autocast: the trainer's bf16 switch. matmul: torch's float32 matmul precision;
    "medium-update" is medium but for generation, where it slows masked attention down. weights: the
    dtype the model is loaded in. logging: as the trainer's defaults have it.
    """

    checkpointing: bool = False
    microbatch: int = 0
    autocast: bool = False
    matmul: Literal["highest", "medium", "medium-update"] = "highest"
    weights: Literal["float32", "bfloat16"] = "float32"
    logging: bool = False


SETTINGS = {
    "default": PeerSetting(checkpointing=True, microbatch=8, logging=True),
    "tuned": PeerSetting(),
    "tuned-8": PeerSetting(microbatch=8),
    "autocast": PeerSetting(autocast=True),
    "medium": PeerSetting(matmul="medium"),
    "medium-update": PeerSetting(matmul="medium-update"),
    "bf16-weights": PeerSetting(weights="bfloat16", autocast=True),
}
