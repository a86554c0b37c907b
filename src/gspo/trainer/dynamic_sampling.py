"""Dynamic sampling: groups whose rewards are all equal are replaced by new prompts.

As DAPO does (arXiv 2503.14476, section 3.2), with a bound: a step samples at most `max_factor`
times its prompts. Then it is filled with groups that teach nothing, first sampled first; a step
without a single informative group ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gspo.diagnostics.rollouts import PASS_REWARD
from gspo.errors import DataError
from gspo.stats import Mean, Stats, Sum
from gspo.types import Group


@dataclass(slots=True)
class Harvest:
    """Judged groups of one step, in data order, until enough of them are informative."""

    wanted: int
    at_most: int
    groups: list[Group] = field(default_factory=list[Group])
    rounds: int = 0

    def next_round(self) -> int:
        """How many more prompts to sample: as many as are missing, within the bound."""
        missing = self.wanted - sum(group.informative for group in self.groups)
        return max(min(missing, self.at_most - len(self.groups)), 0)

    def add(self, groups: Sequence[Group]) -> None:
        """The groups of one round."""
        self.groups += groups
        self.rounds += 1

    def chosen(self, step: int) -> list[Group]:
        """`wanted` groups in data order: the informative ones, and others only where those are too
        few. DataError when no group is."""
        informative = [k for k, group in enumerate(self.groups) if group.informative]
        idle = [k for k, group in enumerate(self.groups) if not group.informative]
        if not informative:
            rewards = sorted({reward for group in self.groups for reward in group.rewards})
            raise DataError(
                f"step {step} sampled {len(self.groups)} prompts and the rewards of each were all equal ({', '.join(f'{r:g}' for r in rewards[:5]) or 'none was scored'}): nothing to learn from. Choose prompts of middle difficulty with 'gspo prompts', raise rollout.group or rollout.dynamic_sampling.max_factor, or look at the verifier with 'gspo verify'; a checkpoint of the step before is kept"
            )
        return [self.groups[k] for k in sorted((informative + idle)[: self.wanted])]

    def stats(self) -> Stats:
        """By the names of docs/metrics.md."""
        num_informative = sum(group.informative for group in self.groups)
        idle_tokens, tokens = 0, 0
        for group in self.groups:
            length = sum(len(rollout.response_ids) for rollout in group.rollouts)
            tokens += length
            idle_tokens += 0 if group.informative else length
        rewards = [reward for group in self.groups for reward in group.rewards]
        filled = self.wanted - num_informative
        return {
            "dynamic/sampled_groups": Sum(len(self.groups)),
            "dynamic/replaced_groups": Sum(len(self.groups) - self.wanted),
            "dynamic/filled_groups": Sum(filled),
            "dynamic/rounds": Mean(self.rounds, 1),
            "dynamic/idle_tokens_share": Mean(idle_tokens, tokens),
            "dynamic/reward_mean": Mean(sum(rewards), len(rewards)),
            "dynamic/pass_rate": Mean(sum(r > PASS_REWARD for r in rewards), len(rewards)),
        }
