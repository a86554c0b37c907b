"""From recorded or sampled groups to a packed batch, as the loop does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gspo.policy.packing import pack_rollouts
from gspo.types import Group, Prompt, Rollout, RolloutBatch, Verdict

TEMPERATURE = 1.0


def prompts_of(given: Mapping[str, Any]) -> list[Prompt]:
    """The prompts, in order."""
    return [
        Prompt(id=f"p{number}", text=words(ids), ids=ids)
        for number, ids in enumerate(given["prompts"])
    ]


def words(ids: Sequence[int]) -> str:
    """The text whose tokens are these ids."""
    return " ".join(f"t{number}" for number in ids)


def recorded_batch(given: Mapping[str, Any], samples: int) -> RolloutBatch:
    """The recorded responses, with their advantages; engine log-probs unknown."""
    groups = []
    for number, prompt in enumerate(prompts_of(given)):
        first = number * samples
        rollouts = tuple(
            _rollout(prompt, given["responses"][row], given["rewards"][row])
            for row in range(first, first + samples)
        )
        groups.append(Group(prompt, rollouts))
    advantages = torch.tensor(given["advantages"], dtype=torch.float32)
    return pack_rollouts(groups, advantages, temperature=TEMPERATURE).batch


def _rollout(prompt: Prompt, ids: Sequence[int], reward: float) -> Rollout:
    return Rollout(
        prompt_ids=prompt.ids,
        response_ids=ids,
        trained=(True,) * len(ids),
        engine_logp=(None,) * len(ids),
        text="",
        finish="length",
        version=0,
        verdict=Verdict(reward=reward),
    )


def sampled_batch(groups: Sequence[Group], given: Mapping[str, Any], samples: int) -> RolloutBatch:
    """Sampled groups, in the prompts' order, each response with the reward of its row."""
    by_prompt = {group.prompt.id: group for group in groups}
    judged = []
    for number, prompt in enumerate(prompts_of(given)):
        rewards = given["rewards"][number * samples : (number + 1) * samples]
        rollouts = by_prompt[prompt.id].rollouts
        pairs = zip(rollouts, rewards, strict=True)
        judged.append(Group(prompt, tuple(r.judged(Verdict(reward=x)) for r, x in pairs)))
    advantages = torch.tensor(given["advantages"], dtype=torch.float32)
    return pack_rollouts(judged, advantages, temperature=TEMPERATURE).batch
