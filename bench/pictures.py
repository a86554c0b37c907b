"""The pictures of docs/trust-region.md.

    python bench/pictures.py [RUN]

lengths.png is simulated; range.png shows a recorded run of `clip: auto`, when one is given.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes

from gspo.recorders.reader import open_run
from gspo.settings import ClipRange, LengthFairClip

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LENGTHS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
NUM_RESPONSES = 4000
SIGMA = 0.01  # nats, of a token's log-ratio
DRIFT = 1e-3  # nats, spread of what moves all tokens of a response together
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # told apart by colour-blind eyes


def simulated(length: int, drift: float) -> torch.Tensor:
    """log s of NUM_RESPONSES responses of this length."""
    generator = torch.Generator().manual_seed(length)
    noise = torch.randn(NUM_RESPONSES, generator=generator) * SIGMA / length**0.5
    return noise + torch.randn(NUM_RESPONSES, generator=generator) * drift


def outside(log_s: torch.Tensor, clip: ClipRange | LengthFairClip, length: int) -> float:
    """Share out of the band."""
    low, high = (float(bound) for bound in clip.band(torch.tensor(length)))
    return float(((log_s < low) | (log_s > high)).double().mean())


def lengths() -> None:
    """Noise and drift over length: spread, and what a fixed and a length-fair band would cut."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    spread, shares = axes[0], axes[1:]
    for drift, color, name in ((0.0, BLUE, "noise"), (DRIFT, ORANGE, "noise + drift")):
        values = [float(simulated(length, drift).std()) for length in LENGTHS]
        spread.plot(LENGTHS, values, "o-", color=color, label=name)
    spread.plot(
        LENGTHS, [SIGMA / n**0.5 for n in LENGTHS], ":", color=GREY, label="sigma / sqrt(L)"
    )
    spread.set(xscale="log", yscale="log", xlabel="tokens", title="spread of log s (nats)")
    spread.legend()
    for axis, drift, title in zip(shares, (0.0, DRIFT), ("noise", "noise + drift"), strict=True):
        _shares(axis, drift, title)
    figure.savefig(IMAGES / "lengths.png", dpi=110)


def _shares(axis: Axes, drift: float, title: str) -> None:
    fixed = ClipRange(low=5e-4, high=5e-4)
    fair = LengthFairClip(low=1.44 * SIGMA, high=1.44 * SIGMA)  # 1.44 sigma: 15 % outside
    for clip, color, name in ((fixed, BLUE, "fixed ±5e-4"), (fair, ORANGE, "length-fair")):
        values = [outside(simulated(n, drift), clip, n) for n in LENGTHS]
        axis.plot(LENGTHS, values, "o-", color=color, label=name)
    axis.set(xscale="log", ylim=(0, 1), xlabel="tokens", title=f"share outside the band: {title}")
    axis.legend()


def measured_range(path: str) -> None:
    """Range, cut share and reward of a run, step by step."""
    metrics = [row for row in open_run(path).metrics() if "reward/mean" in row]
    steps = [row["step"] for row in metrics]
    figure, (band, share, reward) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    band.fill_between(
        steps,
        [row["log_s/q05"] for row in metrics],
        [row["log_s/q95"] for row in metrics],
        color=BLUE,
        alpha=0.25,
        label="log s, 5 % to 95 %",
    )
    band.plot(steps, [-row["clip/low"] for row in metrics], color=ORANGE, label="range in force")
    band.plot(steps, [row["clip/high"] for row in metrics], color=ORANGE)
    band.set(ylim=(-0.02, 0.02), xlabel="step", title="log s of off-policy responses")
    band.legend()
    share.plot(steps, [row["clip/cut_share"] for row in metrics], color=BLUE)
    share.axhline(0.15, linestyle=":", color=GREY)
    share.set(ylim=(0, 0.6), xlabel="step", title="cut share (wanted: dotted)")
    reward.plot(steps, [row["reward/mean"] for row in metrics], color=BLUE)
    reward.set(ylim=(0, 1), xlabel="step", title="mean reward")
    figure.savefig(IMAGES / "range.png", dpi=110)


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    lengths()
    if len(sys.argv) > 1:
        measured_range(sys.argv[1])
