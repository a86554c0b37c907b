"""From a recipe and its data to a model, and to the parts of the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal

import torch
from transformers import PreTrainedModel

from gspo.engines.base import Engine, Sampling
from gspo.engines.local import LocalEngine
from gspo.policy.hf import HFPolicy
from gspo.policy.model import load_model, save_model, tiny_model
from gspo.policy.optimizer import OptimizerSettings
from gspo.recipes.objective_section import kl_penalty, objective_settings
from gspo.recipes.prepare import Prepared, demonstrations
from gspo.recipes.schema import NewModel, Recipe
from gspo.trainer.clip_control import ClipControl
from gspo.trainer.coldstart import cache_folder, cached, cold_start, content_key
from gspo.trainer.length_schedule import LengthSchedule
from gspo.trainer.parts import Plan
from gspo.trainer.query_set import Refresh
from gspo.trainer.state import TrainState
from gspo.trainer.stream import RolloutStream
from gspo.types import Prompt

#: Called with finished steps and the loss.
Progress = Callable[[int, float], None]


def build_model(
    recipe: Recipe, prepared: Prepared, on_coldstart_step: Progress
) -> tuple[PreTrainedModel, str]:
    """The starting model and where it came from: a folder, random weights, or a cold start of
    either, which is trained now or taken from the cache."""
    if recipe.coldstart is None:
        return _bare_model(recipe, prepared), recipe.model.path or "random weights"
    folder, _ = cold_started(recipe, prepared, on_coldstart_step)
    return load_model(folder, torch_dtype(recipe)), str(folder)


def cold_started(
    recipe: Recipe, prepared: Prepared, on_step: Progress, force: bool = False
) -> tuple[Path, bool]:
    """The folder of the recipe's cold start, and whether it was in the cache. force: make it
    again."""
    settings, batch = demonstrations(recipe, prepared)

    def make(draft: Path) -> None:
        model = _bare_model(recipe, prepared)
        optimizer = OptimizerSettings(
            learning_rate=settings.lr,
            schedule="cosine",
            warmup_steps=settings.warmup,
            total_steps=settings.steps,
        )
        cold_start(model, batch, optimizer, settings.steps, on_step)
        save_model(model, prepared.tokenizer, draft)

    content = {
        "seed": recipe.seed,
        "model": recipe.model.model_dump(mode="json"),
        "coldstart": settings.model_dump(mode="json", exclude={"cache"}),
        "data": recipe.data.model_dump(mode="json", include={"task", "options"}),
        "tokenizer": prepared.tokenizer_digest(),
        "torch": torch.__version__,
    }
    folder = cache_folder() / "coldstart" / content_key(content)
    return folder, cached(folder, make, fresh=force or not settings.cache)


def build_engine(
    recipe: Recipe,
    prepared: Prepared,
    model: PreTrainedModel,
    dtype: Literal["model", "bfloat16"] = "model",
) -> LocalEngine:
    """Samples from this very model: publishing weights copies nothing it has to wait for. dtype
    bfloat16: from a copy of its weights, taken anew where they have changed."""
    return LocalEngine(
        model,
        prepared.decode,
        end_token_ids(model, prepared),
        recipe.engine.max_batch,
        dtype=dtype,
    )


def end_token_ids(model: PreTrainedModel, prepared: Prepared) -> list[int]:
    """Every id that ends a response: those of the generation config, and the tokenizer's."""
    configured = model.generation_config.eos_token_id if model.generation_config else None
    ids = configured if isinstance(configured, list) else [configured]
    return sorted({i for i in [*ids, prepared.tokenizer.eos_token_id] if isinstance(i, int)})


def build_policy(recipe: Recipe, model: PreTrainedModel) -> HFPolicy:
    """The trainer's side of the model."""
    kl = kl_penalty(recipe.objective)
    return HFPolicy(
        model,
        optimizer_settings(recipe),
        max_tokens_per_microbatch=recipe.trainer.max_tokens_per_microbatch,
        kl=None if kl is None or kl.estimator == "k1" else kl,
        products=torch.bfloat16 if recipe.trainer.dtype == "bfloat16" else None,
    )


def optimizer_settings(recipe: Recipe) -> OptimizerSettings:
    """AdamW over the whole run."""
    section = recipe.optimizer
    return OptimizerSettings(
        learning_rate=section.lr,
        schedule=section.schedule,
        warmup_steps=section.warmup_steps,
        total_steps=recipe.trainer.steps * recipe.trainer.minibatches,
        betas=section.betas,
        eps=section.eps,
        weight_decay=section.weight_decay,
        max_grad_norm=section.max_grad_norm,
    )


def build_clip(recipe: Recipe, state: TrainState) -> ClipControl:
    """The objective, and the control of its range."""
    objective, auto = objective_settings(recipe.objective, recipe.rollout.max_tokens)
    if not auto:
        return ClipControl(objective)
    minibatches = recipe.trainer.minibatches
    optimizer = optimizer_settings(recipe)

    def learning_rate(step: int) -> float:
        return fmean(optimizer.lr(k) for k in range((step - 1) * minibatches, step * minibatches))

    return ClipControl(
        objective,
        cut_share=recipe.objective.cut_share,  # pyright: ignore[reportAttributeAccessIssue]
        warmup_steps=-(-recipe.optimizer.warmup_steps // minibatches),
        learning_rate=learning_rate,
        memory=state.clip,
    )


def build_plan(recipe: Recipe) -> Plan:
    """The loop's numbers."""
    return Plan(
        steps=recipe.trainer.steps,
        minibatches=recipe.trainer.minibatches,
        minibatch_by=recipe.trainer.minibatch_by,
        baseline=recipe.advantage.baseline,
        scale=recipe.advantage.scale,
        temperature=recipe.rollout.temperature,
        max_failed_share=recipe.verifier.max_failed_share,
        evaluate_every=recipe.evaluate.every,
        kl=kl_penalty(recipe.objective),
        engine_old_logp=recipe.trainer.old_logp == "auto" and recipe.engine.dtype == "model",
    )


def rollout_sampling(recipe: Recipe) -> Sampling:
    """How a step's responses are sampled; seed and step are filled in by the stream."""
    section = recipe.rollout
    return Sampling(
        num_samples=section.group,
        max_tokens=section.max_tokens,
        temperature=section.temperature,
        top_p=section.top_p,
        top_k=section.top_k,
    )


def build_stream(recipe: Recipe, engine: Engine, prompts: Sequence[Prompt]) -> RolloutStream:
    """The prompts of the run's steps."""
    section, refresh = recipe.rollout, recipe.data.refresh
    growth, dynamic = section.length_schedule, section.dynamic_sampling
    return RolloutStream(
        engine,
        prompts,
        rollout_sampling(recipe),
        section.prompts,
        lengths=None
        if growth is None
        else LengthSchedule(start=growth.start, end=section.max_tokens, steps=growth.steps),
        max_factor=None if dynamic is None else dynamic.max_factor,
        refresh=None if refresh is None else Refresh(**refresh.model_dump()),
    )


def eval_sampling(recipe: Recipe) -> Sampling:
    """Temperature 1, nothing cut off, and the same random numbers at every evaluation of every
    run: before and after differ by the weights alone."""
    return Sampling(
        num_samples=recipe.evaluate.samples,
        max_tokens=recipe.rollout.max_tokens,
        seed=0,
        stream="evaluate",
    )


def _bare_model(recipe: Recipe, prepared: Prepared) -> PreTrainedModel:
    if not isinstance(recipe.model, NewModel):
        return load_model(recipe.model.path, torch_dtype(recipe))
    model = tiny_model(len(prepared.tokenizer), seed=recipe.seed, **shape_of(recipe.model))
    if model.generation_config is not None:  # so that plain `generate` stops where we do
        model.generation_config.eos_token_id = prepared.tokenizer.eos_token_id
        model.generation_config.pad_token_id = prepared.tokenizer.pad_token_id
    return model.to(torch_dtype(recipe))  # pyright: ignore[reportArgumentType]


def shape_of(model: NewModel) -> dict[str, int]:
    """The arguments of `tiny_config`."""
    return model.model_dump(exclude={"path", "dtype", "tokenizer"})


def torch_dtype(recipe: Recipe) -> torch.dtype:
    """The precision the recipe loads its model in."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[recipe.model.dtype]
