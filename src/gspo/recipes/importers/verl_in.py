"""verl's settings as a recipe."""

from __future__ import annotations

import math

from gspo.recipes.importers import common, rewards
from gspo.recipes.importers.draft import Draft
from gspo.recipes.importers.verl_keys import ACTOR, MODEL, NOT_CARRIED, OVERLONG, ROLLOUT
from gspo.recipes.importers.verl_objective import advantage, kl, objective

GROUP = 8  # what a recipe has where the file asks for one response a prompt
SCORED_BY_SOURCE = (
    "verl picks a scorer by the column data_source, which is not in this file (verifier.kind=math suits maths "
    "sets; for GSM8K, exact with marker '####')"
)
BELOW_STATED = "loads weights in float32 and multiplies in bfloat16, as there; rounding moves log s by far more than 3e-4, trainer.dtype=model avoids that"


def to_recipe(draft: Draft) -> None:
    """Fill the draft. Every key that was given is accounted for."""
    common.model(draft, f"{MODEL}.path")
    if draft[f"{MODEL}.tokenizer_path"] is not None:
        path = str(draft[f"{MODEL}.tokenizer_path"])
        draft.take(f"{MODEL}.tokenizer_path", {"model.tokenizer": path})
    _data(draft)
    _sampling(draft)
    _reward(draft)
    minibatches = _batches(draft)
    _filter(draft)
    advantage(draft)
    objective(draft)
    kl(draft)
    _corrections(draft)
    _steps(draft)
    _optimizer(draft, minibatches)
    _precision(draft)
    _left_behind(draft)
    draft.settle(NOT_CARRIED)


def _files(draft: Draft, key: str, setting: str) -> None:
    given = draft[key]
    files = given if isinstance(given, list) else [given]
    if not files or not all(isinstance(file, str) for file in files):
        raise draft.error(key, f"{key} is {given!r}; wanted a file")
    if len(files) == 1:
        draft.take(key, {setting: files[0]})
    else:
        why = f"one source here; put {', '.join(files[1:])} into it too, or into a folder"
        draft.change(key, {setting: files[0]}, why)


def _data(draft: Draft) -> None:
    if draft["data.train_files"] is None:
        common.no_data(draft, "data.train_files")
    else:
        _files(draft, "data.train_files", "data.path")
    if draft["data.val_files"] is not None:
        _files(draft, "data.val_files", "data.eval_path")
    name = str(draft["data.prompt_key"])
    draft.take("data.prompt_key", {"data.columns": {} if name == "prompt" else {"prompt": name}})
    draft.take(
        "data.max_prompt_length", {"data.max_prompt_tokens": draft.count("data.max_prompt_length")}
    )
    drops = bool(draft["data.filter_overlong_prompts"])
    overlong = {"data.overlong": "drop" if drops else "error"}
    draft.take("data.filter_overlong_prompts", overlong)
    if draft["data.truncation"] == "error" or drops:
        draft.take("data.truncation", {})
    else:
        why = "prompts are never cut here; data.overlong=drop leaves the longer ones out"
        draft.change("data.truncation", overlong, why)
    if draft["data.apply_chat_template_kwargs"]:
        options = draft["data.apply_chat_template_kwargs"]
        draft.take("data.apply_chat_template_kwargs", {"data.chat": {"options": options}})
    else:
        draft.also("data.apply_chat_template_kwargs")
    seed = draft["data.seed"]
    draft.take(
        "data.seed",
        {"seed": 0 if seed is None else draft.count("data.seed", least=0)},
        "other random numbers all the same",
    )


def _sampling(draft: Draft) -> None:
    length = draft.count("data.max_response_length")
    draft.take("data.max_response_length", {"rollout.max_tokens": length})
    common.temperature(draft, f"{ROLLOUT}.temperature")
    common.sampling(draft, f"{ROLLOUT}.top_p", "rollout.top_p")
    top_k = draft.number(f"{ROLLOUT}.top_k")
    common.sampling(draft, f"{ROLLOUT}.top_k", "rollout.top_k", max(top_k, 0))
    group_of_one(draft, f"{ROLLOUT}.n")
    samples = draft.count(f"{ROLLOUT}.val_kwargs.n")
    draft.take(f"{ROLLOUT}.val_kwargs.n", {"evaluate.samples": samples})
    if draft.number(f"{ROLLOUT}.val_kwargs.temperature") != 1:
        why = "held-out prompts are sampled at temperature 1 here, where pass rates are those of training"
        draft.change(f"{ROLLOUT}.val_kwargs.temperature", "temperature 1", why)
    else:
        draft.take(f"{ROLLOUT}.val_kwargs.temperature", {})


def group_of_one(draft: Draft, key: str) -> None:
    """Responses a prompt, of which a group needs two."""
    size = draft.count(key)
    if size >= 2:
        draft.take(key, {"rollout.group": size})
    else:
        why = f"a response is compared with others of its prompt, so a group needs 2; {GROUP} is usual"
        draft.change(key, {"rollout.group": GROUP}, why)


def _reward(draft: Draft) -> None:
    path, name = draft["custom_reward_function.path"], draft["custom_reward_function.name"]
    if path is None:
        rewards.no_reward(draft, "custom_reward_function.path", SCORED_BY_SOURCE)
    else:
        place = {"verifier.kind": "function", "verifier.function": f"{path}:{name}"}
        note = "verl's signature is taken as it is; the file is read when the run starts"
        draft.take("custom_reward_function.path", place, note)
    draft.also("custom_reward_function.name")
    if draft[f"{OVERLONG}.enable"]:
        buffer = draft.count(f"{OVERLONG}.len")
        weight = draft.number(f"{OVERLONG}.penalty_factor")
        settings = rewards.with_overlong(draft, buffer, weight)
        note = "the same punishment, from 0 to -1 times the weight over the last tokens before the limit"
        draft.take(f"{OVERLONG}.enable", settings, note)
    for name in ("enable", "len", "penalty_factor"):
        draft.also(f"{OVERLONG}.{name}")


def _batches(draft: Draft) -> int:
    prompts, group = draft.count("data.train_batch_size"), draft.get("rollout.group")
    size = draft.count(f"{ACTOR}.ppo_mini_batch_size")
    note = "prompts, there and here (TRL counts completions)"
    draft.take("data.train_batch_size", {"rollout.prompts": prompts}, note)
    if size > prompts or prompts % size:
        raise draft.error(
            f"{ACTOR}.ppo_mini_batch_size",
            f"{size} prompts an update do not divide the {prompts} of data.train_batch_size",
        )
    minibatches = prompts // size
    note = f"prompts: {size} an update of {prompts} a rollout batch are {minibatches} updates, of {size} x {group} responses"
    draft.take(f"{ACTOR}.ppo_mini_batch_size", {"trainer.minibatches": minibatches}, note)
    _mixed(draft)
    draft.switched_off(f"{ACTOR}.ppo_epochs", (1,), common.EACH_ONCE)
    if minibatches == 1 and draft.count(f"{ACTOR}.ppo_epochs") == 1:
        draft.remark("updates a rollout batch", "1", "trainer.minibatches 1", common.ONE_UPDATE)
    tokens = f"{ACTOR}.ppo_max_token_len_per_gpu"
    if draft[f"{ACTOR}.use_dynamic_bsz"]:
        draft.take(
            tokens,
            common.budget(draft, draft.count(tokens)),
            "tokens of one forward, prompts included",
        )
    else:
        draft.fill(common.budget(draft))
        draft.leave(tokens, "not used there without use_dynamic_bsz")
    draft.also(f"{ACTOR}.use_dynamic_bsz")
    return minibatches


def _mixed(draft: Draft) -> None:
    """Which responses an update takes."""
    if draft["trainer.balance_batch"]:
        why = (
            "verl deals the responses out to devices by length before it cuts the batch, which parts groups; here "
            "they are dealt out at random, which parts them too"
        )
        draft.change("trainer.balance_batch", {"trainer.minibatch_by": "response"}, why)
        draft.leave(
            f"{ACTOR}.shuffle", "which responses an update takes is drawn anew at every step here"
        )
    else:
        note = "the batch is cut as it was sampled, so groups stay whole"
        draft.take("trainer.balance_batch", {"trainer.minibatch_by": "group"}, note)
        draft.leave(
            f"{ACTOR}.shuffle", "which groups an update takes is drawn anew at every step here"
        )


def _filter(draft: Draft) -> None:
    """DAPO's dynamic sampling."""
    key = "algorithm.filter_groups.enable"
    if not draft[key]:
        draft.take(key, {"rollout.dynamic_sampling": None})
        draft.leave("data.gen_batch_size", "not used there without filter_groups")
        draft.leave(
            "algorithm.filter_groups.max_num_gen_batches", "not used there without filter_groups"
        )
        return
    batches = draft.count("algorithm.filter_groups.max_num_gen_batches", least=0)
    prompts = draft.count("data.train_batch_size")
    each = draft.count("data.gen_batch_size") if draft["data.gen_batch_size"] else prompts
    factor = batches * each / prompts if batches else rewards.NO_LIMIT
    settings = {
        "rollout.dynamic_sampling": {"max_factor": min(max(factor, 1.01), rewards.NO_LIMIT)}
    }
    if batches:
        note = f"{batches} batches of {each} prompts for {prompts}; then verl stops, here the step is filled up"
    else:
        note = f"no limit there; {rewards.NO_LIMIT:g} times the prompts is the most here"
    draft.take(key, settings, note)
    draft.also("data.gen_batch_size")
    draft.also("algorithm.filter_groups.max_num_gen_batches")


def _corrections(draft: Draft) -> None:
    why = common.SAMPLED_BY_TRAINER
    draft.switched_off("algorithm.rollout_correction.rollout_is", (None,), why)
    draft.switched_off("algorithm.rollout_correction.rollout_rs", (None,), why)
    key = "algorithm.rollout_correction.bypass_mode"
    if draft[key]:
        why = (
            "there the engine's log-probs take the place of the old policy's, and one trainer of verl swaps the "
            f"loss for a token clip with this same range; here {common.OLD_POLICY}"
        )
        draft.change(key, {"trainer.old_logp": "trainer"}, why)
    else:
        draft.take(key, {"trainer.old_logp": "trainer"}, common.OLD_POLICY)


def _steps(draft: Draft) -> None:
    steps = draft["trainer.total_training_steps"]
    if steps is not None:
        draft.take(
            "trainer.total_training_steps",
            {"trainer.steps": draft.count("trainer.total_training_steps")},
        )
        draft.leave("trainer.total_epochs", "trainer.total_training_steps decides")
        draft.leave(
            "data.train_max_samples",
            "trainer.steps says how many prompts are used; data.only names them",
        )
        return
    most = draft.number("data.train_max_samples")
    epochs = draft.number("trainer.total_epochs")
    name = "data.train_max_samples"
    common.steps_of_epochs(
        draft, "trainer.total_epochs", epochs, int(most) if most > 0 else None, name
    )
    draft.also(name)


def _optimizer(draft: Draft, minibatches: int) -> None:
    optim = f"{ACTOR}.optim"
    draft.take(f"{optim}.lr", {"optimizer.lr": draft.number(f"{optim}.lr")})
    style = (
        f"{optim}.warmup_style" if draft[f"{optim}.warmup_style"] else f"{optim}.lr_scheduler_type"
    )
    if common.schedule(draft, style) == "cosine" and draft[f"{optim}.min_lr_ratio"]:
        draft.leave(f"{optim}.min_lr_ratio", "the cosine ends at 0 here")
    for name in ("warmup_style", "lr_scheduler_type", "min_lr_ratio"):
        draft.also(f"{optim}.{name}")
    _warmup(draft, optim, minibatches)
    draft.take(f"{optim}.betas", {"optimizer.betas": draft.pair(f"{optim}.betas")})
    decay = draft.number(f"{optim}.weight_decay")
    note = "there every weight decays; here neither embeddings, norms nor biases" if decay else ""
    draft.take(f"{optim}.weight_decay", {"optimizer.weight_decay": decay}, note)
    norm = f"{ACTOR}.grad_clip" if draft.has(f"{ACTOR}.grad_clip") else f"{optim}.clip_grad"
    draft.take(norm, {"optimizer.max_grad_norm": draft.number(norm)})
    draft.also(f"{ACTOR}.grad_clip")
    draft.also(f"{optim}.clip_grad")
    if draft[f"{optim}.optimizer"] in ("AdamW", "adam", "adamw"):
        draft.take(f"{optim}.optimizer", {})
    else:
        draft.change(f"{optim}.optimizer", "AdamW", "the optimizer is always AdamW in float32 here")


def _warmup(draft: Draft, optim: str, minibatches: int) -> None:
    """verl's schedule moves once a rollout batch, ours once an optimizer step."""
    steps_key = f"{optim}.lr_warmup_steps"
    given = -1 if draft[steps_key] is None else draft.number(steps_key)
    ratio = draft.number(f"{optim}.lr_warmup_steps_ratio")
    key = f"{optim}.lr_warmup_steps" if given >= 0 else f"{optim}.lr_warmup_steps_ratio"
    steps = int(given) if given >= 0 else math.floor(ratio * common.our_steps(draft))
    settings = {"optimizer.warmup_steps": steps * minibatches}
    if steps:
        why = (
            f"{steps} rollout batches: verl moves the rate once a batch, here it moves at each of the "
            f"{minibatches} updates"
        )
        draft.change(key, settings, why)
    else:
        draft.take(key, settings)
    draft.also(f"{optim}.lr_warmup_steps")
    draft.also(f"{optim}.lr_warmup_steps_ratio")


def _precision(draft: Draft) -> None:
    names: dict[str, str] = {
        "fp32": "float32",
        "float32": "float32",
        "bf16": "bfloat16",
        "bfloat16": "bfloat16",
    }
    key = f"{ACTOR}.fsdp_config.model_dtype"
    draft.take(key, {"model.dtype": names.get(str(draft[key]), "float32")})
    key = f"{ACTOR}.fsdp_config.dtype"
    products = "bfloat16" if names.get(str(draft[key])) != "float32" else "model"
    draft.take(key, {"trainer.dtype": products}, BELOW_STATED if products == "bfloat16" else "")
    key = f"{ROLLOUT}.dtype"
    sampled = "bfloat16" if names.get(str(draft[key])) != "float32" else "model"
    note = (
        "a bfloat16 copy samples, where this machine gains by it" if sampled == "bfloat16" else ""
    )
    draft.take(key, {"engine.dtype": sampled}, note)
    draft.switched_off(f"{MODEL}.lora_rank", (0,), "all weights are trained here, without adapters")


def _left_behind(draft: Draft) -> None:
    name = str(draft["trainer.experiment_name"])
    if draft.has("trainer.experiment_name") and common.NAME.fullmatch(name):
        draft.take("trainer.experiment_name", {"name": name})
    else:
        draft.leave(
            "trainer.experiment_name",
            "a run's name has letters, digits, '.', '_' and '-' only here",
        )
    every = draft.number("trainer.save_freq")
    draft.take(
        "trainer.save_freq",
        {"trainer.checkpoint_every": max(int(every), 0)},
        "rollout batches; 0: at the end and on interrupt",
    )
    tests = draft.number("trainer.test_freq")
    note = "rollout batches; 0: before the first and after the last"
    draft.take("trainer.test_freq", {"evaluate.every": max(int(tests), 0)}, note)
    keep = "trainer.max_actor_ckpt_to_keep"
    if draft[keep] is None:
        draft.change(keep, {"trainer.keep_checkpoints": 2}, "all are kept there; here the newest")
    else:
        draft.take(keep, {"trainer.keep_checkpoints": draft.count(keep)})
    named = draft["trainer.logger"]
    common.services(draft, "trainer.logger", named if isinstance(named, list) else [named])
