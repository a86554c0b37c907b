"""OpenRLHF's options by name: the defaults of those that are translated, and why the others are not.

Read from openrlhf/cli/train_ppo_ray.py of August 2026 (commit 3c3be62).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Defaults of what is translated.
DEFAULTS: Mapping[str, Any] = {
    # objective
    "actor.policy_loss_type": "ppo",
    "actor.eps_clip": 0.2,
    "actor.eps_clip_low_high": None,
    "actor.dual_clip": None,
    "actor.entropy_coef": None,
    "actor.aux_loss_coef": 0,
    "algo.kl.init_coef": 0.01,
    "algo.kl.use_loss": False,
    "algo.kl.estimator": "k1",
    "algo.kl.target": None,
    "algo.advantage.is_correction_enable": False,
    # advantage and reward
    "algo.advantage.estimator": "gae",
    "algo.advantage.no_std_norm": False,
    "algo.dynamic_filtering_enable": False,
    "algo.dynamic_filtering_range": [0, 1],
    "reward.remote_url": None,
    "reward.model_name_or_path": None,
    "reward.clip_range": [-10, 10],
    "reward.normalize_enable": False,
    "reward.overlong_buffer_len": None,
    "reward.overlong_penalty_factor": 1,
    "reward.stop_properly_penalty_coef": None,
    "train.agent_func_path": None,
    # batches
    "rollout.batch_size": 1024,
    "rollout.n_samples_per_prompt": 1,
    "train.batch_size": 128,
    "train.max_epochs": 1,
    "train.num_episodes": 1,
    "train.dynamic_batch_enable": False,
    "train.max_tokens_per_gpu": 16192,
    "train.async_enable": False,
    # sampling
    "rollout.max_new_tokens": None,
    "rollout.temperature": 1.0,
    "rollout.top_p": 1.0,
    # optimizer
    "actor.optim": "adam",
    "actor.adam.lr": 1e-6,
    "actor.adam.betas": [0.9, 0.95],
    "actor.adam.eps": 1e-8,
    "actor.adam.weight_decay": 0.0,
    "actor.lr_scheduler": "cosine_with_min_lr",
    "actor.lr_warmup_ratio": 0.03,
    "actor.min_lr_ratio": 0.1,
    "actor.max_norm": 1.0,
    "ds.param_dtype": "bf16",
    "ds.lora.rank": 0,
    # model and data
    "actor.model_name_or_path": None,
    "data.prompt_dataset": None,
    "data.prompt_probs": None,
    "data.prompt_split": "train",
    "data.input_key": "input",
    "data.label_key": None,
    "data.input_template": None,
    "data.apply_chat_template": False,
    "data.max_len": 2048,
    "data.max_samples": int(1e8),
    "eval.dataset": None,
    "eval.split": "train",
    "eval.steps": -1,
    "eval.n_samples_per_prompt": 4,
    "eval.temperature": 0.6,
    # what is left behind
    "train.seed": 42,
    "ckpt.output_dir": "./ckpt",
    "ckpt.save_steps": -1,
    "ckpt.max_num": 3,
    "logger.wandb.key": None,
    "logger.tensorboard_dir": None,
}

_REASONS = {
    "how OpenRLHF spreads the work over processors; it does not change what is learned, and here the "
    "trainer's own model samples": """
        ref.num_nodes ref.num_gpus_per_node reward.num_nodes reward.num_gpus_per_node
        actor.num_nodes actor.num_gpus_per_node critic.num_nodes critic.num_gpus_per_node
        train.colocate_actor_ref train.colocate_critic_reward train.colocate_all
        vllm.num_engines vllm.tensor_parallel_size vllm.sync_backend vllm.sync_with_ray
        vllm.enable_prefix_caching vllm.enforce_eager vllm.enable_sleep
        vllm.gpu_memory_utilization local_rank ds.zero_stage ds.deepcompile ds.zpg ds.adam_offload
        ds.attn_implementation ds.experts_implementation ds.use_liger_kernel ds.grad_accum_dtype
        ds.overlap_comm ds.enable_sleep ds.tensor_parallel_size ds.packing_samples
        ds.ring_attn_size ds.ring_attn_head_stride ds.use_universal_ckpt
        actor.gradient_checkpointing_enable actor.gradient_checkpointing_reentrant
        data.dataloader_num_workers train.micro_batch_size rollout.micro_batch_size
        rollout.max_tokens_per_gpu rollout.vllm_generate_batch_size ref.offload reward.offload
        train.full_determinism_enable train.async_queue_size train.partial_rollout_enable use_ms
        data.disable_fast_tokenizer""",
    "corrects the gap between engine and trainer; here the trainer's own model samples": """
        algo.advantage.is_correction_threshold algo.advantage.is_correction_type""",
    "there is no critic here": """
        critic.model_name_or_path critic.value_clip critic.freezing_steps
        critic.save_value_network critic.optim critic.adam.lr critic.adam.betas critic.adam.eps
        critic.adam.weight_decay critic.lr_scheduler critic.lr_warmup_ratio critic.min_lr_ratio
        critic.max_norm critic.muon.lr critic.muon.momentum critic.muon.ns_steps
        critic.muon.nesterov critic.muon.no_nesterov ds.value_head_prefix algo.advantage.lambd
        algo.advantage.gamma""",
    "the optimizer is AdamW here": """
        actor.muon.lr actor.muon.momentum actor.muon.ns_steps actor.muon.nesterov
        actor.muon.no_nesterov""",
    "all weights are trained here, without adapters or quantisation": """
        ds.load_in_4bit ds.lora.alpha ds.lora.target_modules ds.lora.dropout
        train.enable_ema train.ema_beta""",
    "the penalty keeps its coefficient here": "algo.kl.horizon",
    "the run folder holds every step's numbers, responses and checkpoints": """
        ckpt.path ckpt.save_hf ckpt.disable_ds ckpt.max_mem ckpt.load_enable ckpt.best_metric_key
        logger.logging_steps logger.wandb.org logger.wandb.group logger.wandb.project
        logger.wandb.run_name""",
    "prompts are text here": """
        data.image_key data.max_images_per_prompt actor.freeze_visual_encoder""",
}

#: Key -> why it is not carried over.
NOT_CARRIED: Mapping[str, str] = {
    key: reason for reason, keys in _REASONS.items() for key in keys.split()
}

KNOWN = frozenset({*DEFAULTS, *NOT_CARRIED})

#: Options without a value.
_FLAGS = """
    train.colocate_actor_ref train.colocate_critic_reward train.colocate_all vllm.sync_with_ray
    vllm.enable_prefix_caching vllm.enforce_eager vllm.enable_sleep
    algo.advantage.is_correction_enable train.async_enable train.partial_rollout_enable
    ckpt.save_hf ckpt.disable_ds ckpt.load_enable ds.use_universal_ckpt
    actor.gradient_checkpointing_enable ds.deepcompile train.enable_ema ds.adam_offload
    ds.use_liger_kernel ds.overlap_comm actor.gradient_checkpointing_reentrant
    data.disable_fast_tokenizer ds.enable_sleep ds.packing_samples train.dynamic_batch_enable
    ds.load_in_4bit reward.normalize_enable train.full_determinism_enable
    critic.save_value_network actor.muon.nesterov actor.muon.no_nesterov critic.muon.nesterov
    critic.muon.no_nesterov algo.kl.use_loss algo.advantage.no_std_norm ref.offload
    reward.offload data.apply_chat_template algo.dynamic_filtering_enable
    actor.freeze_visual_encoder use_ms
    """
FLAGS = frozenset(_FLAGS.split())
#: Options with several values; the others take one.
_LISTS = """
    algo.advantage.is_correction_threshold ds.lora.target_modules actor.eps_clip_low_high
    reward.clip_range actor.adam.betas critic.adam.betas algo.dynamic_filtering_range
    """
LISTS = frozenset(_LISTS.split())
