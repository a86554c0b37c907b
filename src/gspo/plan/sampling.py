"""What the engine inside the process holds: its copy of the weights, keys and values, logits."""

from __future__ import annotations

from collections.abc import Iterator

from gspo.engines.lean import PREFILL_TOKENS
from gspo.engines.lean_attention import SHARE_FROM
from gspo.plan.parts import Part, Setup, Stage
from gspo.policy.head import FLOAT32_BYTES

HALF_BYTES = 2
#: Logits of a step, and the weights that the sampler draws from.
LOGIT_COPIES = 2
#: Values of the MLP's width that reading a prompt holds at once: both factors and their product.
MLP_WIDTHS = 3
SAMPLE: tuple[Stage, ...] = ("sampling",)
ENGINE: tuple[Stage, ...] = ("reading", "sampling")
READ: tuple[Stage, ...] = ("reading",)


def sampling_parts(setup: Setup) -> Iterator[Part]:
    """Of the engine's side; they are gone before the update begins."""
    yield _engine_copy(setup)
    yield _cache(setup)
    yield _prompts(setup)
    yield _logits(setup)


def decodes_lean(setup: Setup) -> bool:
    """The engine's own path for one token a row, which computes in float32."""
    return setup.shape.lean and setup.precision.weight == FLOAT32_BYTES


def _engine_copy(setup: Setup) -> Part:
    shape = setup.shape
    if setup.devices > 1:
        size, count = (
            HALF_BYTES if setup.engine_rounds else setup.precision.compute,
            shape.num_parameters,
        )
        return Part(
            "engine_copy",
            count * size,
            f"{count:,} parameters x {size} bytes, whole on each device",
            ENGINE,
        )
    if decodes_lean(setup) and setup.on_cpu:
        count = sum(linear.numel for linear in shape.linears) + shape.head_size
        size = HALF_BYTES if setup.engine_rounds else FLOAT32_BYTES
        return Part(
            "engine_copy",
            count * size,
            f"{count:,} weights of layers and head, packed x {size} bytes",
            ENGINE,
        )
    if setup.engine_rounds:
        count = shape.num_parameters
        return Part(
            "engine_copy", count * HALF_BYTES, f"{count:,} parameters x {HALF_BYTES} bytes", ENGINE
        )
    if decodes_lean(setup):
        count = sum(linear.numel for linear in shape.linears if linear.leaf in JOINED)
        return Part(
            "engine_copy",
            count * FLOAT32_BYTES,
            f"{count:,} weights joined for decoding x {FLOAT32_BYTES} bytes",
            ENGINE,
        )
    return Part("engine_copy", 0, "samples from the trainer's weights", ENGINE)


#: Maps that the lean path copies to join them.
JOINED = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")


def token_bytes(setup: Setup) -> int:
    """Keys and values of one token in all layers."""
    shape = setup.shape
    size = FLOAT32_BYTES if decodes_lean(setup) else setup.precision.compute
    return 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * size


def _cache(setup: Setup) -> Part:
    work, each = setup.workload, token_bytes(setup)
    shape = setup.shape
    size = each // (2 * shape.num_layers * shape.num_kv_heads * shape.head_dim)
    a_token = f"2 x {shape.num_layers} layers x {shape.num_kv_heads} heads x {shape.head_dim} x {size} bytes"
    if shares_prompts(setup):
        tokens = work.rows * work.response_tokens + work.prompts_held * work.prompt_tokens
        text = f"({work.rows:,} rows x {work.response_tokens:,} + {work.prompts_held:,} prompts x {work.prompt_tokens:,}) tokens x {a_token}"
    else:
        tokens = work.rows * work.longest
        text = f"{work.rows:,} rows x {work.longest:,} tokens x {a_token}"
    return Part("kv_cache", tokens * each, text, SAMPLE)


def shares_prompts(setup: Setup) -> bool:
    """A prompt's keys lie once for its group, as `gspo.engines.lean_attention` decides."""
    work, shape = setup.workload, setup.shape
    spared = (work.rows - work.prompts_held) * work.prompt_tokens
    return decodes_lean(setup) and spared * shape.num_kv_heads * shape.head_dim >= SHARE_FROM


def _prompts(setup: Setup) -> Part:
    """Prompts as they are read: their keys and values twice, in the forward's cache and on their
    way to the rows, and one layer's work of a forward."""
    work, shape = setup.workload, setup.shape
    held = work.prompts_held * work.prompt_tokens
    at_once = min(held, PREFILL_TOKENS) if decodes_lean(setup) else held
    width = MLP_WIDTHS * shape.intermediate
    total = 2 * held * token_bytes(setup) + at_once * width * setup.precision.compute
    text = f"2 x {held:,} tokens x {token_bytes(setup):,} bytes + {at_once:,} in a forward x {width:,} x {setup.precision.compute}"
    return Part("prompt_reading", total, text, READ)


def _logits(setup: Setup) -> Part:
    work, vocabulary = setup.workload, setup.shape.vocabulary
    total = LOGIT_COPIES * work.rows * vocabulary * FLOAT32_BYTES
    text = f"{LOGIT_COPIES} x {work.rows:,} rows x {vocabulary:,} x {FLOAT32_BYTES} bytes"
    return Part("sampled_logits", total, text, SAMPLE)
