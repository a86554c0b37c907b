"""How many tokens and rows a run holds at once: from a recipe's batch settings to those of one forward."""

from __future__ import annotations

from dataclasses import dataclass

from gspo.plan.shape import ModelShape
from gspo.policy.forward import LEAST_TOKENS, MOST_TOKENS
from gspo.policy.head import CHUNK_BYTES, FLOAT32_BYTES, KEPT_SHARE
from gspo.recipes.schema import Recipe, TaskData


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Of one device. rows: responses sampled side by side. prompts_held: prompts that those rows
    belong to. microbatch: tokens of one forward of the update, trained: those of them whose
    log-probs are taken. kept_logits: the update keeps the logits, for they are few.
    maps_large_blocks: it does not, and freed blocks go back to the system (`policy.allocator`)."""

    prompt_tokens: int
    response_tokens: int
    prompts: int
    group: int
    minibatches: int
    rows: int
    prompts_held: int
    microbatch: int
    trained: int
    kept_logits: bool
    maps_large_blocks: bool

    @property
    def longest(self) -> int:
        """Prompt and response together."""
        return self.prompt_tokens + self.response_tokens

    @property
    def responses(self) -> int:
        """A step's."""
        return self.prompts * self.group

    @property
    def step_tokens(self) -> int:
        """A step's tokens in the update: prompts once a group."""
        return self.prompts * (self.prompt_tokens + self.group * self.response_tokens)


def workload_of(
    recipe: Recipe,
    shape: ModelShape,
    prompt_tokens: int,
    *,
    weight_bytes: int,
    on_cpu: bool,
    devices: int,
) -> Workload:
    """Every response as long as it may be, and every one trained on: the most a step can hold.
    weight_bytes: of the whole model on a device, which the trainer's head looks at."""
    rollout = recipe.rollout
    response_tokens = rollout.max_tokens
    longest = prompt_tokens + response_tokens
    kept_tokens = max(int(KEPT_SHARE * weight_bytes), CHUNK_BYTES) // (
        FLOAT32_BYTES * shape.vocabulary
    )
    good = min(max(kept_tokens, LEAST_TOKENS), MOST_TOKENS) if on_cpu else None
    most = recipe.trainer.max_tokens_per_microbatch
    budget = max(most if good is None else min(most, good), longest)
    prompts = -(-rollout.prompts // devices)
    microbatch, trained = _largest_forward(recipe, prompts, prompt_tokens, budget)
    rows = min(recipe.engine.max_batch, _most_rows(recipe, prompts))
    return Workload(
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        prompts=rollout.prompts,
        group=rollout.group,
        minibatches=recipe.trainer.minibatches,
        rows=rows,
        prompts_held=-(-rows // rollout.group),
        microbatch=microbatch,
        trained=trained,
        kept_logits=trained <= kept_tokens,
        maps_large_blocks=on_cpu and min(good or 0, most) > kept_tokens,
    )


def _largest_forward(
    recipe: Recipe, prompts: int, prompt_tokens: int, budget: int
) -> tuple[int, int]:
    """Tokens, and trained ones, of the fullest micro-batch of whole responses."""
    group, response_tokens = recipe.rollout.group, recipe.rollout.max_tokens
    minibatches = recipe.trainer.minibatches
    if recipe.trainer.minibatch_by == "group":
        groups, size = max(prompts // minibatches, 1), group
    else:  # mixed: all prompts, a share of each group
        groups, size = prompts, max(group // minibatches, 1)
    cost = prompt_tokens + size * response_tokens
    if cost <= budget:
        number = min(budget // cost, groups)
        return number * cost, number * size * response_tokens
    responses = max((budget - prompt_tokens) // response_tokens, 1)
    return prompt_tokens + responses * response_tokens, responses * response_tokens


def _most_rows(recipe: Recipe, prompts: int) -> int:
    """Responses of one request: a step's, or an evaluation's where there are held-out prompts."""
    own = prompts * recipe.rollout.group
    data = recipe.data
    held_out = isinstance(data, TaskData) or bool(data.eval_path or data.eval_split)
    return max(own, recipe.evaluate.prompts * recipe.evaluate.samples) if held_out else own
