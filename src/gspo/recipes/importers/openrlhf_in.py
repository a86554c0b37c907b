"""OpenRLHF's options as a recipe."""

from __future__ import annotations

import math

from gspo.recipes.importers import common, rewards
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.openrlhf_keys import DEFAULTS, NOT_CARRIED
from gspo.recipes.importers.openrlhf_objective import advantage, kl, objective
from gspo.recipes.importers.verl_in import group_of_one

ALL_SAMPLES = DEFAULTS["data.max_samples"]


def to_recipe(draft: Draft) -> None:
    """Fill the draft. Every option that was given is accounted for."""
    common.model(draft, "actor.model_name_or_path")
    _data(draft)
    _lengths(draft)
    common.temperature(draft, "rollout.temperature")
    common.sampling(draft, "rollout.top_p", "rollout.top_p")
    draft.fill({"rollout.top_k": 0})
    group_of_one(draft, "rollout.n_samples_per_prompt")
    _reward(draft)
    minibatches = _batches(draft)
    _filter(draft)
    advantage(draft)
    objective(draft)
    kl(draft)
    _steps(draft)
    _optimizer(draft, minibatches)
    _precision(draft)
    _left_behind(draft)
    draft.settle(NOT_CARRIED)


def _data(draft: Draft) -> None:
    given = draft["data.prompt_dataset"]
    if given is None:
        common.no_data(draft, "data.prompt_dataset")
        draft.leave("data.prompt_split", "the file names no prompts")
    else:
        first, *others = str(given).split(",")
        if others:
            why = f"one source here; put {', '.join(others)} into it too, or into a folder"
            draft.change("data.prompt_dataset", {"data.path": first}, why)
        else:
            draft.take("data.prompt_dataset", {"data.path": first})
        if common.is_file(first):
            draft.leave("data.prompt_split", "a file has no splits")
        else:
            draft.take("data.prompt_split", {"data.split": str(draft["data.prompt_split"])})
    draft.switched_off("data.prompt_probs", (None,), "one source here, every prompt once an epoch")
    _columns(draft)
    if draft["eval.dataset"] is None:
        draft.also("eval.dataset")
        draft.leave("eval.split", "there are no held-out prompts")
    else:
        held_out = str(draft["eval.dataset"])
        draft.take("eval.dataset", {"data.eval_path": held_out})
        if common.is_file(held_out):
            draft.leave("eval.split", "a file has no splits")
        else:
            draft.take("eval.split", {"data.eval_split": str(draft["eval.split"])})


def _columns(draft: Draft) -> None:
    prompt, answer = str(draft["data.input_key"]), draft["data.label_key"]
    columns = ({} if prompt == "prompt" else {"prompt": prompt}) | (
        {} if answer == "answer" else {"answer": answer}
    )
    draft.take("data.input_key", {"data.columns": columns})
    draft.take("data.label_key", {"data.columns": columns}, "" if answer else "no answers")
    if draft["data.apply_chat_template"]:
        draft.take(
            "data.apply_chat_template",
            {"data.chat": {}},
            "text becomes a user message, there and here",
        )
    else:
        draft.take("data.apply_chat_template", {"data.chat": None})
    draft.switched_off(
        "data.input_template",
        (None,),
        "prompts go through the model's chat template, or as they are",
    )


def _lengths(draft: Draft) -> None:
    whole = draft.count("data.max_len", least=2)
    if draft["rollout.max_new_tokens"] is None:
        half = whole // 2
        settings = {
            "rollout.max_tokens": whole - half,
            "data.max_prompt_tokens": half,
            "data.overlong": "drop",
        }
        why = (
            f"prompt and response share {whole} tokens there, each has its own limit here: half and half, until "
            "rollout.max_tokens and data.max_prompt_tokens are set"
        )
        draft.change("data.max_len", settings, why)
        draft.also("rollout.max_new_tokens")
        return
    response = draft.count("rollout.max_new_tokens")
    draft.take("rollout.max_new_tokens", {"rollout.max_tokens": response})
    if response >= whole:
        text = f"it leaves no token of data.max_len ({whole}) for the prompt"
        raise draft.error("rollout.max_new_tokens", text)
    prompt = {"data.max_prompt_tokens": whole - response, "data.overlong": "drop"}
    why = (
        f"prompt and response together; {whole - response} are left for the prompt. There a longer prompt shortens "
        "its response, here it is left out and counted"
    )
    draft.change("data.max_len", prompt, why)


def _reward(draft: Draft) -> None:
    url, agent = draft["reward.remote_url"], draft["train.agent_func_path"]
    if isinstance(url, str) and url.endswith(".py"):
        settings = {"verifier.kind": "function", "verifier.function": f"{url}:reward_func"}
        why = (
            "OpenRLHF calls reward_func(queries, prompts, labels) with whole batches; a function here is "
            "(prompt, completion, **columns) -> float: write one around it. The file was not read"
        )
        draft.change("reward.remote_url", settings, why)
    else:
        rewards.no_reward(draft, "reward.remote_url", _no_function(url, agent))
    draft.switched_off(
        "train.agent_func_path", (None,), "a response is one turn here, judged by the verifier"
    )
    draft.switched_off("reward.model_name_or_path", (None,), "there is no reward model here")
    draft.switched_off(
        "reward.normalize_enable", (False,), "rewards are compared within their group only"
    )
    if draft["reward.clip_range"] == DEFAULTS["reward.clip_range"]:
        draft.also("reward.clip_range")
    else:
        draft.leave("reward.clip_range", "rewards are taken as they are; `gspo verify` shows them")
    if draft["reward.overlong_buffer_len"] is not None:
        buffer = draft.count("reward.overlong_buffer_len")
        weight = draft.number("reward.overlong_penalty_factor")
        note = "the same punishment, from 0 to -1 times the weight over the last tokens before the limit"
        draft.take("reward.overlong_buffer_len", rewards.with_overlong(draft, buffer, weight), note)
        draft.also("reward.overlong_penalty_factor")
    else:
        draft.also("reward.overlong_buffer_len")
        draft.leave("reward.overlong_penalty_factor", "not used there without overlong_buffer_len")
    draft.switched_off("reward.stop_properly_penalty_coef", (None,), common.NOT_MASKED)


def _no_function(url: object, agent: object) -> str:
    if url is not None:
        return f"{url} is a server of rewards, and a reward is a function here"
    if agent is not None:
        return f"{agent} is an agent of several turns, and a response is one turn here"
    return "the file names no reward function"


def _batches(draft: Draft) -> int:
    prompts, group = draft.count("rollout.batch_size"), draft.get("rollout.group")
    size, samples = (
        draft.count("train.batch_size"),
        draft.count("rollout.batch_size") * draft.get("rollout.group"),
    )
    draft.take(
        "rollout.batch_size",
        {"rollout.prompts": prompts},
        "prompts, there and here (TRL counts completions)",
    )
    if samples % size:
        raise draft.error(
            "train.batch_size",
            f"{size} samples an update do not divide the {prompts} x {group} = {samples} of a rollout batch; "
            "OpenRLHF would drop the rest",
        )
    minibatches = samples // size
    note = (
        f"samples: {prompts} prompts x {group} = {samples} a rollout batch are {minibatches} updates of {size}, of "
        "responses of all prompts mixed"
    )
    settings = {"trainer.minibatches": minibatches, "trainer.minibatch_by": "response"}
    draft.take("train.batch_size", settings, note)
    draft.switched_off("train.max_epochs", (1,), common.EACH_ONCE)
    if minibatches * draft.count("train.max_epochs") == 1:
        draft.remark("updates a rollout batch", "1", "trainer.minibatches 1", common.ONE_UPDATE)
    if draft["train.dynamic_batch_enable"]:
        tokens = draft.count("train.max_tokens_per_gpu")
        draft.take(
            "train.max_tokens_per_gpu",
            common.budget(draft, tokens),
            "tokens of one forward, prompts included",
        )
    else:
        draft.fill(common.budget(draft))
        draft.leave("train.max_tokens_per_gpu", "not used there without dynamic_batch_enable")
    draft.also("train.dynamic_batch_enable")
    draft.switched_off("train.async_enable", (False,), "rollouts do not run ahead here")
    return minibatches


def _filter(draft: Draft) -> None:
    if not draft["algo.dynamic_filtering_enable"]:
        draft.take("algo.dynamic_filtering_enable", {"rollout.dynamic_sampling": None})
        draft.leave(
            "algo.dynamic_filtering_range", "not used there without dynamic_filtering_enable"
        )
        return
    settings = {"rollout.dynamic_sampling": {"max_factor": rewards.NO_LIMIT}}
    note = f"no limit there; {rewards.NO_LIMIT:g} times the prompts is the most here"
    draft.take("algo.dynamic_filtering_enable", settings, note)
    low, high = draft.pair("algo.dynamic_filtering_range")
    why = f"there a group stays whose mean score lies between {low:g} and {high:g}, here one whose rewards differ"
    draft.change("algo.dynamic_filtering_range", "groups whose rewards differ", why)


def _steps(draft: Draft) -> None:
    most = draft.count("data.max_samples")
    episodes = draft.count("train.num_episodes")
    known = None if most == ALL_SAMPLES else most
    common.steps_of_epochs(draft, "train.num_episodes", episodes, known, "data.max_samples")
    draft.also("data.max_samples")


def _optimizer(draft: Draft, minibatches: int) -> None:
    draft.take("actor.adam.lr", {"optimizer.lr": draft.number("actor.adam.lr")})
    if common.schedule(draft, "actor.lr_scheduler") == "cosine" and draft["actor.min_lr_ratio"]:
        draft.leave("actor.min_lr_ratio", "the cosine ends at 0 here")
    draft.also("actor.min_lr_ratio")
    total = common.our_steps(draft) * minibatches
    ratio = draft.number("actor.lr_warmup_ratio")
    warmup = math.ceil(round(ratio * total, 6))
    if ratio and draft["actor.lr_scheduler"] == "constant":
        why = "the constant schedule knows no warm-up there (constant_with_warmup does)"
        draft.change("actor.lr_warmup_ratio", {"optimizer.warmup_steps": 0}, why)
    elif ratio:
        why = f"a share of the {total} optimizer steps of trainer.steps x trainer.minibatches"
        draft.change("actor.lr_warmup_ratio", {"optimizer.warmup_steps": warmup}, why)
    else:
        draft.take("actor.lr_warmup_ratio", {"optimizer.warmup_steps": 0})
    draft.take("actor.adam.betas", {"optimizer.betas": draft.pair("actor.adam.betas")})
    draft.take("actor.adam.eps", {"optimizer.eps": draft.number("actor.adam.eps")})
    decay = draft.number("actor.adam.weight_decay")
    note = (
        "biases and norms are not decayed on either side; here embeddings neither" if decay else ""
    )
    draft.take("actor.adam.weight_decay", {"optimizer.weight_decay": decay}, note)
    draft.take("actor.max_norm", {"optimizer.max_grad_norm": draft.number("actor.max_norm")})
    if draft["actor.optim"] == "adam":
        draft.take("actor.optim", {})
    else:
        draft.change("actor.optim", "AdamW", "the optimizer is always AdamW in float32 here")


def _precision(draft: Draft) -> None:
    settings = {"model.dtype": "float32", "trainer.dtype": "bfloat16", "engine.dtype": "bfloat16"}
    note = (
        "weights are kept in float32, products and samples are bfloat16; rounding moves log s by far more than 3e-4, "
        "trainer.dtype=model avoids that"
    )
    if draft["ds.param_dtype"] == "bf16":
        draft.take("ds.param_dtype", settings, note)
    else:
        why = "half precision is bfloat16 here, which needs no loss scale"
        draft.change("ds.param_dtype", settings, why)
    draft.switched_off("ds.lora.rank", (0,), "all weights are trained here, without adapters")


def _left_behind(draft: Draft) -> None:
    draft.take(
        "train.seed",
        {"seed": draft.count("train.seed", least=0)},
        "other random numbers all the same",
    )
    if draft.has("ckpt.output_dir"):
        common.run_folder(draft, "ckpt.output_dir")
    every, tests = draft.number("ckpt.save_steps"), draft.number("eval.steps")
    draft.take(
        "ckpt.save_steps",
        {"trainer.checkpoint_every": max(int(every), 0)},
        "rollout batches; 0: at the end and on interrupt",
    )
    draft.take(
        "eval.steps",
        {"evaluate.every": max(int(tests), 0)},
        "rollout batches; 0: before the first and after the last",
    )
    draft.take("ckpt.max_num", {"trainer.keep_checkpoints": draft.count("ckpt.max_num")})
    samples = draft.count("eval.n_samples_per_prompt")
    draft.take("eval.n_samples_per_prompt", {"evaluate.samples": samples})
    if draft["eval.dataset"] is not None and draft.number("eval.temperature") != 1:
        why = "held-out prompts are sampled at temperature 1 here, where pass rates are those of training"
        draft.change("eval.temperature", "temperature 1", why)
    else:
        draft.also("eval.temperature")
    services = {"tensorboard": "logger.tensorboard_dir", "wandb": "logger.wandb.key"}
    named = [name for name, key in services.items() if draft.has(key)]
    draft.fill({"record.to": named})
    for key in ("logger.wandb.key", "logger.tensorboard_dir"):
        if draft.has(key):
            draft.take(key, {"record.to": named})
