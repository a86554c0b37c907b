"""The least time a workload needs on a machine of these rates, with what is exact and no more.

Every multiply-add counts two operations. What an exact method can leave out is left out: a group's
prompt is read once, old log-probs come with the rollouts, responses without advantage are not
trained on. Not counted: norms, activations, sampling, the optimizer, writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.versus.shapes import Shape

BYTES = {"float32": 4, "bfloat16": 2}
FORWARD_AND_BACKWARD = 3  # a backward is two forwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Measured: operations a second in the workload's precision, bytes a second of a copy."""

    flops: float
    bytes: float


def generation_s(
    shape: Shape, rates: Rates, *, groups: int, samples: int, prompt: int, response: int, width: int
) -> float:
    """Reading each group's prompt once, then one token a step for all responses.

    A step takes the longer of its operations and its traffic: weights once, keys and values of the
    prompt once a group, of the response once a response. width: bytes of a weight or cached number.
    """
    rows = groups * samples
    prefill = _forward(shape, [prompt] * groups, heads_at=groups)
    total = max(prefill / rates.flops, width * shape.body_parameters / rates.bytes)
    weights = shape.body_parameters + shape.head_parameters
    for step in range(1, response):
        attended = rows * (prompt + step)
        operations = 2 * weights * rows + 2 * shape.attention_width * attended
        cached = shape.kv_values * (groups * prompt + rows * step)
        total += max(operations / rates.flops, width * (weights + cached) / rates.bytes)
    return total


def update_s(shape: Shape, rates: Rates, *, groups: Sequence[tuple[int, Sequence[int]]]) -> float:
    """Forward and backward. groups: of each group that is trained on, the tokens of its prompt and
    of each response."""
    operations = 0.0
    for prompt, responses in groups:
        operations += _forward(shape, [prompt], heads_at=0)
        operations += _forward(shape, responses, heads_at=sum(responses), before=prompt)
    return FORWARD_AND_BACKWARD * operations / rates.flops


def _forward(shape: Shape, lengths: Sequence[int], *, heads_at: int, before: int = 0) -> float:
    """Operations of a forward over sequences of these lengths, each after `before` cached tokens;
    heads_at: tokens whose logits are needed."""
    tokens = sum(lengths)
    attended = sum(n * before + n * (n + 1) / 2 for n in lengths)
    matrices = 2 * shape.body_parameters * tokens + 2 * shape.head_parameters * heads_at
    return matrices + 2 * shape.attention_width * attended
