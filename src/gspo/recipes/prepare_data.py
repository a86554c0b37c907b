"""From the data section of a recipe to prompts with their ids, and the report of what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from gspo.data.files import read_rows
from gspo.data.gym import GymTask
from gspo.data.prompts import load_prompts, repeated
from gspo.data.report import Counted, DataReport
from gspo.data.tasks import Task
from gspo.data.templates import Chat, encode_prompts
from gspo.diagnostics.rollouts import PASS_REWARD
from gspo.errors import DataError, RecipeError
from gspo.recipes.schema import FileData, Recipe
from gspo.types import Prompt

#: A score that passes this can be had without an answer; tried on the first prompts.
NO_ANSWER = "I do not know"
NUM_TRIED = 16


@dataclass(frozen=True, slots=True)
class PreparedData:
    """reports: of the training data, and of the held-out data where there are any."""

    prompts: Sequence[Prompt]
    held_out: Sequence[Prompt]
    reports: Sequence[DataReport]


@dataclass(frozen=True, slots=True)
class _Part:
    prompts: list[Prompt]
    report: DataReport


def prepare_data(
    recipe: Recipe,
    task: Task | GymTask | None,
    tokenizer: PreTrainedTokenizerBase,
    context_tokens: int,
) -> PreparedData:
    """Load, put through the chat template, and leave out what is too long."""
    limit = prompt_limit(recipe, context_tokens)
    loaded, loaded_out = _loaded(recipe, task)
    if recipe.data.only is not None:
        loaded = _only(loaded, recipe.data.only)
    train = _encoded(loaded, recipe, tokenizer, limit)
    if loaded_out is None:
        return PreparedData(train.prompts, [], [train.report])
    held_out = _encoded(loaded_out, recipe, tokenizer, limit)
    report = held_out.report
    if again := repeated(held_out.prompts, train.prompts):
        what = "held-out prompts are trained on too, so their pass rate is not that of new ones"
        report = report.noting([Counted(what, len(again), again[0])])
    return PreparedData(train.prompts, held_out.prompts, [train.report, report])


def prompt_limit(recipe: Recipe, context_tokens: int) -> int:
    """Longest prompt in tokens: what the recipe says, or what the model has room for."""
    response, wanted = recipe.rollout.max_tokens, recipe.data.max_prompt_tokens
    room = context_tokens - response
    if room < 1:
        raise RecipeError(
            f"rollout.max_tokens is {response}, the model's context {context_tokens} tokens: no room for a prompt; lower the one or raise the other (model.max_positions of a new model)"
        )
    if wanted is not None and wanted > room:
        raise RecipeError(
            f"data.max_prompt_tokens is {wanted}, but the model's context of {context_tokens} tokens leaves {room} beside a response of {response} (rollout.max_tokens); set it to {room} or less, or to null for what there is room for"
        )
    return wanted or room


def _loaded(recipe: Recipe, task: Task | GymTask | None) -> tuple[_Part, _Part | None]:
    data, num_held_out = recipe.data, recipe.evaluate.prompts
    if not isinstance(data, FileData):
        if task is None:
            raise RecipeError(f"data.task is {data.task!r}; wanted a task, or data.path to a file")
        # The held-out questions are the same for every seed, so that runs can be compared.
        return (
            _made(task, task.prompts("train", data.num_prompts, recipe.seed)),
            _made(task, task.prompts("held_out", num_held_out, 0)),
        )

    def read(source: str, split: str | None) -> _Part:
        loaded = load_prompts(
            source,
            columns=data.columns,
            subset=data.subset,
            split=split,
            bad_rows=data.bad_rows,
        )
        return _Part(loaded.prompts, loaded.report)

    train = read(data.path, data.split)
    if data.eval_path is None and data.eval_split is None:
        return train, None
    held_out = read(data.eval_path or data.path, data.eval_split)
    beyond = held_out.prompts[num_held_out:]
    if not beyond:
        return train, held_out
    # The first ones: the same in every run, so that runs can be compared.
    unused = Counted("not used, evaluate.prompts is smaller", len(beyond), beyond[0].id)
    report = replace(held_out.report, kept=num_held_out).noting([unused])
    return train, _Part(held_out.prompts[:num_held_out], report)


def _only(part: _Part, listed: str) -> _Part:
    ids = {str(row.values.get("id")) for row in read_rows(Path(listed))}
    kept = [prompt for prompt in part.prompts if prompt.id in ids]
    if not kept:
        raise DataError(
            f"data.only: none of the {len(ids)} ids in {listed} is one of the {len(part.prompts)} prompts of {part.report.source}; make it anew with 'gspo prompts'"
        )
    left = [prompt.id for prompt in part.prompts if prompt.id not in ids]
    if not left:
        return part
    return _Part(kept, part.report.without([Counted(f"not in {listed}", len(left), left[0])]))


def _made(task: Task | GymTask, prompts: list[Prompt]) -> _Part:
    if not isinstance(task, GymTask):
        return _Part(prompts, DataReport(source=task.name, rows=len(prompts), kept=len(prompts)))
    report = DataReport(source=task.source, rows=len(prompts), kept=len(prompts))
    paid = [
        p.id
        for p in prompts[:NUM_TRIED]
        if task.reward(NO_ANSWER, p.columns["entry"]) > PASS_REWARD
    ]
    if paid:
        what = f"of the first {NUM_TRIED}, the data set's own score passes {NO_ANSWER!r}"
        report = report.noting([Counted(what, len(paid), paid[0])])
    return _Part(prompts, report)


def _encoded(part: _Part, recipe: Recipe, tokenizer: PreTrainedTokenizerBase, limit: int) -> _Part:
    section = recipe.data.chat
    chat = None if section is None else Chat(section.system, section.options)
    encoded = encode_prompts(
        part.prompts, tokenizer, max_tokens=limit, too_long=recipe.data.overlong, chat=chat
    )
    if not encoded.dropped:
        return _Part(encoded.prompts, part.report)
    name, length = encoded.dropped[0]
    what = f"longer than {limit} tokens"
    dropped = Counted(what, len(encoded.dropped), f"{name} ({length} tokens)")
    return _Part(encoded.prompts, part.report.without([dropped]))
