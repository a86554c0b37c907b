"""What is measured: one frozen record a workload, all of them in one table.

Standard library only: both environments read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from bench.versus.shapes import SMALL, SMOLLM2, Shape, with_vocab

Kind = Literal["generate", "update", "step", "memory"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A ratio, or for shares a value, that must (floor) and should (target) be reached."""

    metric: str
    floor: float
    target: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """groups x samples responses of `response` tokens to prompts of `prompt` tokens.

    zero_share: z, share of groups whose rewards are equal. length_share: mean over longest
    response; below 1, generation ends by itself and recorded responses are of spread lengths.
    old: where the log-probs that minibatches 2.. compare with come from: "trainer", scored,
    or "gate", which is a run's default: the engine's where they are close enough. microbatch: responses in one
    forward, on both sides; 0 leaves each side to its setting. peer_settings: see peer_settings.py;
    the best of them counts.
    """

    name: str
    kind: Kind
    shape: Shape
    groups: int
    prompt: int
    response: int
    samples: int = 8
    precision: Precision = "float32"
    zero_share: float = 0.0
    length_share: float = 1.0
    old: Literal["gate", "trainer"] = "trainer"
    minibatches: int = 4
    microbatch: int = 0
    repetitions: int = 5
    peer_settings: tuple[str, ...] = ("tuned",)
    figures: tuple[Figure, ...] = ()
    curve: Literal["", "length", "vocabulary"] = ""

    @property
    def batch(self) -> int:
        """Responses in all."""
        return self.groups * self.samples


TUNED = ("tuned",)
FP32 = ("default", "tuned", "tuned-8")
FP32_LARGE = ("default", "tuned")  # a minibatch of 8 responses: tuned is tuned-8
BF16_GENERATION = ("autocast", "medium", "bf16-weights")
BF16_STEP = ("autocast", "medium", "medium-update")


def _figure(metric: str, floor: float, target: float) -> tuple[Figure, ...]:
    return (Figure(metric=metric, floor=floor, target=target),)


ROOFLINE = Figure(metric="roofline_share", floor=0.4, target=0.5)
GENERATE = Workload(
    name="", kind="generate", shape=SMALL, groups=16, prompt=16, response=256, peer_settings=TUNED
)
GENERATE_LARGE = replace(GENERATE, shape=SMOLLM2, groups=8, prompt=128, response=128, repetitions=3)


def _speed(floor: float, target: float) -> tuple[Figure, ...]:
    return _figure("tokens_per_s", floor, target)


GENERATIONS = (
    replace(GENERATE, name="gen-5m-128", figures=_speed(1.7, 2.2)),
    replace(GENERATE, name="gen-5m-128-r64", response=64),
    replace(
        GENERATE,
        name="gen-5m-32-p256",
        groups=4,
        prompt=256,
        response=512,
        figures=_speed(2.2, 3.0),
    ),
    replace(GENERATE, name="gen-5m-8", groups=1, figures=_speed(2.0, 3.0)),
    replace(GENERATE, name="gen-5m-64", groups=8, prompt=64, response=128, figures=(ROOFLINE,)),
    replace(
        GENERATE,
        name="gen-5m-128-eos",
        length_share=0.4,
        figures=_figure("extra_factor", 1.5, 2.0),
    ),
    replace(GENERATE_LARGE, name="gen-135m-64", figures=(*_speed(2.0, 3.0), ROOFLINE)),
    replace(
        GENERATE_LARGE,
        name="gen-135m-64-bf16",
        precision="bfloat16",
        peer_settings=BF16_GENERATION,
        figures=_speed(2.6, 4.0),
    ),
)


def _updates(name: str, floor: float, target: float, **shape: Any) -> tuple[Workload, ...]:
    """As a run does it, where float32 opens the gate; and with old log-probs scored in any case."""
    scored = Workload(
        name=f"{name}-scored",
        kind="update",
        shape=SMALL,
        groups=16,
        **shape,
        peer_settings=FP32,
        figures=_figure("seconds", floor, target),
    )
    return replace(scored, name=name, old="gate"), scored


UPDATES = (
    *_updates("update-p16", 1.2, 1.6, prompt=16, response=256),
    *_updates("update-p128", 1.7, 2.2, prompt=128, response=128),
    *_updates("update-p2r", 2.5, 3.3, prompt=256, response=128),
    *_updates(
        "update-p128-z50", 2.5, 4.0, prompt=128, response=128, zero_share=0.5, length_share=0.6
    ),
)

STEP = Workload(
    name="",
    kind="step",
    shape=SMALL,
    groups=16,
    prompt=128,
    response=128,
    old="gate",
    peer_settings=FP32,
)
STEP_BF16 = replace(STEP, precision="bfloat16", peer_settings=BF16_STEP)
LARGE: dict[str, Any] = {"shape": SMOLLM2, "groups": 4, "repetitions": 3}


def _seconds(floor: float, target: float) -> tuple[Figure, ...]:
    return _figure("seconds", floor, target)


STEPS = (
    replace(STEP, name="step-p16", prompt=16, response=256, figures=_seconds(1.3, 1.7)),
    replace(STEP, name="step-p16-r64", prompt=16, response=64),
    replace(STEP, name="step-p128", figures=_seconds(1.7, 2.2)),
    replace(STEP, name="step-p128-z50", zero_share=0.5, figures=_seconds(2.2, 3.5)),
    replace(STEP, name="step-p128-scored", old="trainer", figures=_figure("old_share", 0.15, 0.10)),
    replace(STEP_BF16, name="step-p128-bf16", figures=_seconds(1.2, 1.6)),
    replace(STEP, name="step-135m", **LARGE, peer_settings=FP32_LARGE),
    replace(STEP_BF16, name="step-135m-bf16", **LARGE, figures=_seconds(1.6, 2.5)),
)

QWEN_VOCAB = 151_936
MEMORY = Workload(
    name="",
    kind="memory",
    shape=with_vocab(QWEN_VOCAB),
    groups=2,
    prompt=16,
    response=512,
    minibatches=2,
    microbatch=8,
    repetitions=3,
    peer_settings=("default", "tuned"),
)
MEMORIES = (
    replace(MEMORY, name="memory-v152k", figures=_figure("peak_mb", 20.0, 25.0)),
    replace(MEMORY, name="memory-v152k-mb1", microbatch=1, figures=_figure("peak_mb", 4.0, 5.0)),
    *(
        replace(
            MEMORY,
            name=f"vocab-{vocab}",
            shape=with_vocab(vocab),
            response=256,
            curve="vocabulary",
        )
        for vocab in (1024, 16_384, 49_152, QWEN_VOCAB)
    ),
)

LENGTHS = tuple(
    replace(
        STEP,
        name=f"length-{response}",
        groups=4,
        prompt=64,
        response=response,
        repetitions=3,
        peer_settings=TUNED,
        curve="length",
    )
    for response in (32, 64, 128, 256, 512, 1024)
)

WORKLOADS = {
    workload.name: workload for workload in (*GENERATIONS, *UPDATES, *STEPS, *MEMORIES, *LENGTHS)
}
MAIN = "step-p128"  # what `make bench-quick` prints
