"""How often the 95 % interval of a calibrated range holds the true quantile, on simulated log s.

    python bench/calibration_coverage.py [--draws 1000]

Prints one JSON object; aim: at least 930 of 1,000 on both sides, exponent within 0.05.
"""

from __future__ import annotations

import argparse
import json
import time

import torch

from gspo.calibrate.fit import fit_samples
from gspo.calibrate.samples import samples_of_records

SPREAD, EXPONENT, SHARED = 0.02, 0.5, 0.3  # of log s at one token; of length; of the variance
NUM_GROUPS, GROUP = 256, 8
CUT_SHARE = 0.15
MEAN = 2e-4  # nats along the advantage
TRUTH_RESPONSES = 4_000_000


def simulate(num_groups: int, seed: int) -> dict[str, torch.Tensor]:
    """Rows of `num_groups` groups with lengths from 16 to 1,024 tokens."""
    generator = torch.Generator().manual_seed(seed)
    size = num_groups * GROUP
    group = torch.arange(num_groups).repeat_interleave(GROUP)
    length = (2 ** (4 + 6 * torch.rand(size, generator=generator))).long()
    sign = torch.randint(0, 2, (size,), generator=generator) * 2.0 - 1
    own = torch.randn(size, generator=generator, dtype=torch.float64)
    shared = torch.randn(num_groups, generator=generator, dtype=torch.float64)[group]
    noise = (1 - SHARED) ** 0.5 * own + SHARED**0.5 * shared
    log_s = MEAN * sign + SPREAD * length.double() ** -EXPONENT * noise
    return {"log_s": log_s, "advantage": sign, "length": length, "group": group}


def true_distances() -> tuple[float, float]:
    """Low and high, from a sample large enough to be taken for the truth."""
    rows = simulate(TRUTH_RESPONSES // GROUP, seed=2**31)
    log_s, sign = rows["log_s"], rows["advantage"]
    positive, negative = log_s[sign > 0].sort().values, log_s[sign < 0].sort().values
    high = positive[int((1 - CUT_SHARE) * len(positive))]
    low = negative[int(CUT_SHARE * len(negative))]
    return float(-low.expm1()), float(high.expm1())


def coverage(draws: int) -> dict[str, float]:
    """Draws whose interval holds the truth, by side; and how far the exponent was off."""
    low, high = true_distances()
    held = {"low": 0, "high": 0}
    errors: list[float] = []
    exponent_held = 0
    started_s = time.monotonic()
    for seed in range(draws):
        fit = fit_samples(samples_of_records(simulate(NUM_GROUPS, seed)), CUT_SHARE)
        for side, truth in (("low", low), ("high", high)):
            first, last = fit.interval[side]
            held[side] += first <= truth <= last
        exponent = fit.law.noise
        errors.append(abs(exponent.value - EXPONENT))
        exponent_held += exponent.low <= EXPONENT <= exponent.high
    return {
        "draws": draws,
        "held_low": held["low"],
        "held_high": held["high"],
        "exponent_held": exponent_held,
        "exponent_error_max": max(errors),
        "exponent_within_0.05": sum(error <= 0.05 for error in errors),
        "seconds": time.monotonic() - started_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--draws", type=int, default=1000)
    torch.set_num_threads(1)
    print(json.dumps(coverage(parser.parse_args().draws)))


if __name__ == "__main__":
    main()
