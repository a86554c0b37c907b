"""From a recipe to data, tokenizer and verifier: all that can be wrong before a model exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from gspo.data.gym import PREFIX, GymTask, gym_task
from gspo.data.report import DataReport
from gspo.data.tasks import Task, make_task
from gspo.data.templates import encode_prompts, response_ids
from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError, RecipeError
from gspo.policy.model import check_folder
from gspo.recipes.judges import build_judges
from gspo.recipes.prepare_data import prepare_data
from gspo.recipes.schema import ColdStartSection, NewModel, Recipe, TaskData
from gspo.recorders.services import require
from gspo.trainer.coldstart import Demonstration
from gspo.types import Prompt
from gspo.verifiers.base import Verifier

#: What transformers raises for files that are not what their names say.
BROKEN_FILES = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything but the model. reports: what was read of the training and the held-out data, and
    what of it was left out.
    verifier_digest, strict_digest: SHA-256 of a function's file. probed: gold answers that passed."""

    tokenizer: PreTrainedTokenizerBase
    prompts: Sequence[Prompt]
    held_out: Sequence[Prompt]
    reports: Sequence[DataReport]
    verifier: Verifier
    verifier_digest: str | None
    strict_digest: str | None
    probed: int
    context_tokens: int
    task: Task | GymTask | None

    @property
    def num_dropped(self) -> int:
        """Rows of the data that were left out."""
        return sum(report.num_dropped for report in self.reports)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of response ids, special tokens left out."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def data_digest(self) -> str:
        """SHA-256 over ids and token ids of all prompts, training first."""
        rows = [(p.id, list(p.ids)) for p in [*self.prompts, *self.held_out]]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def tokenizer_digest(self) -> str:
        """SHA-256 over the vocabulary and the chat template."""
        parts = [sorted(self.tokenizer.get_vocab().items()), self.tokenizer.chat_template]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def prepare(recipe: Recipe) -> Prepared:
    """Load and check. Raises RecipeError, DataError or VerifierError before any model is built."""
    require(recipe.record.to)
    task = _task(recipe)
    tokenizer = _tokenizer(recipe, task)
    context = _context_tokens(recipe)
    judges = build_judges(recipe, task)
    data = prepare_data(recipe, task, tokenizer, context)
    _check_sizes(recipe, data.prompts)
    probed = judges.check(data.prompts)
    return Prepared(
        tokenizer=tokenizer,
        prompts=data.prompts,
        held_out=data.held_out,
        reports=data.reports,
        verifier=judges.together,
        verifier_digest=judges.verifier_digest,
        strict_digest=judges.strict_digest,
        probed=probed,
        context_tokens=context,
        task=task,
    )


def demonstrations(
    recipe: Recipe, prepared: Prepared
) -> tuple[ColdStartSection, Callable[[int], list[Demonstration]]]:
    """The settings of the cold start, and the batch of each of its steps as token ids. RecipeError
    without a task or a cold start."""
    settings, task = recipe.coldstart, prepared.task
    if settings is None or not isinstance(task, Task):
        raise RecipeError(
            "a cold start needs a coldstart section and a task that makes demonstrations"
        )

    def batch(step: int) -> list[Demonstration]:
        # One seed a step, apart from those of other runs up to 2^32 steps.
        seed = recipe.seed * 2**32 + step
        examples = task.demonstrations(settings.batch, seed, settings.corruption)
        prompts = encode_prompts(
            [example.prompt for example in examples],
            prepared.tokenizer,
            max_tokens=prepared.context_tokens,
        ).prompts
        return [
            Demonstration(prompt.ids, response_ids(example.completion, prepared.tokenizer))
            for prompt, example in zip(prompts, examples, strict=True)
        ]

    return settings, batch


def _task(recipe: Recipe) -> Task | GymTask | None:
    data = recipe.data
    if not isinstance(data, TaskData):
        return None
    if data.task.startswith(PREFIX):
        return gym_task(data.task, data.options)
    return make_task(data.task, **data.options)


def _tokenizer(recipe: Recipe, task: Task | GymTask | None) -> PreTrainedTokenizerBase:
    folder = recipe.model.tokenizer or recipe.model.path
    if folder is None:
        if not isinstance(task, Task):
            raise RecipeError(
                f"model has neither path nor tokenizer, and {recipe.data.task or recipe.data.path} brings none: set model.path to a Hugging Face folder, or model.tokenizer to the folder of a tokenizer"
            )
        return character_tokenizer(task.characters)
    if not Path(folder).is_dir():
        raise DataError(
            f"model folder {folder} does not exist; wanted a local Hugging Face folder with tokenizer files"
        )
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except BROKEN_FILES as error:
        raise DataError(f"{folder} holds no tokenizer that loads: {_first_line(error)}") from error


def _context_tokens(recipe: Recipe) -> int:
    if isinstance(recipe.model, NewModel):
        return recipe.model.max_positions
    path = recipe.model.path
    check_folder(path)
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
    except (*BROKEN_FILES, StrictDataclassError) as error:
        raise DataError(f"{path} holds no model config that loads: {_first_line(error)}") from error
    context = getattr(config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(context, int):
        raise DataError(
            f"the config of {path} has max_position_embeddings {context!r}; wanted a number of tokens: a causal language model with positions"
        )
    return context


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0]}"


def _check_sizes(recipe: Recipe, prompts: Sequence[Prompt]) -> None:
    longest = max(len(p.ids) for p in prompts) + recipe.rollout.max_tokens
    budget = recipe.trainer.max_tokens_per_microbatch
    if longest > budget:
        raise RecipeError(
            f"the longest prompt and response are {longest} tokens, trainer.max_tokens_per_microbatch is {budget}; set it to {longest} or more, or lower rollout.max_tokens"
        )
    if len(prompts) < recipe.rollout.prompts:
        raise RecipeError(
            f"a step takes rollout.prompts = {recipe.rollout.prompts} prompts, the data has {len(prompts)}; lower rollout.prompts to {len(prompts)} or less, or add prompts"
        )
