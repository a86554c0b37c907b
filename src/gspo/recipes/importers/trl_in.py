"""TRL's settings as a recipe."""

from __future__ import annotations

import math

from gspo.recipes.importers import common, rewards
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.trl_keys import NOT_CARRIED
from gspo.recipes.importers.trl_objective import objective

STD_FLOOR = "both divide by the unbiased standard deviation of the group (n - 1); TRL adds 1e-4 to it, here 1e-6"
AUTOCAST = (
    "products are bfloat16, whatever the weights are; rounding moves log s by far more than 3e-4, "
    "model.dtype=float32 and trainer.dtype=model avoid that"
)


def to_recipe(draft: Draft) -> None:
    """Fill the draft. Every key that was given is accounted for."""
    common.model(draft, "model_name_or_path")
    _data(draft)
    rewards.trl_rewards(draft)
    _reward_model(draft)
    _sampling(draft)
    updates = _batches(draft)
    _advantage(draft)
    objective(draft)
    _kl(draft)
    _entropy_and_masks(draft)
    _optimizer(draft, updates)
    _precision(draft)
    _left_behind(draft, updates)
    _figures(draft)
    draft.settle(NOT_CARRIED)


def _data(draft: Draft) -> None:
    source = draft["dataset_name"]
    if source is None:
        common.no_data(draft, "dataset_name")
        for key in ("dataset_config", "dataset_train_split", "dataset_test_split"):
            draft.leave(key, "the file names no prompts")
    elif isinstance(source, str):
        _source(draft, source)
    else:
        raise draft.error("dataset_name", f"it names {source!r}; wanted one data set")
    _prompt_limit(draft)
    template = draft["chat_template_kwargs"]
    if template:
        draft.take("chat_template_kwargs", {"data.chat": {"options": template}})
    else:
        draft.also("chat_template_kwargs")


def _source(draft: Draft, source: str) -> None:
    draft.take("dataset_name", {"data.path": source})
    if draft["dataset_config"] is not None:
        draft.take("dataset_config", {"data.subset": str(draft["dataset_config"])})
    if common.is_file(source):
        draft.leave("dataset_train_split", "a file has no splits")
        draft.leave("dataset_test_split", "a file has no splits")
        return
    draft.take("dataset_train_split", {"data.split": str(draft["dataset_train_split"])})
    if not _evaluates(draft):
        draft.leave("dataset_test_split", "nothing is evaluated: eval_strategy is no")
    else:
        draft.take("dataset_test_split", {"data.eval_split": str(draft["dataset_test_split"])})


def _evaluates(draft: Draft) -> bool:
    """Whether held-out prompts are named: `trl grpo` takes them from a split, Python names none that
    could be read here."""
    named = draft.has("dataset_test_split") or not draft.source.endswith(".py")
    source = draft["dataset_name"]
    split = source is not None and not common.is_file(str(source)) and named
    return split and draft["eval_strategy"] == "steps" and draft["eval_steps"] is not None


def _prompt_limit(draft: Draft) -> None:
    if draft["max_prompt_length"] is None:
        draft.also("max_prompt_length")
        return
    settings = {"data.max_prompt_tokens": draft.count("max_prompt_length"), "data.overlong": "drop"}
    why = "there a longer prompt loses its beginning; here it is left out and counted, never cut"
    draft.change("max_prompt_length", settings, why)


def _reward_model(draft: Draft) -> None:
    draft.switched_off("reward_model_name_or_path", (None,), "there is no reward model here")
    why = "rewards are added by weight first here, then compared within the group"
    draft.switched_off("multi_objective_aggregation", ("sum_then_normalize",), why)


def _sampling(draft: Draft) -> None:
    length = draft.count("max_completion_length")
    draft.take("max_completion_length", {"rollout.max_tokens": length})
    common.temperature(draft, "temperature")
    common.sampling(draft, "top_p", "rollout.top_p")
    top_k = 0 if draft["top_k"] is None else draft.number("top_k")
    common.sampling(draft, "top_k", "rollout.top_k", top_k)
    why = "sampling knows temperature, top_p and top_k here"
    draft.switched_off("min_p", (None, 0, 0.0), why)
    draft.switched_off("repetition_penalty", (1, 1.0), why)
    draft.switched_off("generation_kwargs", (None, {}), why)
    draft.leave(
        "use_vllm",
        common.SAMPLED_BY_TRAINER if draft["use_vllm"] else "the trainer's model samples, as here",
    )
    draft.leave("vllm_importance_sampling_correction", common.SAMPLED_BY_TRAINER)


def _batches(draft: Draft) -> int:
    """Prompts, responses and updates of a step; returns updates a step, passes included."""
    rows, accumulated = (
        draft.count("per_device_train_batch_size"),
        draft.count("gradient_accumulation_steps"),
    )
    group = draft.count("num_generations", least=2)
    draft.take("num_generations", {"rollout.group": group})
    slices = _slices(draft, rows, accumulated)
    if accumulated % slices and slices % accumulated:
        raise draft.error(
            "gradient_accumulation_steps",
            f"{accumulated} micro-batches an update and {slices} a rollout batch: updates straddle rollout "
            "batches, which has no counterpart; make one a multiple of the other",
        )
    minibatches = max(slices // accumulated, 1)
    completions = rows * max(slices, accumulated)
    if completions % group:
        raise draft.error(
            "num_generations",
            f"{rows} x {max(slices, accumulated)} = {completions} completions are no whole groups of {group}",
        )
    prompts = completions // group
    sizes = {
        "rollout.prompts": prompts,
        "trainer.minibatches": minibatches,
        "trainer.minibatch_by": "response",
    }
    why = (
        f"TRL counts completions: {rows} a device x {max(slices, accumulated)} slices = {completions} on one "
        f"device = {prompts} prompts x {group}; on N devices it is N times as many, and the file does not say N: "
        "then multiply rollout.prompts. An update takes "
        f"{accumulated} of the slices, so a rollout batch has {minibatches}, of responses of all prompts mixed"
    )
    draft.change("per_device_train_batch_size", sizes, why)
    draft.also("gradient_accumulation_steps")
    draft.also("steps_per_generation")
    draft.also("generation_batch_size")
    if minibatches * draft.count("num_iterations") == 1:
        draft.remark("updates a rollout batch", "1", "trainer.minibatches 1", common.ONE_UPDATE)
    draft.anchor(common.OLD_POLICY)
    draft.fill(common.budget(draft))
    updates = minibatches * draft.count("num_iterations")
    _steps(draft, updates)
    return updates


def _slices(draft: Draft, rows: int, accumulated: int) -> int:
    """Micro-batches that a rollout batch is cut into, on one device."""
    if draft["steps_per_generation"] is not None:
        if draft["generation_batch_size"] is not None:
            raise draft.error(
                "generation_batch_size",
                "it and steps_per_generation exclude one another; remove one",
            )
        return draft.count("steps_per_generation")
    if draft["generation_batch_size"] is None:
        return accumulated
    size = draft.count("generation_batch_size")
    if size % rows:
        raise draft.error(
            "generation_batch_size", f"{size} is no multiple of {rows} completions a device"
        )
    return size // rows


def _steps(draft: Draft, updates: int) -> None:
    given = draft.number("max_steps")
    if given <= 0:
        draft.also("max_steps")
        common.steps_of_epochs(
            draft, "num_train_epochs", draft.number("num_train_epochs"), None, ""
        )
        return
    steps = math.ceil(given / updates)
    draft.also("num_train_epochs")
    if steps * updates == given:
        draft.take(
            "max_steps", {"trainer.steps": steps}, f"optimizer steps, {updates} a rollout batch"
        )
    else:
        why = f"optimizer steps there; a step here is a rollout batch and has {updates} of them"
        draft.change("max_steps", {"trainer.steps": steps}, why)


def _advantage(draft: Draft) -> None:
    draft.fill({"advantage.baseline": "mean"})
    given = draft["scale_rewards"]
    if isinstance(given, bool):
        given = "group" if given else "none"
    if given == "group":
        draft.take("scale_rewards", {"advantage.scale": "std"}, STD_FLOOR)
    elif given == "none":
        draft.take("scale_rewards", {"advantage.scale": "none"})
    elif given == "batch":
        why = "one divisor for the whole batch; AdamW hardly sees it, so groups keep their proportions undivided"
        draft.change("scale_rewards", {"advantage.scale": "none"}, why)
    else:
        raise draft.error(
            "scale_rewards", f"scale_rewards is {given!r}; wanted group, batch or none"
        )


def _kl(draft: Draft) -> None:
    beta = draft.number("beta")
    if beta == 0:
        draft.take("beta", {"objective.kl": None}, "no reference model on either side")
        draft.also("use_bias_correction_kl")
    else:
        note = "k3 in the loss, there and here"
        draft.take("beta", {"objective.kl": {"coefficient": beta, "estimator": "k3"}}, note)
        if draft["use_bias_correction_kl"]:
            why = "TRL multiplies k3 by the ratio, which changes its gradient; here it is k3 alone"
            draft.change("use_bias_correction_kl", "k3 without the ratio", why)
        else:
            draft.also("use_bias_correction_kl")
    draft.switched_off("sync_ref_model", (False,), "the reference stays the starting model here")


def _entropy_and_masks(draft: Draft) -> None:
    draft.switched_off("entropy_coef", (0, 0.0), common.NO_ENTROPY)
    draft.switched_off("use_adaptive_entropy", (False,), common.NO_ENTROPY)
    draft.switched_off("mask_truncated_completions", (False,), common.NOT_MASKED)


def _optimizer(draft: Draft, updates: int) -> None:
    draft.take("learning_rate", {"optimizer.lr": draft.number("learning_rate")})
    common.schedule(draft, "lr_scheduler_type")
    _warmup(draft, common.our_steps(draft) * draft.get("trainer.minibatches"))
    betas = [draft.number("adam_beta1"), draft.number("adam_beta2")]
    draft.take("adam_beta1", {"optimizer.betas": betas})
    draft.also("adam_beta2")
    draft.take("adam_epsilon", {"optimizer.eps": draft.number("adam_epsilon")})
    decay = draft.number("weight_decay")
    note = (
        "biases and norms are not decayed on either side; here embeddings neither" if decay else ""
    )
    draft.take("weight_decay", {"optimizer.weight_decay": decay}, note)
    norm = draft["max_grad_norm"]
    if norm:
        draft.take("max_grad_norm", {"optimizer.max_grad_norm": draft.number("max_grad_norm")})
    else:
        draft.change(
            "max_grad_norm",
            {"optimizer.max_grad_norm": 1e9},
            "no limit there; here one that is never met",
        )
    if str(draft["optim"]).startswith("adamw_torch"):
        draft.take("optim", {})
    else:
        draft.change("optim", "AdamW", "the optimizer is always AdamW in float32 here")


def _warmup(draft: Draft, total: int) -> None:
    """Optimizer steps, or a share of them below 1. Where both are set, transformers takes the steps."""
    key = "warmup_steps" if draft.number("warmup_steps") else "warmup_ratio"
    key = key if draft.has(key) else "warmup_steps"
    given = draft.number(key)
    steps = math.ceil(given * total) if given < 1 else int(given)
    if str(draft["lr_scheduler_type"]) == "constant" and steps:
        why = "TRL's constant schedule knows no warm-up (constant_with_warmup does)"
        draft.change(key, {"optimizer.warmup_steps": 0}, why)
    elif 0 < given < 1:
        why = f"a share of the {total} optimizer steps of trainer.steps x trainer.minibatches"
        draft.change(key, {"optimizer.warmup_steps": steps}, why)
    else:
        draft.take(key, {"optimizer.warmup_steps": steps})
    if key == "warmup_steps" and draft.number("warmup_ratio"):
        draft.leave("warmup_ratio", "warmup_steps decides")
    draft.also("warmup_steps")
    draft.also("warmup_ratio")


def _precision(draft: Draft) -> None:
    kwargs = draft["model_init_kwargs"] or {}
    if not isinstance(kwargs, dict):
        raise draft.error("model_init_kwargs", f"it is {kwargs!r}; wanted a mapping")
    dtype = str(kwargs.get("dtype", kwargs.get("torch_dtype", draft["dtype"])))
    ours = dtype if dtype in ("float32", "bfloat16") else "float32"
    key = "model_init_kwargs" if {"dtype", "torch_dtype"} & set(kwargs) else "dtype"
    if ours == dtype:
        draft.take(key, {"model.dtype": ours})
    else:
        draft.change(key, {"model.dtype": ours}, "weights are loaded in float32 or bfloat16 here")
    for name, value in kwargs.items():
        if name not in ("dtype", "torch_dtype"):
            draft.lost(f"model_init_kwargs.{name}", value, "a model folder is loaded as it is here")
    draft.also("model_init_kwargs")
    draft.also("dtype")
    if draft["fp16"]:
        draft.change(
            "fp16",
            {"trainer.dtype": "bfloat16"},
            "half precision is bfloat16 here, which needs no loss scale",
        )
        draft.also("bf16")
    elif draft["bf16"] is None or draft["bf16"]:
        draft.take("bf16", {"trainer.dtype": "bfloat16"}, AUTOCAST)
        draft.also("fp16")
    else:
        draft.take("bf16", {"trainer.dtype": "model"})
        draft.also("fp16")
    draft.switched_off("use_peft", (False,), "all weights are trained here, without adapters")


def _left_behind(draft: Draft, updates: int) -> None:
    draft.take("seed", {"seed": draft.count("seed", least=0)}, "other random numbers all the same")
    if draft["output_dir"] is not None:
        common.run_folder(draft, "output_dir")
    named = draft["report_to"]
    common.services(draft, "report_to", named if isinstance(named, list) else [named])
    if draft["save_strategy"] == "no":
        draft.take(
            "save_strategy",
            {"trainer.checkpoint_every": 0},
            "at the end and on interrupt all the same",
        )
        draft.leave("save_steps", "nothing is saved: save_strategy is no")
    elif draft["save_strategy"] == "steps" and draft.number("save_steps") >= 1:
        common.every(draft, "save_steps", "trainer.checkpoint_every", updates)
        draft.also("save_strategy")
    else:
        draft.leave(
            "save_strategy", "checkpoints come every so many steps here: trainer.checkpoint_every"
        )
        draft.leave(
            "save_steps", "checkpoints come every so many steps here: trainer.checkpoint_every"
        )
    if draft["save_total_limit"] is None:
        draft.change(
            "save_total_limit",
            {"trainer.keep_checkpoints": 2},
            "all are kept there; here the newest",
        )
    else:
        draft.take(
            "save_total_limit", {"trainer.keep_checkpoints": draft.count("save_total_limit")}
        )
    if _evaluates(draft):
        common.every(draft, "eval_steps", "evaluate.every", updates)
        draft.also("eval_strategy")
    elif draft["eval_strategy"] == "no":
        note = "before the first and after the last step, where there are held-out prompts"
        draft.take("eval_strategy", {"evaluate.every": 0}, note)
        draft.also("eval_steps")
    else:
        why = "no held-out prompts could be read, or no interval; set data.eval_path and evaluate.every"
        draft.change("eval_strategy", {"evaluate.every": 0}, why)
        draft.also("eval_steps")
    samples = draft["num_generations_eval"] or draft["num_generations"]
    draft.take("num_generations_eval", {"evaluate.samples": samples})


def _figures(draft: Draft) -> None:
    name = draft.get("objective.name")
    if name in ("sapo", "cispo"):
        return
    unit = "completions" if name.startswith("gspo") else "tokens"
    ours = "clip/cut_share_all" if unit == "completions" else "clip/cut_share_all_tokens"
    draft.remark(
        "metric clip_ratio/region_mean",
        f"cut {unit} / all {unit}, every update, groups without signal included",
        ours,
        "clip/cut_share leaves out the first update and groups without signal, and is larger; clip_ratio/low_mean "
        f"and high_mean are {ours.replace('cut_share', 'cut_low')} and {ours.replace('cut_share', 'cut_high')}",
    )
