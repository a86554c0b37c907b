"""TRL's settings by name: the defaults of those that are translated, and why the others are not.

Read from trl 1.16.0: `GRPOConfig`, which holds transformers' training arguments, `ModelConfig` and the
arguments of `trl grpo`. bench/trl_defaults.py compares them with the installed package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Defaults of what is translated.
DEFAULTS: Mapping[str, Any] = {
    # objective
    "loss_type": "dapo",
    "importance_sampling_level": "token",
    "epsilon": 0.2,
    "epsilon_high": None,
    "delta": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "beta": 0.0,
    "use_bias_correction_kl": True,
    "sync_ref_model": False,
    "top_entropy_quantile": 1.0,
    "entropy_coef": 0.0,
    "use_adaptive_entropy": False,
    "off_policy_mask_threshold": None,
    "mask_truncated_completions": False,
    # advantage and reward
    "scale_rewards": "group",
    "multi_objective_aggregation": "sum_then_normalize",
    "reward_weights": None,
    "reward_funcs": None,
    "reward_model_name_or_path": None,
    # sampling
    "num_generations": 8,
    "max_completion_length": 512,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": None,
    "repetition_penalty": 1.0,
    "generation_kwargs": None,
    "chat_template_kwargs": None,
    "use_vllm": False,
    "vllm_importance_sampling_correction": True,
    # batches and steps
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": None,
    "generation_batch_size": None,
    "num_iterations": 1,
    "max_steps": -1,
    "num_train_epochs": 3.0,
    # optimizer
    "learning_rate": 1e-6,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0,
    "optim": "adamw_torch_fused",
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    # precision, model, data
    "bf16": None,
    "fp16": False,
    "dtype": "float32",
    "model_init_kwargs": None,
    "model_name_or_path": None,
    "use_peft": False,
    "dataset_name": None,
    "dataset_config": None,
    "dataset_train_split": "train",
    "dataset_test_split": "test",
    # what is left behind
    "seed": 42,
    "output_dir": None,
    "report_to": "none",
    "save_strategy": "steps",
    "save_steps": 500,
    "save_total_limit": None,
    "eval_strategy": "no",
    "eval_steps": None,
    "num_generations_eval": None,
}

#: Keys of earlier versions that files still have, and what they are when not set.
EARLIER: Mapping[str, Any] = {"max_prompt_length": None, "warmup_ratio": 0.0}

_REASONS = {
    "how TRL, accelerate or the processor does the work; it does not change what is learned, and here "
    "the engine is the trainer's own model and micro-batches are cut by tokens": """
        activation_checkpointing activation_checkpointing_kwargs gradient_checkpointing
        gradient_checkpointing_kwargs torch_compile torch_compile_backend torch_compile_mode
        use_liger_kernel liger_kernel_config use_cache torch_empty_cache_steps auto_find_batch_size
        tf32 bf16_full_eval fp16_full_eval use_cpu accelerator_config parallelism_config
        dataloader_drop_last dataloader_num_workers dataloader_pin_memory
        dataloader_persistent_workers dataloader_prefetch_factor
        dataloader_multiprocessing_context dataloader_in_order ddp_find_unused_parameters
        ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph ddp_backend ddp_timeout fsdp
        fsdp_config deepspeed local_rank full_determinism attn_implementation
        ds3_gather_for_generation pad_to_multiple_of cache_implementation
        use_transformers_continuous_batching transformers_continuous_batching_config
        use_transformers_paged use_liger_loss average_tokens_across_devices
        per_device_eval_batch_size eval_accumulation_steps eval_do_concat_batches
        eval_use_gather_object prediction_loss_only optim_args""",
    "belongs to vLLM, and here the trainer's own model samples": """
        vllm_mode vllm_model_impl vllm_enable_sleep_mode vllm_structured_outputs_regex
        vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port
        vllm_gpu_memory_utilization vllm_max_model_length vllm_tensor_parallel_size
        vllm_importance_sampling_mode vllm_importance_sampling_clip_max
        vllm_importance_sampling_clip_min vllm_importance_sampling_cap""",
    "logging; the run folder holds every step's numbers and responses": """
        logging_strategy logging_steps logging_first_step log_on_each_node logging_nan_inf_filter
        logging_dir include_num_input_tokens_seen log_level log_level_replica disable_tqdm run_name
        project trackio_space_id trackio_bucket_id trackio_static_space_id log_completions
        log_multimodal num_completions_to_print log_unique_prompts log_completions_hub_repo
        include_for_metrics batch_eval_metrics debug skip_memory_metrics""",
    "nothing is sent to the hub from here": """
        push_to_hub hub_token hub_private_repo hub_model_id hub_strategy hub_always_push
        hub_revision""",
    "checkpoints are always whole, and `gspo train RUN --resume` goes on from the newest": """
        save_only_model save_on_each_node save_safetensors enable_jit_checkpoint
        load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip
        restore_callback_states_from_checkpoint resume_from_checkpoint""",
    "here the held-out prompts are judged before the first and after the last step, and every "
    "evaluate.every": "eval_delay eval_on_start do_train do_eval do_predict",
    "prompts come in a seeded order, every one once an epoch": """
        data_seed shuffle_dataset train_sampling_strategy length_column_name
        remove_unused_columns label_names dataset_streaming""",
    "all weights are trained here, in one optimizer, without adapters or quantisation": """
        lora_r lora_alpha lora_dropout lora_target_modules lora_target_parameters
        lora_modules_to_save lora_task_type use_rslora use_dora load_in_8bit load_in_4bit
        bnb_4bit_quant_type use_bnb_nested_quant bnb_4bit_quant_storage optim_target_modules""",
    "the objective that would read it is another one": """
        vespo_k_pos vespo_lambda_pos vespo_k_neg vespo_lambda_neg ref_model_mixup_alpha
        ref_model_sync_steps entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target
        label_smoothing_factor neftune_noise_alpha lr_scheduler_kwargs""",
    "a model folder is loaded as it is: its own code is not run, dropout is off, log-probs are float32": """
        model_revision trust_remote_code router_aux_loss_coef disable_dropout
        cast_lm_head_to_fp32""",
    "there are no tools here: a response is one turn": "max_tool_calling_iterations",
    "the reference is a copy of the starting model": "ignore_bias_buffers",
    "variables of the environment are set where the run is started": "env",
}

#: Key -> why it is not carried over.
NOT_CARRIED: Mapping[str, str] = {
    key: reason for reason, keys in _REASONS.items() for key in keys.split()
}

KNOWN = frozenset({*DEFAULTS, *EARLIER, *NOT_CARRIED})
