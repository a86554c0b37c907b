"""What `gspo doctor` measures and reads of this machine: threads, products, memory, allocator."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gspo.engines.packed import Rates

#: What sets torch's threads and where they run.
THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY")
#: Rows that are decoded together, and an MLP's hidden and intermediate size.
SHAPES = {"demo size": (64, 128, 384), "135 M": (64, 576, 1536)}
COPY_BYTES = 2**27  # beyond most caches
MAPS = Path("/proc/self/maps")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
OTHER_ALLOCATORS = re.compile(r"/[^/\s]*(tcmalloc|jemalloc|mimalloc)[^/\s]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Check:
    """One line. required: a run is not possible without it."""

    name: str
    ok: bool
    detail: str
    required: bool = False


def num_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_checks() -> Iterator[Check]:
    """Measured now, in about half a second; torch must be there."""
    import torch

    yield threads(torch.get_num_threads(), num_cores())
    yield from products()
    yield Check(
        "memory speed", ok=True, detail=f"{_copy_rate():.0f} GB/s read and written, copying"
    )
    yield allocator()


def threads(num_threads: int, cores: int) -> Check:
    """More threads than cores wait for one another."""
    settings = [f"{name}={os.environ[name]}" for name in THREAD_SETTINGS if name in os.environ]
    detail = f"{num_threads} in torch, {cores} cores; {', '.join(settings) or 'OMP_NUM_THREADS is not set'}"
    if num_threads <= cores:
        return Check("threads", ok=True, detail=detail)
    return Check("threads", ok=False, detail=f"{detail}: set OMP_NUM_THREADS={cores}")


def products() -> Iterator[Check]:
    """Measured at two sizes, for bfloat16 pays at some and not at others."""
    from gspo.engines.packed import measure_rates

    rates = {
        name: measure_rates(hidden, intermediate, num_rows)
        for name, (num_rows, hidden, intermediate) in SHAPES.items()
    }
    speeds = _speeds({name: rate.float32 for name, rate in rates.items()})
    yield Check("float32", ok=True, detail=f"{speeds} (64 rows by an MLP)")
    yield bfloat16(rates)


def bfloat16(rates: dict[str, Rates]) -> Check:
    """Whether sampling in it would pay, and for which sizes of model."""
    speeds = _speeds({name: rate.bfloat16 for name, rate in rates.items()})
    paying = [name for name, rate in rates.items() if rate.bfloat16_pays]
    where = (
        "at both" if len(paying) == len(rates) else f"at {paying[0]}" if paying else "at neither"
    )
    return Check("bfloat16", bool(paying), f"{speeds}; engine.dtype=bfloat16 pays {where}")


def allocator() -> Check:
    """Which malloc serves large tensors, and whether the kernel gives them huge pages."""
    maps = MAPS.read_text() if MAPS.is_file() else ""
    other = OTHER_ALLOCATORS.search(maps)
    name = other.group(1) if other else " ".join(platform.libc_ver()).strip() or "the system's"
    pages = re.search(r"\[(\w+)\]", HUGE_PAGES.read_text()) if HUGE_PAGES.is_file() else None
    huge = f"huge pages: {pages.group(1)}" if pages else "huge pages: unknown"
    return Check("allocator", ok=True, detail=f"{name}; {huge}")


def _speeds(gflops: dict[str, float]) -> str:
    (first, *others) = [f"{value:.0f} at {name}" for name, value in gflops.items()]
    return ", ".join([first.replace(" at ", " GFLOP/s at "), *others])


def _copy_rate() -> float:
    """GB/s, both directions counted."""
    import torch

    from gspo.engines.packed import fastest_s

    source = torch.zeros(COPY_BYTES, dtype=torch.uint8)
    target = torch.zeros_like(source)
    (took_s,) = fastest_s([lambda: target.copy_(source)])
    return 2 * COPY_BYTES / took_s / 1e9
