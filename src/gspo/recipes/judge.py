"""Evaluating and sampling a model outside a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.errors import DataError
from gspo.policy.model import load_model
from gspo.recipes import build
from gspo.recipes.prepare import Prepared, prepare
from gspo.recipes.schema import Recipe
from gspo.recipes.target import with_model
from gspo.trainer.evaluate import EvalResult, evaluate
from gspo.trainer.judge import judge_groups
from gspo.types import Group


def evaluate_model(
    recipe: Recipe, folder: Path, on_group: Callable[[], None] = lambda: None
) -> EvalResult:
    """Held-out pass rates of the model in this folder, as `train` measures them."""
    prepared, engine = _open(recipe, folder)
    sampling = build.eval_sampling(recipe)
    return evaluate(engine, prepared.verifier, prepared.held_out, sampling, on_group)


def sample_model(recipe: Recipe, folder: Path, num_prompts: int, sampling: Sampling) -> list[Group]:
    """Judged answers to the first held-out prompts, in order."""
    prepared, engine = _open(recipe, folder)
    prompts = prepared.held_out[:num_prompts]
    groups = judge_groups(prepared.verifier, engine.generate(prompts, sampling))
    order = {prompt.id: k for k, prompt in enumerate(prompts)}
    return sorted(groups, key=lambda group: order[group.prompt.id])


def _open(recipe: Recipe, folder: Path) -> tuple[Prepared, LocalEngine]:
    recipe = with_model(recipe, folder)
    prepared = prepare(recipe)
    if not prepared.held_out:
        raise DataError(
            "the recipe has no held-out prompts; set data.eval_path to a JSONL file of them"
        )
    model = load_model(folder, build.torch_dtype(recipe))
    return prepared, build.build_engine(recipe, prepared, model)
