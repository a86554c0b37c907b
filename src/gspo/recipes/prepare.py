"""From a recipe to data, tokenizer and verifier: all that can be wrong before a model exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from gspo.data.prompts import load_prompts
from gspo.data.tasks import Task, make_task
from gspo.data.templates import encode_prompts, response_ids
from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError, RecipeError, VerifierError
from gspo.policy.model import check_folder
from gspo.recipes.schema import ColdStartSection, FileData, NewModel, Recipe, TaskData
from gspo.trainer.coldstart import Demonstration
from gspo.types import Prompt
from gspo.verifiers.base import Verifier
from gspo.verifiers.exact import ExactVerifier
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.loading import load_function
from gspo.verifiers.strict import StrictlyWatched

#: What transformers raises for files that are not what their names say.
BROKEN_FILES = (OSError, ValueError, KeyError, TypeError, AttributeError)

#: Gold answers judged before anything is sampled.
NUM_PROBES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything but the model. dropped: (id, tokens) of prompts left out for their length.
    verifier_digest, strict_digest: SHA-256 of a function's file. probed: gold answers that passed."""

    tokenizer: PreTrainedTokenizerBase
    prompts: Sequence[Prompt]
    held_out: Sequence[Prompt]
    dropped: Sequence[tuple[str, int]]
    verifier: Verifier
    verifier_digest: str | None
    strict_digest: str | None
    probed: int
    context_tokens: int
    task: Task | None

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
    task = _task(recipe)
    tokenizer = _tokenizer(recipe, task)
    context = _context_tokens(recipe)
    room = context - recipe.rollout.max_tokens
    if room < 1:
        raise RecipeError(
            f"rollout.max_tokens is {recipe.rollout.max_tokens}, the model's context {context} tokens: no room for a prompt; lower the one or raise the other (model.max_positions of a new model)"
        )
    limit = min(recipe.data.max_prompt_tokens or room, room)
    verifier, digest = _verifier(recipe, task)
    strict, strict_digest = _strict(recipe)
    train, held_out = _prompts(recipe, task)
    encoded = encode_prompts(train, tokenizer, max_tokens=limit, too_long=recipe.data.overlong)
    kept_out = (
        encode_prompts(held_out, tokenizer, max_tokens=limit, too_long=recipe.data.overlong)
        if held_out
        else None
    )
    _check_sizes(recipe, encoded.prompts)
    probed = _probe(verifier, encoded.prompts, "verifier")
    if strict is not None:
        _probe(strict, encoded.prompts, "strict grader")
        verifier = StrictlyWatched(verifier, strict)
    return Prepared(
        tokenizer=tokenizer,
        prompts=encoded.prompts,
        held_out=kept_out.prompts if kept_out else [],
        dropped=[*encoded.dropped, *(kept_out.dropped if kept_out else [])],
        verifier=verifier,
        verifier_digest=digest,
        strict_digest=strict_digest,
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
    if settings is None or task is None:
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


def _task(recipe: Recipe) -> Task | None:
    if not isinstance(recipe.data, TaskData):
        return None
    return make_task(recipe.data.task, **recipe.data.options)


def _tokenizer(recipe: Recipe, task: Task | None) -> PreTrainedTokenizerBase:
    folder = recipe.model.tokenizer or recipe.model.path
    if folder is None:
        if task is None:
            raise RecipeError(
                "model has neither path nor tokenizer, and data.path brings none: set model.path to a Hugging Face folder, or model.tokenizer to the folder of a tokenizer"
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


def _verifier(recipe: Recipe, task: Task | None) -> tuple[Verifier, str | None]:
    section = recipe.verifier
    if section.function is not None:
        loaded = load_function(section.function)
        return FunctionVerifier(loaded.function, section.function), loaded.sha256
    if section.kind == "exact":
        return ExactVerifier(section.marker), None
    if task is None:
        raise RecipeError(
            "verifier.kind is 'task', but the prompts come from a file: set verifier.kind to exact or function"
        )
    return FunctionVerifier(task.reward, task.name), None


def _strict(recipe: Recipe) -> tuple[Verifier | None, str | None]:
    named = recipe.verifier.strict
    if named is None:
        return None, None
    if named == "exact":
        return ExactVerifier(recipe.verifier.marker), None
    loaded = load_function(named)
    return FunctionVerifier(loaded.function, named), loaded.sha256


def _prompts(recipe: Recipe, task: Task | None) -> tuple[list[Prompt], list[Prompt]]:
    data = recipe.data
    if isinstance(data, FileData):
        train = load_prompts(data.path, prompt=data.prompt, answer=data.answer)
        if data.eval_path is None:
            return train, []
        held_out = load_prompts(data.eval_path, prompt=data.prompt, answer=data.answer)
        return train, held_out[: recipe.evaluate.prompts]
    if task is None:
        raise RecipeError(f"data.task is {data.task!r}; wanted a task, or data.path to a file")
    # The held-out questions are the same for every seed, so that runs can be compared.
    return (
        task.prompts("train", data.num_prompts, recipe.seed),
        task.prompts("held_out", recipe.evaluate.prompts, 0),
    )


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


def _probe(verifier: Verifier, prompts: Sequence[Prompt], who: str) -> int:
    """Judge the gold answer of some prompts: a verifier that refuses them would only teach noise."""
    passed = 0
    for prompt in prompts[:NUM_PROBES]:
        verdict = verifier.probe(prompt)
        if verdict is None:
            continue
        if verdict.failure is not None:
            raise VerifierError(
                f"the {who} broke on the gold answer of prompt {prompt.id}: {verdict.failure}"
            )
        if verdict.reward is None or verdict.reward <= 0:
            raise VerifierError(
                f"the {who} gives the gold answer of prompt {prompt.id} the reward {verdict.reward}; wanted more than 0. Check the answer column and the verifier with 'gspo verify'"
            )
        passed += 1
    return passed
