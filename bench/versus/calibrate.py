"""The machine's rates, measured beside every figure: the same work drifts by up to 2x in an hour.

A worker of its own, so that nothing it allocates is in another's memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

from bench.versus.channel import Channel

MATRIX = 2048  # rows and columns: large enough for the best rate, 17 GFLOP a product
COPY_BYTES = 256 * 2**20  # beyond every cache
MIN_S = 0.3  # of one rate


def best_s(work: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, after one that is not counted."""
    work()
    times: list[float] = []
    while sum(times) < MIN_S or len(times) < 3:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def rates() -> dict[str, float]:
    """GFLOP/s of a matrix product in two precisions; GB/s of a copy, read and write counted."""
    left, right = torch.rand(MATRIX, MATRIX), torch.rand(MATRIX, MATRIX)
    half_left, half_right = left.bfloat16(), right.bfloat16()
    source = torch.zeros(COPY_BYTES // 4)
    target = torch.empty_like(source)
    flops = 2 * MATRIX**3
    return {
        "float32_gflops": flops / best_s(lambda: left @ right) / 1e9,
        "bfloat16_gflops": flops / best_s(lambda: half_left @ half_right) / 1e9,
        "copy_gb_per_s": 2 * COPY_BYTES / best_s(lambda: target.copy_(source)) / 1e9,
    }


def main() -> None:
    """python -m bench.versus.calibrate THREADS."""
    torch.set_num_threads(int(sys.argv[1]))
    channel = Channel()
    channel.send({"threads": torch.get_num_threads()})
    for _ in channel.commands():
        channel.send(rates())


if __name__ == "__main__":
    main()
