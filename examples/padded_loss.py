"""GSPO in a training loop of your own: padded tensors in, a loss and what the clip did out.

    python examples/padded_loss.py

The policy is a table of logits: the next token depends on the last one alone. The task: count up
from the prompt to 11, then stop. A response earns the share of its tokens that are right.
"""

from __future__ import annotations

import torch
from torch import Tensor

import gspo

VOCABULARY, STOP, MAX_TOKENS = 12, 0, 16
PROMPTS, GROUP, MINIBATCHES, STEPS = 16, 8, 4, 40
LOW, HIGH = 0.03, 0.03  # distances from ratio 1: about the spread of log s at the start


def sample(table: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens [N, T], the token before each [N, T], and which tokens belong to the response."""
    last, columns = prompt, list[Tensor]()
    for _ in range(MAX_TOKENS):
        last = torch.multinomial(table[last].softmax(-1), 1).squeeze(1)
        columns.append(last)
    tokens = torch.stack(columns, 1)
    before = torch.cat([prompt[:, None], tokens[:, :-1]], 1)
    return tokens, before, (before == STOP).cumsum(1) == 0


def main() -> None:
    """Sample, reward, compare within groups, and take four optimizer steps, forty times."""
    torch.manual_seed(0)
    table = torch.zeros(VOCABULARY, VOCABULARY, requires_grad=True)
    optimizer = torch.optim.Adam([table], lr=0.05)
    for step in range(1, STEPS + 1):
        prompt = torch.randint(1, VOCABULARY, (PROMPTS,)).repeat_interleave(GROUP)
        group = torch.arange(PROMPTS).repeat_interleave(GROUP)
        with torch.no_grad():
            tokens, before, mask = sample(table, prompt)
            old = table.log_softmax(-1)[before, tokens]
        reward = ((tokens == (before + 1) % VOCABULARY) & mask).sum(1) / mask.sum(1)
        advantage = gspo.group_advantage(reward, group)
        stats: dict[str, float | None] = {}
        for rows in torch.randperm(PROMPTS).chunk(MINIBATCHES):  # whole groups
            pick = torch.isin(group, rows)
            logp = table.log_softmax(-1)[before[pick], tokens[pick]]
            loss, stats = gspo.gspo_loss(logp, old[pick], advantage[pick], mask[pick], LOW, HIGH)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step == 1 or step % 10 == 0:
            cut, spread = stats["clip_frac_seq"] or 0.0, stats["log_s_std"] or 0.0
            print(f"step {step:2}  reward {reward.mean():.2f}", end="  ")
            print(f"last minibatch: {cut:.0%} of responses cut, log s spreads by {spread:.4f}")


if __name__ == "__main__":
    main()
