"""The ragged form: one log-prob per trained token, no padding, one denominator a step.

    python examples/ragged_loss.py

Four responses to one prompt: what GSPO does with each, and what cutting the batch into
micro-batches does to the gradient, with the denominator counted first and without.
"""

from __future__ import annotations

import torch
from torch import Tensor

import gspo
from gspo.settings import GSPO

LENGTHS = [3, 8, 5, 2]
REWARDS = [1.0, 0.0, 1.0, 0.0]
SHIFTS = [0.004, -0.004, 0.0001, 0.004]  # nats: log s of each response
PARTS = [[0, 1, 2], [3]]  # a long micro-batch and a short one
OBJECTIVE = GSPO()  # the paper's range: 3e-4 below ratio 1, 4e-4 above


def gradient(moved: Tensor, old: Tensor, advantage: Tensor, divisors: list[int]) -> Tensor:
    """d loss / d logp of all tokens: each part's summed losses over its divisor, added up."""
    logp = moved.clone().requires_grad_()
    new_pieces, old_pieces = logp.split(LENGTHS), old.split(LENGTHS)
    for rows, divisor in zip(PARTS, divisors, strict=True):
        segments = gspo.Segments.from_lengths([LENGTHS[row] for row in rows])
        new_N = torch.cat([new_pieces[row] for row in rows])
        old_N = torch.cat([old_pieces[row] for row in rows])
        (OBJECTIVE(new_N, old_N, advantage[rows], segments).loss.sum() / divisor).backward()
    assert logp.grad is not None
    return logp.grad


def main() -> None:
    """Print what the clip decided, then what the denominator did."""
    torch.manual_seed(0)
    segments = gspo.Segments.from_lengths(LENGTHS)
    old = -torch.rand(segments.num_tokens)
    logp = old + segments.spread(torch.tensor(SHIFTS))
    advantage = gspo.group_advantage(REWARDS, ["one prompt"] * len(LENGTHS))
    done = gspo.objectives.gspo(logp, old, advantage, segments, clip=OBJECTIVE.clip)
    for row, weights in enumerate(done.weight.split(LENGTHS)):
        cut = "cut" if done.cut_low[row] or done.cut_high[row] else "kept"
        print(f"{len(weights)} tokens  A {advantage[row]:+.2f}", end="  ")
        print(f"s {done.log_ratio[row].exp():.4f}  {cut:4}  each token weighs {weights[0]:+.3f}")

    whole = -done.weight / OBJECTIVE.divisor(len(LENGTHS), segments.num_tokens)
    first = [len(LENGTHS)] * len(PARTS)
    mean_of_means = [len(rows) * len(PARTS) for rows in PARTS]
    for name, divisors in (("counted first", first), ("a mean of means", mean_of_means)):
        wrong = (gradient(logp, old, advantage, divisors) - whole).abs().max() / whole.abs().max()
        print(f"denominator {name}: {wrong:.0%} off the gradient of the whole batch")


if __name__ == "__main__":
    main()
