"""A recipe as OpenRLHF's options."""

from __future__ import annotations

from typing import Any

from gspo.recipes.importers import common_out
from gspo.recipes.importers.draft import MISSING
from gspo.recipes.importers.outgoing import Outgoing
from gspo.recipes.importers.rewards import NO_LIMIT

WRITE_FUNCTION = (
    "a function of yours has to give this reward there: reward_func(queries, prompts, labels)"
)
WANDB_KEY = "$WANDB_API_KEY"  # no key goes into a file


def to_settings(out: Outgoing) -> None:
    """Fill the settings. Every setting of the recipe is accounted for."""
    common_out.model(out, "actor.model_name_or_path")
    _data(out)
    _lengths(out)
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
    columns = getattr(out.recipe.data, "columns", {})
    to = {
        "data.input_key": columns.get("prompt", "prompt"),
        "data.label_key": columns.get("answer", "answer"),
    }
    if set(columns) <= {"prompt", "answer"}:
        out.take("data.columns", {key: value for key, value in to.items() if value is not None})
    chat = out.recipe.data.chat
    if chat is None:
        out.done("data.chat")
    elif chat.system is None and not chat.options:
        out.take("data.chat", {"data.apply_chat_template": True})
    else:
        out.change(
            "data.chat",
            {"data.apply_chat_template": True},
            "the template has neither a system message nor options there",
        )
    section = common_out.source(out)
    if section is None:
        return
    out.take("data.path", {"data.prompt_dataset": section.path})
    if section.split is not None:
        out.take("data.split", {"data.prompt_split": section.split})
    if section.eval_path is not None:
        out.take("data.eval_path", {"eval.dataset": section.eval_path})
        if section.eval_split is not None:
            out.take("data.eval_split", {"eval.split": section.eval_split})


def _lengths(out: Outgoing) -> None:
    response, prompt = out.recipe.rollout.max_tokens, out.recipe.data.max_prompt_tokens
    out.take("rollout.max_tokens", {"rollout.max_new_tokens": response})
    to = {"data.max_len": response + (prompt or response)}
    why = "prompt and response together there, and a longer prompt shortens its response"
    if prompt is None:
        why += "; the prompt gets as many tokens as a response"
    out.change("data.max_prompt_tokens", to, why)
    if out.recipe.data.overlong == "drop":
        out.done("data.overlong")
    else:
        out.leave("data.overlong", "a longer prompt shortens its response there, and ends nothing")


def _rewards(out: Outgoing) -> None:
    for place, values, weight in common_out.functions(out):
        setting = "verifier.parts" if place != "verifier" else "verifier.function"
        match values:
            case {"kind": "function", "function": str(function)} if (
                weight == 1 and not function.startswith(MISSING)
            ):
                path, _, name = function.rpartition(":")
                to = {"reward.remote_url": path}
                if name == "reward_func":
                    note = "OpenRLHF calls it with (queries, prompts, labels)"
                    out.change(setting, to, note)
                else:
                    why = f"OpenRLHF calls reward_func(queries, prompts, labels) of the file, not {name}"
                    out.change(setting, to, why)
                out.done("verifier.kind")
            case {"kind": "overlong", "buffer_tokens": buffer}:
                to = {
                    "reward.overlong_buffer_len": buffer,
                    "reward.overlong_penalty_factor": weight,
                }
                out.take(setting, to)
            case _:
                common_out.no_reward(out, place, values, WRITE_FUNCTION)


def _sampling(out: Outgoing) -> None:
    rollout = out.recipe.rollout
    out.take("rollout.temperature", {"rollout.temperature": rollout.temperature})
    out.take("rollout.top_p", {"rollout.top_p": rollout.top_p})
    if rollout.top_k:
        out.leave("rollout.top_k", "sampling knows temperature and top_p there")
    out.take("rollout.group", {"rollout.n_samples_per_prompt": rollout.group})
    if rollout.dynamic_sampling is not None:
        to = {"algo.dynamic_filtering_enable": True, "algo.dynamic_filtering_range": [0, 1]}
        if rollout.dynamic_sampling.max_factor >= NO_LIMIT:
            note = (
                "groups stay whose mean score lies between 0 and 1, so scores must be from 0 to 1"
            )
            out.take("rollout.dynamic_sampling", to, note)
        else:
            why = "no limit there; groups stay whose mean score lies between 0 and 1, so scores must be from 0 to 1"
            out.change("rollout.dynamic_sampling", to, why)


def _batches(out: Outgoing) -> None:
    rollout, trainer = out.recipe.rollout, out.recipe.trainer
    out.take("rollout.prompts", {"rollout.batch_size": rollout.prompts}, "prompts, there and here")
    size = rollout.prompts * rollout.group // trainer.minibatches
    out.take("trainer.minibatches", {"train.batch_size": size}, "samples an update")
    if trainer.minibatch_by == "group":
        why = "OpenRLHF shuffles all samples before it cuts them into updates"
        out.change("trainer.minibatch_by", "responses of all prompts mixed", why)
    else:
        out.done("trainer.minibatch_by")
    to = {
        "train.dynamic_batch_enable": True,
        "train.max_tokens_per_gpu": trainer.max_tokens_per_microbatch,
    }
    out.take("trainer.max_tokens_per_microbatch", to)
    samples = trainer.steps * rollout.prompts
    why = (
        f"OpenRLHF counts passes over its prompts, not steps: one pass over {trainer.steps} x {rollout.prompts} = {samples} of "
        "them, if the data have as many"
    )
    out.change("trainer.steps", {"train.num_episodes": 1, "data.max_samples": samples}, why)
    common_out.old_policy(out)


def _advantage(out: Outgoing) -> None:
    key = "algo.advantage.estimator"
    match out.recipe.advantage.baseline, out.recipe.advantage.scale:
        case "mean", "std":
            out.take("advantage.scale", {key: "group_norm"})
        case "mean", _:
            out.take("advantage.scale", {key: "dr_grpo"})
        case _, "none":
            out.take("advantage.baseline", {key: "rloo"})
            out.done("advantage.scale")
            return
        case _:
            out.take("advantage.scale", {key: "group_norm"})
    common_out.baseline(out)


def _objective(out: Outgoing) -> None:
    section: Any = out.recipe.objective
    low, high, why = common_out.band(out)
    match section.name:
        case "gspo" | "gspo_token":
            common_out.gspo_token(out, {"actor.policy_loss_type": "gspo"})
        case "ppo":
            out.take("objective.name", {"actor.policy_loss_type": "ppo"})
            if section.dual_clip is not None:
                out.take("objective.dual_clip", {"actor.dual_clip": section.dual_clip})
        case "dapo":
            reason = "the same sum over tokens, which OpenRLHF calls ppo"
            out.change("objective.name", {"actor.policy_loss_type": "ppo"}, reason)
        case _:
            raise common_out.no_counterpart(out, "gspo, ppo, dapo")
    common_out.clip(out, {"actor.eps_clip_low_high": [low, high]}, why)


def _kl(out: Outgoing) -> None:
    kl = out.recipe.objective.kl
    if kl is None:
        out.take("objective.kl", {"algo.kl.init_coef": 0.0})
        return
    to: dict[str, Any] = {"algo.kl.init_coef": kl.coefficient, "algo.kl.estimator": kl.estimator}
    if kl.estimator == "k1":
        out.change("objective.kl", to, "in the reward; summed over tokens there, their mean here")
    else:
        out.take("objective.kl", {**to, "algo.kl.use_loss": True})


def _optimizer(out: Outgoing) -> None:
    section = out.recipe.optimizer
    total = out.recipe.trainer.steps * out.recipe.trainer.minibatches
    out.take("optimizer.lr", {"actor.adam.lr": section.lr})
    name: str = section.schedule
    if name == "constant" and section.warmup_steps:
        name = "constant_with_warmup"
    out.take("optimizer.schedule", {"actor.lr_scheduler": name})
    ratio = {"actor.lr_warmup_ratio": section.warmup_steps / total}
    if section.warmup_steps:
        out.change("optimizer.warmup_steps", ratio, f"a share of {total} optimizer steps there")
    else:
        out.take("optimizer.warmup_steps", ratio)
    out.take("optimizer.betas", {"actor.adam.betas": list(section.betas)})
    out.take("optimizer.eps", {"actor.adam.eps": section.eps})
    out.take("optimizer.weight_decay", {"actor.adam.weight_decay": section.weight_decay})
    out.take("optimizer.max_grad_norm", {"actor.max_norm": section.max_grad_norm})


def _precision(out: Outgoing) -> None:
    recipe = out.recipe
    for setting, exact in {
        "model.dtype": recipe.model.dtype == "float32",
        "trainer.dtype": recipe.trainer.dtype == "bfloat16",
        "engine.dtype": recipe.engine.dtype == "bfloat16",
    }.items():
        to = {"ds.param_dtype": "bf16"}
        if exact:
            out.take(setting, to)
        else:
            out.change(
                setting, to, "weights in float32, products and samples in bfloat16, always there"
            )


def _left_behind(out: Outgoing) -> None:
    recipe = out.recipe
    out.take("seed", {"train.seed": recipe.seed}, "other random numbers all the same")
    if recipe.name is not None:
        out.take("name", {"ckpt.output_dir": f"{recipe.record.folder}/{recipe.name}"})
        out.done("record.folder")
    every = recipe.trainer.checkpoint_every
    if every is None:
        why = "as often as costs at most 5 % of the time here; every 20 rollout batches there"
        out.change("trainer.checkpoint_every", {"ckpt.save_steps": 20}, why)
    else:
        out.take("trainer.checkpoint_every", {"ckpt.save_steps": every or -1})
    out.take("trainer.keep_checkpoints", {"ckpt.max_num": recipe.trainer.keep_checkpoints})
    out.take("evaluate.every", {"eval.steps": recipe.evaluate.every or -1})
    out.take("evaluate.samples", {"eval.n_samples_per_prompt": recipe.evaluate.samples})
    _services(out)


def _services(out: Outgoing) -> None:
    to = {
        "tensorboard": {"logger.tensorboard_dir": f"{out.recipe.record.folder}/tensorboard"},
        "wandb": {"logger.wandb.key": WANDB_KEY},
    }
    named = [name for name in out.recipe.record.to if name in to]
    settings = {key: value for name in named for key, value in to[name].items()}
    if named == list(out.recipe.record.to):
        out.take(
            "record.to", settings, "the key comes from the environment" if "wandb" in named else ""
        )
    else:
        out.change("record.to", settings, "OpenRLHF knows tensorboard and wandb")
