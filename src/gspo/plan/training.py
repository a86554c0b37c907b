"""What the update holds: weights, gradients, optimizer, reference, activations, head."""

from __future__ import annotations

from collections.abc import Iterator

from gspo.plan.activations import kept_a_layer, layers_made_twice
from gspo.plan.method import ADAPTER_BYTES, num_quantised, quantised_bytes
from gspo.plan.parts import UPDATE, Part, Setup
from gspo.policy.head import CHUNK_BYTES, FLOAT32_BYTES

ADAPTER_OPTIMIZER_BYTES = 8  # two moments in float32
#: Copies of the logits at the peak: themselves, and exp(logits - max) inside logsumexp.
LOGIT_COPIES = 2
#: Values of the MLP's width a token that its backward makes: gradients of its product and of both
#: factors, and one product between them.
MLP_TEMPORARIES = 4
STREAM_TEMPORARIES = 3  # of the hidden width: the stream's gradient, a branch's, their sum
GATHERED_LAYERS = 2  # FSDP2 gathers the next layer while one computes


def training_parts(setup: Setup) -> Iterator[Part]:
    """Of the trainer's side, those that are there all the time first."""
    yield _weights(setup)
    yield _gradients(setup)
    yield _optimizer(setup)
    yield _reference(setup)
    if setup.devices > 1:
        yield _gathered(setup)
    if setup.products:
        yield _rounded(setup)
    if setup.method.base_bits:
        yield _unpacked(setup)
    yield _activations(setup)
    yield _head(setup)
    yield _backward(setup)


def _weights(setup: Setup) -> Part:
    shape, method, size = setup.shape, setup.method, setup.precision.weight
    if method.lora_rank is None:
        count = shape.num_parameters
        text = f"{count:,} parameters x {size} bytes{setup.over}"
        return Part("weights", setup.share(count * size), text)
    adapter = method.num_adapter(shape)
    base, text = base_bytes(setup)
    text = f"{text} + {adapter:,} of adapters x {ADAPTER_BYTES} bytes"
    total = base + adapter * ADAPTER_BYTES
    return Part("weights", setup.share(total), f"({text}){setup.over}" if setup.over else text)


def base_bytes(setup: Setup) -> tuple[int, str]:
    """Of all weights without adapters, and its formula."""
    count, size, bits = setup.shape.num_parameters, setup.precision.weight, setup.method.base_bits
    if bits is None:
        return count * size, f"{count:,} parameters x {size} bytes"
    packed = num_quantised(setup.shape)
    held = quantised_bytes(packed, bits)
    text = f"{packed:,} in {bits} bits with scales = {held:,} + {count - packed:,} others x {size} bytes"
    return held + (count - packed) * size, text


def _gradients(setup: Setup) -> Part:
    count = setup.method.num_trained(setup.shape)
    size = setup.precision.gradient if setup.method.lora_rank is None else ADAPTER_BYTES
    text = f"{count:,} trained x {size} bytes{setup.over}"
    return Part("gradients", setup.share(count * size), text, UPDATE)


def _optimizer(setup: Setup) -> Part:
    count = setup.method.num_trained(setup.shape)
    full = setup.method.lora_rank is None
    size = setup.precision.optimizer if full else ADAPTER_OPTIMIZER_BYTES
    kept = "two moments and a float32 copy" if full and size == 12 else "two moments"
    text = f"{count:,} trained x {size} bytes ({kept}){setup.over}"
    return Part("optimizer", setup.share(count * size), text)


def _reference(setup: Setup) -> Part:
    if not setup.reference:
        return Part("reference", 0, "no KL penalty asks for one")
    if setup.method.lora_rank is not None:
        return Part("reference", 0, "the base without its adapters")
    count, size = setup.shape.num_parameters, setup.precision.weight
    text = f"{count:,} parameters x {size} bytes{setup.over}"
    return Part("reference", setup.share(count * size), text)


def _gathered(setup: Setup) -> Part:
    """Embedding and head stay gathered over forward and backward; of layers the one at work and
    the next; and one unit's gradient before it is reduced and cut."""
    shape, size = setup.shape, setup.precision.compute
    ends = shape.num_embedding + shape.num_head
    layer = shape.largest_layer
    gradient = max(ends, layer) if setup.method.lora_rank is None else 0
    total = (ends + GATHERED_LAYERS * layer) * size + gradient * setup.precision.gradient
    text = f"({ends:,} of embedding and head + {GATHERED_LAYERS} layers x {layer:,}) x {size} bytes"
    if gradient:
        text += f" + gradient {gradient:,} x {setup.precision.gradient} bytes"
    return Part("gathered", total, text, UPDATE)


def _rounded(setup: Setup) -> Part:
    """A product saves what it multiplied with, so the rounded weights last until the backward."""
    count = sum(linear.numel for linear in setup.shape.linears)
    return Part("rounded_weights", 2 * count, f"{count:,} weights of layers x 2 bytes", UPDATE)


def _unpacked(setup: Setup) -> Part:
    """A product of a quantised matrix makes its values first."""
    count, size = setup.shape.largest_matrix, setup.precision.compute
    return Part("unpacked_matrix", count * size, f"the largest matrix, {count:,} x {size} bytes")


def _activations(setup: Setup) -> Part:
    shape, tokens = setup.shape, setup.workload.microbatch
    a_layer, text = kept_a_layer(setup)
    stream = FLOAT32_BYTES if setup.precision.weight == FLOAT32_BYTES else setup.precision.compute
    if layers_made_twice(setup):
        size = tokens * (shape.num_layers * stream * shape.hidden + a_layer)
        told = f"{tokens:,} tokens x ({shape.num_layers} layers x {stream} x {shape.hidden} + one layer again: {text})"
        return Part("activations", size, told, UPDATE)
    size = tokens * shape.num_layers * a_layer
    told = f"{tokens:,} tokens x {shape.num_layers} layers x {a_layer:,} bytes ({text})"
    return Part("activations", size, told, UPDATE)


def _head(setup: Setup) -> Part:
    shape, work = setup.shape, setup.workload
    hidden = work.trained * shape.hidden * FLOAT32_BYTES
    states = f"{work.trained:,} hidden states x {shape.hidden} x {FLOAT32_BYTES} bytes"
    if work.kept_logits:
        size = LOGIT_COPIES * FLOAT32_BYTES * work.trained * shape.vocabulary
        text = f"{LOGIT_COPIES} x {work.trained:,} logits x {shape.vocabulary:,} x {FLOAT32_BYTES} bytes + {states}"
    else:
        size = LOGIT_COPIES * CHUNK_BYTES
        text = f"{LOGIT_COPIES} chunks of {CHUNK_BYTES // 2**20} MiB of logits + {states}"
    return Part("head", size + hidden, text, ("loss",))


def _backward(setup: Setup) -> Part:
    shape, tokens, size = setup.shape, setup.workload.microbatch, setup.precision.compute
    wide = MLP_TEMPORARIES * shape.intermediate + STREAM_TEMPORARIES * shape.hidden
    text = f"{tokens:,} tokens x ({MLP_TEMPORARIES} x {shape.intermediate:,} + {STREAM_TEMPORARIES} x {shape.hidden:,}) x {size} bytes"
    total = tokens * wide * size
    if setup.method.lora_rank is None:
        total += shape.largest_matrix * setup.precision.gradient
        text += f" + gradient of the largest matrix {shape.largest_matrix:,} x {setup.precision.gradient}"
    return Part("backward", total, text, ("backward",))
