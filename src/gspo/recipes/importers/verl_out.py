"""A recipe as verl's overrides."""

from __future__ import annotations

from typing import Any

from gspo.recipes.importers import common_out
from gspo.recipes.importers.draft import MISSING
from gspo.recipes.importers.outgoing import Outgoing
from gspo.recipes.importers.rewards import NO_LIMIT
from gspo.recipes.importers.verl_keys import ACTOR, MODEL, OVERLONG, ROLLOUT

WRITE_FUNCTION = "a function of yours has to give this reward there: compute_score(data_source, solution_str, ground_truth, extra_info)"
LOSS, AGGREGATION = f"{ACTOR}.policy_loss.loss_mode", f"{ACTOR}.loss_agg_mode"
SEQUENCE_MEAN, TOKEN_MEAN = "seq-mean-token-mean", "token-mean"
NO_CAP = 1e9  # verl's token loss always caps the ratio; this is never met


def to_settings(out: Outgoing) -> None:
    """Fill the settings. Every setting of the recipe is accounted for."""
    common_out.model(out, f"{MODEL}.path")
    if out.recipe.model.tokenizer is not None:
        out.take("model.tokenizer", {f"{MODEL}.tokenizer_path": out.recipe.model.tokenizer})
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
    _prompt_limit(out)
    section = common_out.source(out)
    if section is None:
        return
    out.take("data.path", {"data.train_files": section.path})
    if section.eval_path is not None:
        out.take("data.eval_path", {"data.val_files": section.eval_path})
    if set(section.columns) <= {"prompt"}:
        out.take("data.columns", {"data.prompt_key": section.columns.get("prompt", "prompt")})
    if section.chat is not None and section.chat.options and section.chat.system is None:
        out.take("data.chat", {"data.apply_chat_template_kwargs": dict(section.chat.options)})


def _prompt_limit(out: Outgoing) -> None:
    length = out.recipe.data.max_prompt_tokens
    if length is None:
        own = out.recipe.rollout.max_tokens
        why = "what the model has room for here; a number there, so as long as a response"
        out.change("data.max_prompt_tokens", {"data.max_prompt_length": own}, why)
    else:
        out.take("data.max_prompt_tokens", {"data.max_prompt_length": length})
    to = {
        "data.filter_overlong_prompts": out.recipe.data.overlong == "drop",
        "data.truncation": "error",
    }
    out.take("data.overlong", to)


def _rewards(out: Outgoing) -> None:
    for place, values, weight in common_out.functions(out):
        setting = "verifier.parts" if place != "verifier" else "verifier.function"
        match values:
            case {"kind": "function", "function": str(function)} if (
                weight == 1 and not function.startswith(MISSING)
            ):
                path, _, name = function.rpartition(":")
                to = {"custom_reward_function.path": path, "custom_reward_function.name": name}
                out.take(setting, to)
                out.done("verifier.kind")
            case {"kind": "overlong", "buffer_tokens": buffer}:
                to = {
                    f"{OVERLONG}.enable": True,
                    f"{OVERLONG}.len": buffer,
                    f"{OVERLONG}.penalty_factor": weight,
                }
                note = "with reward_model.reward_manager=dapo, which reads it"
                out.take(setting, {**to, "reward_model.reward_manager": "dapo"}, note)
            case _:
                common_out.no_reward(out, place, values, WRITE_FUNCTION)


def _sampling(out: Outgoing) -> None:
    rollout = out.recipe.rollout
    out.take("rollout.max_tokens", {"data.max_response_length": rollout.max_tokens})
    out.take("rollout.temperature", {f"{ROLLOUT}.temperature": rollout.temperature})
    out.take("rollout.top_p", {f"{ROLLOUT}.top_p": rollout.top_p})
    out.take("rollout.top_k", {f"{ROLLOUT}.top_k": rollout.top_k or -1}, "-1 is off there")
    out.take("rollout.group", {f"{ROLLOUT}.n": rollout.group})
    if rollout.dynamic_sampling is not None:
        factor = rollout.dynamic_sampling.max_factor
        batches = 0 if factor >= NO_LIMIT else max(round(factor), 1)
        to = {
            "algorithm.filter_groups.enable": True,
            "algorithm.filter_groups.metric": "seq_reward",
            "algorithm.filter_groups.max_num_gen_batches": batches,
            "data.gen_batch_size": rollout.prompts,
        }
        note = "read by verl's DAPO recipe only"
        if batches in (0, factor):
            out.take("rollout.dynamic_sampling", to, note)
        else:
            out.change("rollout.dynamic_sampling", to, f"whole batches there; {note}")


def _batches(out: Outgoing) -> None:
    rollout, trainer = out.recipe.rollout, out.recipe.trainer
    out.take(
        "rollout.prompts", {"data.train_batch_size": rollout.prompts}, "prompts, there and here"
    )
    size, rest = divmod(rollout.prompts, trainer.minibatches)
    if rest:
        raise out.refuse(
            "trainer.minibatches",
            f"verl counts prompts an update, and {rollout.prompts} prompts have no {trainer.minibatches} equal parts",
        )
    out.take("trainer.minibatches", {f"{ACTOR}.ppo_mini_batch_size": size}, "prompts an update")
    mixed = trainer.minibatch_by == "response"
    to = {"trainer.balance_batch": mixed}
    if mixed:
        why = "verl mixes responses while it balances devices by length, not at random"
        out.change("trainer.minibatch_by", to, why)
    else:
        out.take(
            "trainer.minibatch_by", to, "the batch is cut as it was sampled, so groups stay whole"
        )
    tokens = trainer.max_tokens_per_microbatch
    to = {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": tokens}
    out.take("trainer.max_tokens_per_microbatch", to)
    out.take("trainer.steps", {"trainer.total_training_steps": trainer.steps})
    common_out.old_policy(out)


def _advantage(out: Outgoing) -> None:
    baseline, scale = out.recipe.advantage.baseline, out.recipe.advantage.scale
    if baseline == "loo" and scale == "none":
        out.take("advantage.baseline", {"algorithm.adv_estimator": "rloo"})
        out.done("advantage.scale")
        return
    out.settings["algorithm.adv_estimator"] = "grpo"
    common_out.baseline(out)
    out.take("advantage.scale", {"algorithm.norm_adv_by_std_in_grpo": scale == "std"})


def _objective(out: Outgoing) -> None:
    section: Any = out.recipe.objective
    low, high, why = common_out.band(out)
    match section.name:
        case "gspo" | "gspo_token":
            common_out.gspo_token(out, {LOSS: "gspo", AGGREGATION: SEQUENCE_MEAN})
        case "gmpo":
            out.take("objective.name", {LOSS: "geo_mean"}, "a range of log-ratios, there and here")
        case "cispo":
            out.take("objective.name", {LOSS: "cispo", AGGREGATION: TOKEN_MEAN})
        case "sapo":
            to = {LOSS: "sapo", AGGREGATION: SEQUENCE_MEAN}
            out.take("objective.name", to)
            taus = {"tau_pos": section.tau_pos, "tau_neg": section.tau_neg}
            for name, value in taus.items():
                out.take(f"objective.{name}", {f"{ACTOR}.{name}": value})
            return
        case "ppo" | "dapo" | "grpo" | "dr_grpo":
            _token_clip(out, section)
        case _:
            raise common_out.no_counterpart(
                out, "gspo, gmpo, cispo, sapo, ppo, dapo, grpo, dr_grpo"
            )
    keys = {f"{ACTOR}.clip_ratio_low": low, f"{ACTOR}.clip_ratio_high": high}
    common_out.clip(out, keys, why)


def _token_clip(out: Outgoing, section: Any) -> None:
    how = {"grpo": SEQUENCE_MEAN, "dr_grpo": "seq-mean-token-sum-norm"}.get(
        section.name, TOKEN_MEAN
    )
    to: dict[str, Any] = {LOSS: "vanilla", AGGREGATION: how}
    cap = getattr(section, "dual_clip", None)
    to[f"{ACTOR}.clip_ratio_c"] = NO_CAP if cap is None else cap
    if section.name == "dr_grpo":
        to[f"{ACTOR}.loss_scale_factor"] = section.max_tokens or out.recipe.rollout.max_tokens
        why = "verl divides a micro-batch's sum by the constant alone, here the whole sum is divided by responses x constant"
        out.change("objective.name", to, why)
        out.done("objective.max_tokens")
    elif section.name == "ppo" and cap is not None:
        out.take("objective.name", to)
        out.take("objective.dual_clip", {f"{ACTOR}.clip_ratio_c": cap})
    else:
        note = f"verl's token loss always has a cap where the advantage is negative: {NO_CAP:g} is never met"
        out.change("objective.name", to, note)


def _kl(out: Outgoing) -> None:
    kl = out.recipe.objective.kl
    if kl is None:
        to: dict[str, Any] = {f"{ACTOR}.use_kl_loss": False, "algorithm.use_kl_in_reward": False}
        out.take("objective.kl", to)
    elif kl.estimator == "k1":
        to = {"algorithm.use_kl_in_reward": True, "algorithm.kl_penalty": "kl"}
        why = "k1 in the reward, summed over the tokens of a response there, their mean here"
        out.change("objective.kl", {**to, "algorithm.kl_ctrl.kl_coef": kl.coefficient}, why)
    else:
        kind = "low_var_kl" if kl.estimator == "k3" else "k2"
        to = {
            f"{ACTOR}.use_kl_loss": True,
            f"{ACTOR}.kl_loss_coef": kl.coefficient,
            f"{ACTOR}.kl_loss_type": kind,
        }
        out.take("objective.kl", to)


def _optimizer(out: Outgoing) -> None:
    section, updates = out.recipe.optimizer, out.recipe.trainer.minibatches
    optim = f"{ACTOR}.optim"
    out.take("optimizer.lr", {f"{optim}.lr": section.lr})
    out.take("optimizer.schedule", {f"{optim}.lr_scheduler_type": section.schedule})
    steps, rest = divmod(section.warmup_steps, updates)
    if section.warmup_steps:
        to = {f"{optim}.lr_warmup_steps": steps + bool(rest)}
        why = f"rollout batches there, of {updates} updates each"
        out.change("optimizer.warmup_steps", to, why)
    else:
        out.take("optimizer.warmup_steps", {f"{optim}.lr_warmup_steps": 0})
    out.take("optimizer.betas", {f"{optim}.betas": list(section.betas)})
    out.take("optimizer.weight_decay", {f"{optim}.weight_decay": section.weight_decay})
    out.take("optimizer.max_grad_norm", {f"{optim}.clip_grad": section.max_grad_norm})
    if section.eps == 1e-8:
        out.done("optimizer.eps")
    else:
        out.leave(
            "optimizer.eps", "1e-8 there, unless optim.override_optimizer_config says otherwise"
        )


def _precision(out: Outgoing) -> None:
    recipe = out.recipe
    dtype = "bfloat16" if recipe.trainer.dtype == "bfloat16" else "float32"
    out.take("trainer.dtype", {f"{ACTOR}.fsdp_config.dtype": dtype})
    out.take(
        "model.dtype",
        {f"{ACTOR}.fsdp_config.model_dtype": {"float32": "fp32"}.get(recipe.model.dtype, "bf16")},
    )
    sampled = "bfloat16" if recipe.engine.dtype == "bfloat16" else "float32"
    out.take("engine.dtype", {f"{ROLLOUT}.dtype": sampled})


def _left_behind(out: Outgoing) -> None:
    recipe = out.recipe
    out.take(
        "seed",
        {"data.seed": recipe.seed},
        "of the order of prompts; other random numbers all the same",
    )
    if recipe.name is not None:
        out.take("name", {"trainer.experiment_name": recipe.name})
    out.take("record.to", {"trainer.logger": ["console", *recipe.record.to]})
    every = recipe.trainer.checkpoint_every
    if every is None:
        why = "as often as costs at most 5 % of the time here; every 20 rollout batches there"
        out.change("trainer.checkpoint_every", {"trainer.save_freq": 20}, why)
    else:
        out.take("trainer.checkpoint_every", {"trainer.save_freq": every or -1})
    out.take(
        "trainer.keep_checkpoints",
        {"trainer.max_actor_ckpt_to_keep": recipe.trainer.keep_checkpoints},
    )
    out.take("evaluate.every", {"trainer.test_freq": recipe.evaluate.every or -1})
    to = {
        f"{ROLLOUT}.val_kwargs.n": recipe.evaluate.samples,
        f"{ROLLOUT}.val_kwargs.temperature": 1.0,
        f"{ROLLOUT}.val_kwargs.do_sample": True,
    }
    out.take("evaluate.samples", to)
