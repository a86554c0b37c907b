"""Under pure token noise a length-fair band cuts every length alike, a fixed one does not."""

import torch

from gspo.settings import ClipRange, LengthFairClip

LENGTHS = [16, 64, 256, 1024, 4096]
SIGMA = 0.01  # nats, of a token's log-ratio
NUM_RESPONSES = 20_000


def outside(clip: ClipRange | LengthFairClip, length: int) -> float:
    generator = torch.Generator().manual_seed(length)
    # The mean of `length` independent normal log-ratios is one normal number.
    log_s = torch.randn(NUM_RESPONSES, generator=generator) * SIGMA / length**0.5
    low, high = (float(bound) for bound in clip.band(torch.tensor(length)))
    return float(((log_s < low) | (log_s > high)).double().mean())


def test_noise_from_16_to_4096_tokens():
    fair = [outside(LengthFairClip(low=1.44 * SIGMA, high=1.44 * SIGMA), n) for n in LENGTHS]
    fixed = [outside(ClipRange(low=5e-4, high=5e-4), n) for n in LENGTHS]
    assert max(fair) - min(fair) < 0.02
    assert all(abs(share - 0.15) < 0.02 for share in fair)  # 1.44 spreads of a normal: 0.150
    assert max(fixed) - min(fixed) > 0.5
