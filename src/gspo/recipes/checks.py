"""What settings must agree on. Each message has the rule, the numbers, and a setting that works."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gspo.errors import RecipeError
from gspo.recipes.objective_section import kl_penalty, objective_settings
from gspo.recipes.sections import FileData, NewModel, TaskData

if TYPE_CHECKING:
    from gspo.recipes.schema import Recipe

Conflict = tuple[str, str]  # (setting to change, message that follows its name)
FUNCTION = re.compile(r".+:[A-Za-z_]\w*")


def conflicts(recipe: Recipe) -> Iterator[Conflict]:
    """Every rule the recipe breaks."""
    for rule in (_group, _minibatches, _lengths, _heads, _data, _verifier, _warmups, _objective):
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
    if isinstance(data, FileData) and recipe.coldstart is not None:
        yield (
            "coldstart",
            "needs a task that writes demonstrations, but data come from a file; set coldstart to "
            "null and start from a trained model.path",
        )
    new = isinstance(recipe.model, NewModel) and recipe.model.tokenizer is None
    if isinstance(data, FileData) and new:
        yield (
            "model.tokenizer",
            "is null, which is a task's alphabet, but data come from a file; set model.path or "
            "model.tokenizer",
        )


def _verifier(recipe: Recipe) -> Iterator[Conflict]:
    verifier, data = recipe.verifier, recipe.data
    if verifier.kind == "task" and isinstance(data, FileData):
        yield (
            "verifier.kind",
            "is task, but data come from a file, which brings no verifier; set it to exact or "
            "function",
        )
    if verifier.kind == "function" and verifier.function is None:
        yield "verifier.function", "is null, but verifier.kind is function; set it to file.py:name"
    if verifier.function is not None and not FUNCTION.fullmatch(verifier.function):
        yield (
            "verifier.function",
            f"is {verifier.function!r}; wanted file.py:name or package.module:name",
        )
    strict = verifier.strict
    if strict not in (None, "exact") and not FUNCTION.fullmatch(strict):
        yield (
            "verifier.strict",
            f"is {strict!r}; wanted exact, file.py:name or package.module:name",
        )
    for setting, kind in (("function", "function"), ("marker", "exact")):
        graders = (verifier.kind, strict) if setting == "marker" else (verifier.kind,)
        if getattr(verifier, setting) is not None and kind not in graders:
            yield (
                f"verifier.{setting}",
                f"goes with verifier.kind: {kind}, which is {verifier.kind}; set one of the two",
            )
    if "exact" in (verifier.kind, strict) and isinstance(data, FileData) and data.answer is None:
        where = "kind" if verifier.kind == "exact" else "strict"
        yield (
            "data.answer",
            f"is null, but verifier.{where}: exact compares with it; name the column",
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


def _objective(recipe: Recipe) -> Iterator[Conflict]:
    try:
        objective_settings(recipe.objective, recipe.rollout.max_tokens)
        kl_penalty(recipe.objective)
    except RecipeError as error:
        yield "objective", f"is impossible: {error}"
