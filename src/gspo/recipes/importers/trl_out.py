"""A recipe as TRL's settings, for `trl grpo --config`."""

from __future__ import annotations

from typing import Any

from gspo.recipes.importers import common, common_out
from gspo.recipes.importers.draft import MISSING
from gspo.recipes.importers.outgoing import Outgoing
from gspo.recipes.importers.rewards import (
    THINK_PATTERN,
    TRL_OVERLONG_BUFFER,
    TRL_OVERLONG_TOKENS,
    file_as_dotted,
)
from gspo.recipes.objective_section import KLSection

WRITE_FUNCTION = "a function of yours has to give this reward there: (prompts, completions, **columns) -> list of numbers"


def to_settings(out: Outgoing) -> None:
    """Fill the settings. Every setting of the recipe is accounted for."""
    common_out.model(out, "model_name_or_path")
    _data(out)
    _rewards(out)
    _sampling(out)
    _batches(out)
    _advantage(out)
    _objective(out)
    _kl(out)
    _optimizer(out)
    _precision(out)
    _left_behind(out)
    out.settle()


def _data(out: Outgoing) -> None:
    section = common_out.source(out)
    if section is None:
        return
    to = {"dataset_name": section.path}
    if common.is_file(section.path):
        why = "TRL takes a hub name or a folder; give a file as load_dataset('json', data_files=FILE) in Python"
        out.change("data.path", to, why)
    else:
        out.take("data.path", to)
    if section.subset is not None:
        out.take("data.subset", {"dataset_config": section.subset})
    if section.split is not None:
        out.take("data.split", {"dataset_train_split": section.split})
    if section.eval_split is not None and out.recipe.evaluate.every:
        out.take("data.eval_split", {"dataset_test_split": section.eval_split})
    if section.chat is not None and section.chat.options and section.chat.system is None:
        out.take("data.chat", {"chat_template_kwargs": dict(section.chat.options)})


def _rewards(out: Outgoing) -> None:
    names, weights = list[str](), list[float]()
    for place, values, weight in common_out.functions(out):
        name = _reward_name(out, values)
        if name is None:
            common_out.no_reward(out, place, values, WRITE_FUNCTION)
            continue
        names.append(name)
        weights.append(weight)
    if names:
        to: dict[str, Any] = {"reward_funcs": names}
        if out.recipe.verifier.parts:
            to["reward_weights"] = weights
        out.take("verifier.parts" if out.recipe.verifier.parts else "verifier.kind", to)
        out.done("verifier.function", "verifier.pattern", "verifier.buffer_tokens")


def _reward_name(out: Outgoing, values: dict[str, Any]) -> str | None:
    match values:
        case {"kind": "function", "function": str(place)} if not place.startswith(MISSING):
            return file_as_dotted(place)
        case {"kind": "math", **others} if set(others) <= {"name"}:
            return "accuracy_reward"
        case {"kind": "regex", "pattern": pattern} if pattern == THINK_PATTERN:
            return "think_format_reward"
        case {"kind": "overlong", "buffer_tokens": buffer}:
            same = (
                buffer == TRL_OVERLONG_BUFFER
                and out.recipe.rollout.max_tokens == TRL_OVERLONG_TOKENS
            )
            return "get_soft_overlong_punishment" if same else None
        case _:
            return None


def _sampling(out: Outgoing) -> None:
    out.take("rollout.max_tokens", {"max_completion_length": out.recipe.rollout.max_tokens})
    for name in ("temperature", "top_p", "top_k"):
        out.take(f"rollout.{name}", {name: getattr(out.recipe.rollout, name)})


def _batches(out: Outgoing) -> None:
    rollout, trainer = out.recipe.rollout, out.recipe.trainer
    rows = rollout.prompts * rollout.group // trainer.minibatches
    note = (
        f"completions on one device: {rollout.prompts} prompts x {rollout.group} / {trainer.minibatches} updates = {rows}; "
        "on N devices, or in smaller micro-batches, divide it and raise gradient_accumulation_steps and steps_per_generation"
    )
    sizes = {"per_device_train_batch_size": rows, "gradient_accumulation_steps": 1}
    out.take("rollout.prompts", sizes, note)
    out.take("rollout.group", {"num_generations": rollout.group})
    out.take("trainer.minibatches", {"steps_per_generation": trainer.minibatches})
    if trainer.minibatch_by == "group":
        why = "TRL shuffles all completions before it cuts them into updates"
        out.change("trainer.minibatch_by", "responses of all prompts mixed", why)
    else:
        out.done("trainer.minibatch_by")
    steps = trainer.steps * trainer.minibatches
    out.take(
        "trainer.steps",
        {"max_steps": steps},
        f"optimizer steps: {trainer.steps} x {trainer.minibatches}",
    )
    common_out.old_policy(out)


def _advantage(out: Outgoing) -> None:
    common_out.baseline(out)
    scale = "group" if out.recipe.advantage.scale == "std" else "none"
    out.take("advantage.scale", {"scale_rewards": scale})


def _objective(out: Outgoing) -> None:
    section: Any = out.recipe.objective
    low, high, why = common_out.band(out)
    band = {"epsilon": low, "epsilon_high": high}
    match section.name:
        case "gspo" | "gspo_token":
            to = {"importance_sampling_level": "sequence", "loss_type": "grpo"}
            common_out.gspo_token(out, to)
        case "grpo" | "dapo":
            to = {"importance_sampling_level": "token", "loss_type": section.name}
            out.take("objective.name", to)
        case "dr_grpo":
            out.take(
                "objective.name", {"importance_sampling_level": "token", "loss_type": "dr_grpo"}
            )
            if section.max_tokens in (None, out.recipe.rollout.max_tokens):
                out.done("objective.max_tokens")
            else:
                out.leave("objective.max_tokens", "TRL divides by max_completion_length")
        case "ppo":
            to = {"importance_sampling_level": "token", "loss_type": "dapo"}
            if section.dual_clip is None:
                out.change("objective.name", to, "the same sum over tokens, which TRL calls dapo")
            else:
                out.take("objective.name", to, "the sum over tokens, which TRL calls dapo")
                out.take("objective.dual_clip", {"delta": section.dual_clip})
        case "cispo":
            out.take("objective.name", {"importance_sampling_level": "token", "loss_type": "cispo"})
            _cispo(out, low, high)
            return
        case "sapo":
            out.take("objective.name", {"importance_sampling_level": "token", "loss_type": "sapo"})
            out.take("objective.tau_pos", {"sapo_temperature_pos": section.tau_pos})
            out.take("objective.tau_neg", {"sapo_temperature_neg": section.tau_neg})
            return
        case _:
            raise common_out.no_counterpart(out, "gspo, grpo, dapo, dr_grpo, ppo, cispo, sapo")
    common_out.clip(out, band, why)


def _cispo(out: Outgoing, low: float, high: float) -> None:
    to = {"epsilon_high": 1 + high}
    why = "the largest weight itself there"
    if low < 1:
        why += "; there is no lower bound"
    out.change("objective.clip", to, why)


def _kl(out: Outgoing) -> None:
    kl: KLSection | None = out.recipe.objective.kl
    if kl is None:
        out.take("objective.kl", {"beta": 0.0})
    elif kl.estimator == "k3":
        out.take("objective.kl", {"beta": kl.coefficient, "use_bias_correction_kl": False})
    else:
        to = {"beta": kl.coefficient, "use_bias_correction_kl": False}
        out.change("objective.kl", to, f"TRL has k3 in the loss, not {kl.estimator}")


def _optimizer(out: Outgoing) -> None:
    section = out.recipe.optimizer
    name: str = section.schedule
    if name == "constant" and section.warmup_steps:
        name = "constant_with_warmup"
    out.take("optimizer.schedule", {"lr_scheduler_type": name})
    out.take("optimizer.lr", {"learning_rate": section.lr})
    out.take("optimizer.warmup_steps", {"warmup_steps": section.warmup_steps})
    out.take("optimizer.betas", {"adam_beta1": section.betas[0], "adam_beta2": section.betas[1]})
    out.take("optimizer.eps", {"adam_epsilon": section.eps})
    out.take("optimizer.weight_decay", {"weight_decay": section.weight_decay})
    out.take("optimizer.max_grad_norm", {"max_grad_norm": section.max_grad_norm})


def _precision(out: Outgoing) -> None:
    out.take("trainer.dtype", {"bf16": out.recipe.trainer.dtype == "bfloat16"})
    out.take("model.dtype", {"dtype": out.recipe.model.dtype})


def _left_behind(out: Outgoing) -> None:
    recipe, updates = out.recipe, out.recipe.trainer.minibatches
    out.take("seed", {"seed": recipe.seed}, "other random numbers all the same")
    if recipe.name is not None:
        out.take("name", {"output_dir": f"{recipe.record.folder}/{recipe.name}"})
        out.done("record.folder")
    services = list(recipe.record.to)
    out.take("record.to", {"report_to": services or "none"})
    every = recipe.trainer.checkpoint_every
    if every is None:
        why = "as often as costs at most 5 % of the time here; TRL's own default there"
        out.change("trainer.checkpoint_every", {"save_strategy": "steps", "save_steps": 500}, why)
    elif every == 0:
        out.take("trainer.checkpoint_every", {"save_strategy": "no"})
    else:
        to = {"save_strategy": "steps", "save_steps": every * updates}
        out.take("trainer.checkpoint_every", to, "optimizer steps")
    out.take("trainer.keep_checkpoints", {"save_total_limit": recipe.trainer.keep_checkpoints})
    held_out = getattr(recipe.data, "eval_split", None)
    if recipe.evaluate.every and held_out is not None:
        to = {"eval_strategy": "steps", "eval_steps": recipe.evaluate.every * updates}
        out.take("evaluate.every", to, "optimizer steps")
    elif recipe.evaluate.every:
        why = "`trl grpo` evaluates on another split of the data, and the recipe names none"
        out.change("evaluate.every", {"eval_strategy": "no"}, why)
    else:
        out.take("evaluate.every", {"eval_strategy": "no"})
    out.take("evaluate.samples", {"num_generations_eval": recipe.evaluate.samples})
