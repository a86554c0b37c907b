"""The least time a step can take on a device, and what SFT and DPO take for the same tokens.

A roofline: a token's forward is 2 operations a parameter it passes, a backward 4; decoding also has
to read the weights and the cache from memory at every token. A step takes at least the larger of
operations / peak and bytes / bandwidth. No run does better; most reach a third to two thirds of it.

    decode     a token of every row:  bytes = weights + keys and values so far
    prefill    prompts once:          2 x parameters x tokens
    update     6 x parameters x tokens (LoRA 4), prompts once a group; a chunked head 8
    score      2 x parameters x tokens of the later minibatches, and of the reference
    SFT        an update on these tokens             DPO    that, and a reference's forward
"""

from __future__ import annotations

from dataclasses import dataclass

from gspo.errors import RecipeError
from gspo.plan.memory import MemoryPlan
from gspo.plan.parts import Setup
from gspo.plan.sampling import decodes_lean, shares_prompts, token_bytes

FORWARD, BACKWARD, CHUNKED_HEAD = 2, 4, 8
#: An adapter's backward makes the gradients of the layers' inputs, not those of the frozen weights.
ADAPTER_BACKWARD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of a step, at least. tokens_per_s: sampled, of all devices. decode_bound: what the
    decoding waits for."""

    prefill_s: float
    decode_s: float
    score_s: float
    update_s: float
    tokens_per_s: float
    decode_bound: str

    @property
    def rollout_s(self) -> float:
        """Prompts and responses."""
        return self.prefill_s + self.decode_s

    @property
    def step_s(self) -> float:
        """All of it, one after the other."""
        return self.rollout_s + self.score_s + self.update_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Seconds for the same tokens, and multiples of SFT. generation: share of the step."""

    sft_s: float
    dpo_s: float
    gspo_s: float
    generation: float

    @property
    def dpo(self) -> float:
        """DPO over SFT."""
        return self.dpo_s / self.sft_s

    @property
    def gspo(self) -> float:
        """This run over SFT."""
        return self.gspo_s / self.sft_s


def step_time(planned: MemoryPlan) -> StepTime:
    """By the roofline of the plan's device. RecipeError where none was named."""
    setup, device = planned.setup, planned.request.device
    if device is None:
        raise RecipeError("times need a device: name one, as h100 or this-machine")
    work, shape = setup.workload, setup.shape
    low = setup.precision.compute == 2
    peak = device.bfloat16 if low or setup.products else device.float32
    sampling = device.bfloat16 if low or setup.engine_rounds else device.float32
    own_prompts = work.prompts / setup.devices
    decode_s, bound = _decode(setup, sampling, device.bandwidth)
    prefill = FORWARD * shape.num_multiplied * own_prompts * work.prompt_tokens
    score = _scored_share(planned) * FORWARD * _passed(setup, work.step_tokens)
    return StepTime(
        prefill_s=prefill / sampling,
        decode_s=decode_s,
        score_s=score / setup.devices / peak,
        update_s=_update_operations(setup) / setup.devices / peak,
        tokens_per_s=work.responses * work.response_tokens / decode_s,
        decode_bound=bound,
    )


def beside(setup: Setup, time: StepTime) -> Beside:
    """This step's tokens in supervised training, in DPO, and here."""
    update = _update_operations(setup)
    reference = FORWARD * _passed(setup, setup.workload.step_tokens)
    return Beside(
        sft_s=time.update_s,
        dpo_s=time.update_s * (update + reference) / update,
        gspo_s=time.step_s,
        generation=time.rollout_s / time.step_s,
    )


def _passed(setup: Setup, tokens: float) -> float:
    """Parameters times tokens; the head sees responses alone. Attention's own products: two of the
    context's length a token and a layer, half of it on average."""
    shape, work = setup.shape, setup.workload
    body = shape.num_multiplied - shape.head_size
    attention = shape.num_layers * shape.num_heads * shape.head_dim * work.longest
    trained = tokens - work.prompts * work.prompt_tokens
    return (body + attention) * tokens + shape.head_size * trained


def _update_operations(setup: Setup) -> float:
    shape, work = setup.shape, setup.workload
    full = setup.method.lora_rank is None
    passes = FORWARD + (BACKWARD if full else ADAPTER_BACKWARD)
    trained = work.responses * work.response_tokens
    again = (
        0 if work.kept_logits else (CHUNKED_HEAD - FORWARD - BACKWARD) * shape.head_size * trained
    )
    return passes * _passed(setup, work.step_tokens) + again


def _scored_share(planned: MemoryPlan) -> float:
    """Forwards of the step's tokens beside the update's: of the minibatches after the first, unless
    the engine's log-probs may stand for them, and of the reference."""
    recipe, minibatches = planned.request.recipe, planned.setup.workload.minibatches
    spared = recipe.trainer.old_logp == "auto" and recipe.engine.dtype == "model"
    later = 0.0 if spared else (minibatches - 1) / minibatches
    return later + (1.0 if planned.setup.reference else 0.0)


def _decode(setup: Setup, peak: float, bandwidth: float) -> tuple[float, str]:
    """Seconds of a step's responses on a device, and what they wait for."""
    work, shape = setup.workload, setup.shape
    own = -(-work.responses // setup.devices)
    rows = min(work.rows, own)
    waves = -(-own // rows)
    context = work.prompt_tokens + work.response_tokens / 2
    cached = rows * context
    if shares_prompts(setup):
        cached = rows * work.response_tokens / 2 + work.prompts_held * work.prompt_tokens
    read = _weights_read(setup, rows) + cached * token_bytes(setup)
    attention = 2 * shape.num_layers * shape.num_heads * shape.head_dim * context
    operations = FORWARD * rows * (shape.num_multiplied + attention)
    seconds = {"memory": read / bandwidth, "products": operations / peak}
    bound = max(seconds, key=lambda name: seconds[name])
    return waves * work.response_tokens * seconds[bound], bound


def _weights_read(setup: Setup, rows: int) -> float:
    """Bytes of weights a decoding step reads. Of a mixture the experts that some row needs, as if
    each token chose at random."""
    shape = setup.shape
    looked_up = shape.num_embedding if shape.num_head else 0
    dense = shape.num_parameters - looked_up - shape.num_expert
    experts = 0.0
    if shape.num_experts:
        idle = (1 - shape.experts_used / shape.num_experts) ** rows
        experts = shape.num_expert * (1 - idle)
    size = setup.precision.compute
    if setup.engine_rounds:
        size = 2
    if decodes_lean(setup):
        size = 2 if setup.engine_rounds else 4
    bits = setup.method.base_bits
    return (dense + experts) * (size if bits is None else bits / 8)
