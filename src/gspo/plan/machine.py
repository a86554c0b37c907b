"""This machine as a device: memory that may be used, speeds measured in about a second."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch

from gspo.engines.packed import fastest_s
from gspo.plan.devices import THIS_MACHINE, Device

#: Where Linux says what a container may use.
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
ROWS = {"cpu": 512, "cuda": 4096}  # and columns: full speed, and no wait
COPY_BYTES = 2**27  # beyond most caches


def this_machine() -> Device:
    """Its GPU where torch sees one, its processor otherwise. Other work on it spoils the speeds."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    on_cpu = kind == "cpu"
    with torch.inference_mode():
        return Device(
            name=THIS_MACHINE if on_cpu else f"{THIS_MACHINE} ({torch.cuda.get_device_name()})",
            memory=memory_limit() if on_cpu else torch.cuda.get_device_properties().total_memory,
            bfloat16=_product_rate(kind, torch.bfloat16),
            float32=_product_rate(kind, torch.float32),
            bandwidth=_copy_rate(kind),
            is_cpu=on_cpu,
        )


def memory_limit() -> int:
    """Bytes that this process may use: the machine's, or its container's where that is less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in LIMITS:
        text = path.read_text().strip() if path.is_file() else ""
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes)


def _product_rate(kind: str, dtype: torch.dtype) -> float:
    """Operations a second of a square product."""
    size = ROWS[kind]
    left = torch.linspace(-1, 1, size * size, device=kind).view(size, size).to(dtype)
    (took_s,) = fastest_s([_finished(kind, lambda: left @ left)])
    return 2 * size**3 / took_s


def _copy_rate(kind: str) -> float:
    """Bytes a second, read and written."""
    source = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=kind)
    target = torch.zeros_like(source)
    (took_s,) = fastest_s([_finished(kind, lambda: target.copy_(source))])
    return 2 * COPY_BYTES / took_s


def _finished(kind: str, work: Callable[[], object]) -> Callable[[], None]:
    """The work, and a wait for the device to have done it."""

    def run() -> None:
        work()
        if kind == "cuda":
            torch.cuda.synchronize()

    return run
