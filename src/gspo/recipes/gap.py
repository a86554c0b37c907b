"""The gap between engine and trainer, measured afresh: same weights, same tokens."""

from __future__ import annotations

import copy

import torch

from gspo.diagnostics.gap import GapTokens
from gspo.policy.packing import pack_rollouts
from gspo.recipes import build
from gspo.recipes.prepare import Prepared
from gspo.recipes.schema import Recipe
from gspo.types import Group, Verdict


def measure_gap(
    recipe: Recipe, prepared: Prepared, engine_dtype: torch.dtype, on_coldstart_step: build.Progress
) -> GapTokens:
    """One step's responses, sampled by a copy of the starting model in `engine_dtype`, scored by
    the model as the trainer would."""
    model, _ = build.build_model(recipe, prepared, on_coldstart_step)
    sampler = copy.deepcopy(model).to(engine_dtype)  # pyright: ignore[reportArgumentType]
    engine = build.build_engine(recipe, prepared, sampler)
    prompts = prepared.prompts[: recipe.rollout.prompts]
    sampled = list(engine.generate(prompts, build.rollout_sampling(recipe)))
    groups = [_scored(group) for group in sampled]
    count = sum(len(group.rollouts) for group in groups)
    packed = pack_rollouts(groups, torch.zeros(count), temperature=recipe.rollout.temperature)
    return GapTokens(
        engine_logp=packed.batch.engine_logp,
        trainer_logp=build.build_policy(recipe, model).score(packed.batch),
        segments=packed.batch.segments,
        names=[f"{groups[g].prompt.id} sample {sample}" for g, sample in packed.kept],
    )


def _scored(group: Group) -> Group:
    """Packing wants verdicts; the gap does not depend on them."""
    return Group(group.prompt, [rollout.judged(Verdict(reward=0.0)) for rollout in group.rollouts])
