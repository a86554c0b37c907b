"""A 95 % interval holds the true quantile 95 times of 100, responses of a group being alike.

bench/calibration_coverage.py does the same with 1,000 draws of a whole calibration.
"""

import torch

from gspo.diagnostics.bootstrap import group_draws, interval, quantile_replicates

NUM_DRAWS = 200
NUM_GROUPS, GROUP = 64, 6
Q = 0.85


def simulate(num_groups, seed):
    """Log s with exponent 1/2 from 16 to 256 tokens; a third of the variance is the group's."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(num_groups).repeat_interleave(GROUP)
    length = 2 ** (4 + 4 * torch.rand(len(group), generator=generator))
    own = torch.randn(len(group), generator=generator)
    shared = torch.randn(num_groups, generator=generator)[group]
    return length.rsqrt() * (own + 0.7 * shared), group


def test_at_least_93_of_100_intervals_hold_the_quantile():
    values, _ = simulate(300_000, seed=10_000)
    truth = float(values.sort().values[int(Q * len(values))])
    held = 0
    for seed in range(NUM_DRAWS):
        values, group = simulate(NUM_GROUPS, seed)
        draws = group_draws(NUM_GROUPS, num_replicates=400, seed=seed)
        low, high = interval(quantile_replicates(values, group, Q, draws), NUM_GROUPS)
        held += low <= truth <= high
    # 0.93 less two standard errors of a share of 0.95 in 200 draws; and not by being too wide.
    assert 0.93 - 0.031 <= held / NUM_DRAWS <= 0.995


def test_resampling_responses_as_if_they_were_independent_holds_it_less_often():
    values, _ = simulate(300_000, seed=10_000)
    truth = float(values.mean())
    held = {"groups": 0, "responses": 0}
    for seed in range(NUM_DRAWS // 2):
        values, group = simulate(NUM_GROUPS, seed)
        alone = torch.arange(len(values))
        for name, cluster in (("groups", group), ("responses", alone)):
            num = int(cluster.max()) + 1
            draws = group_draws(num, num_replicates=200, seed=seed).float()
            total = torch.zeros(num).index_add(0, cluster, values)
            count = torch.zeros(num).index_add(0, cluster, torch.ones_like(values))
            low, high = interval((draws @ total) / (draws @ count), num)
            held[name] += low <= truth <= high
    assert held["groups"] > held["responses"] + 5
