"""What settings must agree on. Each message has the rule, the numbers, and a setting that works."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gspo.errors import RecipeError
from gspo.recipes.fields import TASK_NAMES
from gspo.recipes.objective_section import kl_penalty, objective_settings
from gspo.recipes.sections import FileData, NewModel, TaskData
from gspo.recipes.verifier_checks import verifier_conflicts

if TYPE_CHECKING:
    from gspo.recipes.schema import Recipe

Conflict = tuple[str, str]  # (setting to change, message that follows its name)


def conflicts(recipe: Recipe) -> Iterator[Conflict]:
    """Every rule the recipe breaks."""
    for rule in (
        _group,
        _minibatches,
        _lengths,
        _heads,
        _data,
        _schedules,
        verifier_conflicts,
        _warmups,
        _record,
        _objective,
    ):
        yield from rule(recipe)


def _group(recipe: Recipe) -> Iterator[Conflict]:
    if recipe.rollout.group < 2:
        yield (
            "rollout.group",
            f"is {recipe.rollout.group}: no group baseline possible, a response is compared with "
            "the others of its prompt; set 2 or more, 8 is usual",
        )


def _minibatches(recipe: Recipe) -> Iterator[Conflict]:
    prompts, group = recipe.rollout.prompts, recipe.rollout.group
    parts, mode = recipe.trainer.minibatches, recipe.trainer.minibatch_by
    dealt = prompts if mode == "group" else prompts * max(group, 1)
    if dealt % parts == 0:
        return
    stride = parts if mode == "group" else parts // math.gcd(parts, max(group, 1))
    below = prompts - prompts % stride
    wanted_prompts = " or ".join(str(n) for n in (below, below + stride) if n > 0)
    divisors = [n for n in range(1, dealt + 1) if dealt % n == 0]
    wanted_parts = min(divisors, key=lambda n: (abs(n - parts), n))
    what = (
        f"whole groups are dealt out evenly, and {prompts} prompts"
        if mode == "group"
        else f"responses are dealt out evenly, and {prompts} prompts x {group} = {dealt} responses"
    )
    yield (
        "trainer.minibatches",
        f"is {parts}: {what} cannot be cut into {parts} equal parts; set rollout.prompts to "
        f"{wanted_prompts}, or trainer.minibatches to {wanted_parts}",
    )


def _lengths(recipe: Recipe) -> Iterator[Conflict]:
    prompt, response = recipe.data.max_prompt_tokens, recipe.rollout.max_tokens
    longest = (prompt or 1) + response
    parts = f"a prompt of {prompt or 'at least 1'} + a response of {response} tokens"
    budget = recipe.trainer.max_tokens_per_microbatch
    if longest > budget:
        yield (
            "trainer.max_tokens_per_microbatch",
            f"is {budget}, but {parts} must fit one micro-batch; set it to {longest} or more",
        )
    room = recipe.model.max_positions if isinstance(recipe.model, NewModel) else longest
    if longest > room:
        yield (
            "model.max_positions",
            f"is {room}, but {parts} must fit the model; set it to {longest} or more, or "
            "rollout.max_tokens lower",
        )


def _heads(recipe: Recipe) -> Iterator[Conflict]:
    model = recipe.model
    if not isinstance(model, NewModel):
        return
    if model.hidden % (2 * model.heads):
        near = max(round(model.hidden / (2 * model.heads)), 1) * 2 * model.heads
        yield (
            "model.hidden",
            f"is {model.hidden}: each of {model.heads} heads needs an even share of it; {near} works",
        )
    if model.heads % model.kv_heads:
        near = max(n for n in range(1, model.kv_heads + 1) if model.heads % n == 0)
        yield (
            "model.kv_heads",
            f"is {model.kv_heads}: {model.heads} heads must share them evenly; {near} works",
        )


def _data(recipe: Recipe) -> Iterator[Conflict]:
    data, prompts = recipe.data, recipe.rollout.prompts
    if isinstance(data, TaskData) and data.num_prompts < prompts:
        yield (
            "data.num_prompts",
            f"is {data.num_prompts}, fewer than the {prompts} of one step "
            f"(rollout.prompts); set it to {prompts} or more",
        )
    if isinstance(data, TaskData) and data.task in TASK_NAMES:
        for name, value in data.options.items():
            if value is None or isinstance(value, list):
                yield (
                    f"data.options.{name}",
                    f"is {value!r}; wanted a finite number, text, true or false",
                )
        return
    come = "data come from a file" if data.task is None else f"{data.task} brings none"
    if recipe.coldstart is not None:
        yield (
            "coldstart",
            f"needs a task that writes demonstrations, but {come}; set coldstart to "
            "null and start from a trained model.path",
        )
    if isinstance(recipe.model, NewModel) and recipe.model.tokenizer is None:
        yield (
            "model.tokenizer",
            f"is null, which is a task's alphabet, but {come}; set model.path or model.tokenizer",
        )
    if isinstance(data, FileData):
        nulls = [ours for ours, theirs in data.columns.items() if theirs is None]
        if wrong := [ours for ours in nulls if ours != "answer"]:
            yield (
                f"data.columns.{wrong[0]}",
                "is null; only answer may be, where there are none. A column that is not named "
                "keeps its name: leave it out",
            )


def _schedules(recipe: Recipe) -> Iterator[Conflict]:
    rollout = recipe.rollout
    growth = rollout.length_schedule
    if growth is not None and growth.start > rollout.max_tokens:
        yield (
            "rollout.length_schedule.start",
            f"is {growth.start}, more than the {rollout.max_tokens} it grows to "
            f"(rollout.max_tokens); set it to {rollout.max_tokens} or less",
        )


def _warmups(recipe: Recipe) -> Iterator[Conflict]:
    steps, parts = recipe.trainer.steps, recipe.trainer.minibatches
    if recipe.optimizer.warmup_steps >= steps * parts:
        yield (
            "optimizer.warmup_steps",
            f"is {recipe.optimizer.warmup_steps}, but the run has {steps} steps x {parts} "
            f"minibatches = {steps * parts} optimizer steps; set it to {steps * parts - 1} or fewer",
        )
    cold = recipe.coldstart
    if cold is not None and cold.warmup >= cold.steps:
        yield (
            "coldstart.warmup",
            f"is {cold.warmup} of {cold.steps} steps; set it to {cold.steps - 1} or fewer",
        )


def _record(recipe: Recipe) -> Iterator[Conflict]:
    names = recipe.record.to
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield "record.to", f"names {', '.join(twice)} more than once; name each service once"


def _objective(recipe: Recipe) -> Iterator[Conflict]:
    try:
        objective_settings(recipe.objective, recipe.rollout.max_tokens)
        kl_penalty(recipe.objective)
    except RecipeError as error:
        yield "objective", f"is impossible: {error}"
