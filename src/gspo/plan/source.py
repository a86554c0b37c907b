"""What is planned: a recipe by name or file, a run folder's, or a model without one.

Only configurations and the headers of weight files are read. A model without a recipe gets one:
mixed precision, prompts and responses of the lengths below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub.constants import HF_HUB_CACHE
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, PreTrainedConfig

from gspo.data.tasks import TASKS, make_task
from gspo.errors import DataError, nearest
from gspo.plan.headers import WeightFiles, weight_files
from gspo.policy.model import tiny_config
from gspo.recipes.build import shape_of
from gspo.recipes.load import load_recipe, recipe_from, recipe_names
from gspo.recipes.schema import NewModel, Recipe, TaskData

ASSUMED_PROMPT_TOKENS = 512
ASSUMED_RESPONSE_TOKENS = 2048
NUM_PROMPTS_LOOKED_AT = 64  # of a task: their lengths differ by a few characters
BROKEN_CONFIG = (OSError, ValueError, KeyError, TypeError, AttributeError, StrictDataclassError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """recipe: whole, a made one where only a model was named. files: the model's weight files, None
    where there are none. from_model: no recipe was named."""

    name: str
    recipe: Recipe
    from_model: bool
    files: WeightFiles | None


def find_source(target: str, overrides: Sequence[str]) -> Source:
    """The recipe or model of this name.

    Raises DataError where there is neither, RecipeError for settings that no recipe takes.
    """
    path = Path(target)
    if target in recipe_names() or path.suffix in (".yaml", ".yml"):
        return _of_recipe(target, load_recipe(target, overrides))
    if (path / "recipe.yaml").is_file():
        return _of_recipe(target, load_recipe(path / "recipe.yaml", overrides))
    model = path if (path / "config.json").is_file() or path.is_file() else _in_cache(target)
    if model is None:
        known = [*recipe_names(), *cached_models()]
        raise DataError(
            f"{target!r} is no recipe, no model folder with config.json and not in the local Hugging Face cache {HF_HUB_CACHE}; {nearest(target, known)}; nothing is fetched from a hub"
        )
    values: dict[str, Any] = {
        "model": {"path": str(model)},
        "data": {"path": "prompts.jsonl", "max_prompt_tokens": ASSUMED_PROMPT_TOKENS},
        "verifier": {"kind": "exact"},
        "rollout": {"max_tokens": ASSUMED_RESPONSE_TOKENS},
    }
    recipe = recipe_from(values, overrides)
    return Source(name=target, recipe=recipe, from_model=True, files=weight_files(model))


def _of_recipe(name: str, recipe: Recipe) -> Source:
    files = None if recipe.model.path is None else weight_files(Path(recipe.model.path))
    return Source(name=name, recipe=recipe, from_model=False, files=files)


def config_of(recipe: Recipe) -> PreTrainedConfig:
    """The configuration of the recipe's model.

    Raises DataError where its folder or its tokenizer's is not there or holds none that loads.
    """
    if isinstance(recipe.model, NewModel):
        return tiny_config(_vocabulary(recipe), **shape_of(recipe.model))
    path = Path(recipe.model.path)
    if not path.exists():
        raise DataError(
            f"model folder {str(path)!r} does not exist; wanted a local Hugging Face folder, or a config.json"
        )
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except BROKEN_CONFIG as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} holds no model config that loads: {first}") from error


def _vocabulary(recipe: Recipe) -> int:
    """Of a new model: its tokenizer's, or that of the task's characters."""
    if recipe.model.tokenizer is not None:
        from transformers import AutoTokenizer

        try:
            return len(AutoTokenizer.from_pretrained(recipe.model.tokenizer, local_files_only=True))
        except BROKEN_CONFIG as error:
            raise DataError(
                f"{recipe.model.tokenizer} holds no tokenizer that loads: {error}"
            ) from error
    if isinstance(recipe.data, TaskData) and recipe.data.task in TASKS:
        from gspo.data.tokenizer import character_tokenizer

        return len(character_tokenizer(TASKS[recipe.data.task].characters))
    raise DataError(
        "the recipe's model has neither path nor tokenizer, and its data bring none: set model.path or model.tokenizer"
    )


def prompt_tokens_of(recipe: Recipe, context: int) -> tuple[int, str | None]:
    """Tokens of the longest prompt, and what was assumed of it: a task's own prompts, at most one
    token a character; else data.max_prompt_tokens; else a usual length."""
    data = recipe.data
    if isinstance(data, TaskData) and data.task in TASKS:
        task = make_task(data.task, **data.options)
        prompts = task.prompts("train", NUM_PROMPTS_LOOKED_AT, recipe.seed)
        return max(len(prompt.text) for prompt in prompts), None
    if data.max_prompt_tokens is not None:
        return data.max_prompt_tokens, None
    room = context - recipe.rollout.max_tokens if context else ASSUMED_PROMPT_TOKENS
    tokens = max(min(ASSUMED_PROMPT_TOKENS, room), 1)
    return tokens, f"prompts are taken to have {tokens} tokens: data.max_prompt_tokens says nothing"


def cached_models() -> dict[str, Path]:
    """Every model of the local Hugging Face cache that has a config: its name and its newest
    snapshot."""
    found: dict[str, Path] = {}
    for folder in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        configs = sorted(folder.glob("snapshots/*/config.json"), key=lambda p: p.stat().st_mtime)
        if configs:
            name = folder.name.removeprefix("models--").replace("--", "/")
            found[name] = configs[-1].parent
    return found


def _in_cache(target: str) -> Path | None:
    """By its whole name, or the name without its owner."""
    models = cached_models()
    if target in models:
        return models[target]
    return next((path for name, path in models.items() if name.endswith(f"/{target}")), None)
