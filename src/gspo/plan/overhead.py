"""What nobody asked for: the interpreter with its libraries, and the holes an allocator leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gspo.plan.parts import UPDATE, Part, Setup

MEGABYTE = 10**6
#: Resident before a model is built, with torch, transformers, datasets and pyarrow imported, and
#: what their first use adds. Measured by bench/plan.py, torch 2.13 for the CPU.
PROCESS_BYTES = 430 * MEGABYTE
#: A word of the tokenizer: its text, its id, and Python's dictionaries of both. Measured there too.
WORD_BYTES = 450
#: On an accelerator: the driver's context, kernels and the work space of its matrix products.
CONTEXT_BYTES = 1_000 * MEGABYTE
#: glibc's heap after a few steps, over the blocks that come and go in it: gradients and activations
#: leave holes that the next, of another size, do not fill. Measured by bench/plan.py: 0.32 to 0.36.
HEAP_SHARE = 1 / 3
HEAP_PARTS = ("gradients", "activations", "rounded_weights")


def overhead_parts(setup: Setup, parts: Sequence[Part]) -> Iterator[Part]:
    """The process or the device's context, and on a processor the heap's holes."""
    if not setup.on_cpu:
        yield Part(
            "context", CONTEXT_BYTES, f"{CONTEXT_BYTES // MEGABYTE:,} MB of driver and kernels"
        )
        return
    size = PROCESS_BYTES + WORD_BYTES * setup.shape.vocabulary
    words = f"{setup.shape.vocabulary:,} words x {WORD_BYTES} bytes of a tokenizer"
    yield Part("process", size, f"{PROCESS_BYTES // MEGABYTE:,} MB of imports + {words}")
    if setup.workload.maps_large_blocks:
        return
    coming = sum(part.bytes for part in parts if part.name in HEAP_PARTS)
    text = f"a third of {coming:,} bytes of {', '.join(HEAP_PARTS)}"
    yield Part("heap_holes", round(HEAP_SHARE * coming), text, UPDATE)
