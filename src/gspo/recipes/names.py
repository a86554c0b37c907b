"""Names of all settings, and the nearest one to a name that is none.

A dotted name is a setting's place: `trainer.steps`.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic import Tag

from gspo.recipes.fields import Section
from gspo.recipes.schema import Recipe

#: What other trainers call it.
OTHER_NAMES = {
    "learning_rate": "optimizer.lr",
    "gradient_clip": "optimizer.max_grad_norm",
    "max_norm": "optimizer.max_grad_norm",
    "lr_scheduler_type": "optimizer.schedule",
    "num_epoch": "trainer.steps",
    "num_epochs": "trainer.steps",
    "num_train_epochs": "trainer.steps",
    "total_epochs": "trainer.steps",
    "max_steps": "trainer.steps",
    "total_training_steps": "trainer.steps",
    "steps_per_generation": "trainer.minibatches",
    "ppo_mini_batch_size": "trainer.minibatches",
    "per_device_train_batch_size": "trainer.max_tokens_per_microbatch",
    "save_steps": "trainer.checkpoint_every",
    "save_freq": "trainer.checkpoint_every",
    "save_total_limit": "trainer.keep_checkpoints",
    "batch_size": "rollout.prompts",
    "train_batch_size": "rollout.prompts",
    "rollout_batch_size": "rollout.prompts",
    "group_size": "rollout.group",
    "num_generations": "rollout.group",
    "n_samples_per_prompt": "rollout.group",
    "max_completion_length": "rollout.max_tokens",
    "max_new_tokens": "rollout.max_tokens",
    "max_response_length": "rollout.max_tokens",
    "max_prompt_length": "data.max_prompt_tokens",
    "prompt_max_len": "data.max_prompt_tokens",
    "train_files": "data.path",
    "dataset": "data.path",
    "dataset_name": "data.path",
    "dataset_config": "data.subset",
    "dataset_train_split": "data.split",
    "dataset_test_split": "data.eval_split",
    "val_files": "data.eval_path",
    "prompt_key": "data.columns",
    "input_key": "data.columns",
    "label_key": "data.columns",
    "filter_overlong_prompts": "data.overlong",
    "system_prompt": "data.chat.system",
    "chat_template_kwargs": "data.chat.options",
    "apply_chat_template": "data.chat",
    "max_num_gen_batches": "rollout.dynamic_sampling.max_factor",
    "filter_groups": "rollout.dynamic_sampling",
    "epsilon": "objective.clip",
    "epsilon_high": "objective.clip",
    "clip_ratio": "objective.clip",
    "eps_clip": "objective.clip",
    "beta": "objective.kl.coefficient",
    "kl_coef": "objective.kl.coefficient",
    "loss_type": "objective.name",
    "loss_mode": "objective.name",
    "importance_sampling_level": "objective.name",
    "scale_rewards": "advantage.scale",
    "reward_funcs": "verifier.function",
    "eval_steps": "evaluate.every",
    "test_freq": "evaluate.every",
    "output_dir": "record.folder",
    "model_name_or_path": "model.path",
}


def sections_of(annotation: Any, tag: str = "") -> Iterator[tuple[type[Section], str]]:
    """Section classes inside an annotation, each with the kind it stands for ("" if only one)."""
    if get_origin(annotation) is Annotated:
        inner, *notes = get_args(annotation)
        own = next((note.tag for note in notes if isinstance(note, Tag)), tag)
        yield from sections_of(inner, own)
    elif isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation, tag.strip("<>")
    else:
        for argument in get_args(annotation):
            yield from sections_of(argument, tag)


def _walk(section: type[Section], place: str, kind: str) -> Iterator[tuple[str, str]]:
    for name, field in section.model_fields.items():
        dotted = f"{place}.{name}" if place else name
        yield dotted, kind
        for inner, inner_kind in sections_of(field.annotation):
            yield from _walk(inner, dotted, inner_kind)


@functools.cache
def all_settings() -> dict[str, tuple[str, ...]]:
    """Every dotted name -> the kinds it belongs to, as ("gspo", "gspo_token"); ("",) for all."""
    found: dict[str, dict[str, None]] = {}
    for dotted, kind in _walk(Recipe, "", ""):
        found.setdefault(dotted, {})[kind] = None
    return {dotted: tuple(kinds) for dotted, kinds in found.items()}


def unknown_setting(dotted: str) -> str:
    """Message for a name that is no setting: the nearest one and its place.

    >>> unknown_setting("learning_rate")
    "learning_rate is not a setting; did you mean 'optimizer.lr'?"
    """
    near = _nearest_settings(dotted)
    if near:
        hint = " or ".join(map(repr, near))
        return f"{dotted} is not a setting; did you mean {hint}?"
    section = dotted.partition(".")[0]
    inside = [name for name in all_settings() if name.startswith(f"{section}.")]
    if not inside:
        section, inside = "a recipe", [name for name in all_settings() if "." not in name]
    return f"{dotted} is not a setting; those of {section} are {', '.join(inside)}"


def _nearest_settings(dotted: str) -> list[str]:
    """The settings most likely meant: by place, by another trainer's name, by a similar name in the
    same section, or anywhere. Several where one name stands in several sections."""
    names = list(all_settings())
    parts = [part for part in dotted.replace("-", "_").lower().split(".") if part]
    section, leaf = ".".join(parts[:-1]), parts[-1] if parts else ""
    if ".".join(parts) in names:
        return [".".join(parts)]
    if leaf in OTHER_NAMES:
        return [OTHER_NAMES[leaf]]
    here = [name for name in names if _section(name) == section]
    for pool in (here, names):
        close = difflib.get_close_matches(leaf, {_leaf(name) for name in pool}, n=1, cutoff=0.7)
        if close:
            same = [name for name in pool if _leaf(name) == close[0]]
            sections = difflib.get_close_matches(section, map(_section, same), n=1, cutoff=0.7)
            return [name for name in same if not sections or _section(name) == sections[0]]
    return []


def _section(dotted: str) -> str:
    return dotted.rpartition(".")[0]


def _leaf(dotted: str) -> str:
    return dotted.rpartition(".")[2]
