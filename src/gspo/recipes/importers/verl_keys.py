"""verl's settings by name: the defaults of those that are translated, and why the others are not.

Read from verl's reference configuration of January 2026 (verl/trainer/config, commit b178a3c) and the
DAPO recipe. Keys that later versions moved stand under both names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ACTOR, ROLLOUT, MODEL = (
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "actor_rollout_ref.model",
)
OVERLONG = "reward_model.reward_kwargs.overlong_buffer_cfg"

#: Defaults of what is translated.
DEFAULTS: Mapping[str, Any] = {
    # objective
    f"{ACTOR}.policy_loss.loss_mode": "vanilla",
    f"{ACTOR}.loss_agg_mode": "token-mean",
    f"{ACTOR}.loss_scale_factor": None,
    f"{ACTOR}.clip_ratio": 0.2,
    f"{ACTOR}.clip_ratio_low": 0.2,
    f"{ACTOR}.clip_ratio_high": 0.2,
    f"{ACTOR}.clip_ratio_c": 3.0,
    f"{ACTOR}.tau_pos": 1.0,
    f"{ACTOR}.tau_neg": 1.05,
    f"{ACTOR}.entropy_coeff": 0,
    f"{ACTOR}.use_kl_loss": False,
    f"{ACTOR}.kl_loss_coef": 0.001,
    f"{ACTOR}.kl_loss_type": "low_var_kl",
    # batches
    f"{ACTOR}.ppo_mini_batch_size": 256,
    f"{ACTOR}.ppo_epochs": 1,
    f"{ACTOR}.shuffle": False,
    "trainer.balance_batch": True,
    f"{ACTOR}.use_dynamic_bsz": False,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 16384,
    # optimizer
    f"{ACTOR}.optim.optimizer": "AdamW",
    f"{ACTOR}.optim.lr": 1e-6,
    f"{ACTOR}.optim.lr_warmup_steps": -1,
    f"{ACTOR}.optim.lr_warmup_steps_ratio": 0.0,
    f"{ACTOR}.optim.lr_scheduler_type": "constant",
    f"{ACTOR}.optim.warmup_style": None,
    f"{ACTOR}.optim.min_lr_ratio": 0.0,
    f"{ACTOR}.optim.betas": [0.9, 0.999],
    f"{ACTOR}.optim.weight_decay": 0.01,
    f"{ACTOR}.optim.clip_grad": 1.0,
    f"{ACTOR}.grad_clip": 1.0,
    f"{ACTOR}.fsdp_config.dtype": "bfloat16",
    f"{ACTOR}.fsdp_config.model_dtype": "fp32",
    # sampling
    f"{ROLLOUT}.n": 1,
    f"{ROLLOUT}.temperature": 1.0,
    f"{ROLLOUT}.top_p": 1,
    f"{ROLLOUT}.top_k": -1,
    f"{ROLLOUT}.dtype": "bfloat16",
    f"{ROLLOUT}.val_kwargs.n": 1,
    f"{ROLLOUT}.val_kwargs.temperature": 0,
    # model and data
    f"{MODEL}.path": None,  # a folder on its authors' machine, never meant
    f"{MODEL}.tokenizer_path": None,
    f"{MODEL}.lora_rank": 0,
    "data.train_files": None,
    "data.val_files": None,
    "data.prompt_key": "prompt",
    "data.max_prompt_length": 512,
    "data.max_response_length": 512,
    "data.train_batch_size": 1024,
    "data.gen_batch_size": None,
    "data.train_max_samples": -1,
    "data.filter_overlong_prompts": False,
    "data.truncation": "error",
    "data.seed": None,
    "data.apply_chat_template_kwargs": {},
    # advantage
    "algorithm.adv_estimator": "gae",
    "algorithm.norm_adv_by_std_in_grpo": True,
    "algorithm.use_kl_in_reward": False,
    "algorithm.kl_penalty": "kl",
    "algorithm.kl_ctrl.kl_coef": 0.001,
    "algorithm.kl_ctrl.type": "fixed",
    "algorithm.filter_groups.enable": False,
    "algorithm.filter_groups.max_num_gen_batches": 0,
    "algorithm.rollout_correction.rollout_is": None,
    "algorithm.rollout_correction.rollout_rs": None,
    "algorithm.rollout_correction.bypass_mode": False,
    # reward
    "custom_reward_function.path": None,
    "custom_reward_function.name": "compute_score",
    f"{OVERLONG}.enable": False,
    f"{OVERLONG}.len": 0,
    f"{OVERLONG}.penalty_factor": 1.0,
    # the run
    "trainer.total_epochs": 30,
    "trainer.total_training_steps": None,
    "trainer.save_freq": -1,
    "trainer.test_freq": -1,
    "trainer.max_actor_ckpt_to_keep": None,
    "trainer.logger": ["console", "wandb"],
    "trainer.experiment_name": "gsm8k",
}

#: Names of later versions -> the names used here.
RENAMED: Mapping[str, str] = {
    "reward.custom_reward_function.path": "custom_reward_function.path",
    "reward.custom_reward_function.name": "custom_reward_function.name",
    **{
        f"reward.reward_kwargs.overlong_buffer_cfg.{name}": f"{OVERLONG}.{name}"
        for name in ("enable", "len", "penalty_factor", "log")
    },
}

_MACHINERY = (
    "how verl spreads the work over processors; it does not change what is learned, and here "
    "micro-batches are cut by tokens"
)
_UNREAD = "the objective that would read it is another one"
_REASONS = {
    _MACHINERY: f"""
        {ACTOR}.strategy {ACTOR}.ppo_micro_batch_size {ACTOR}.ppo_micro_batch_size_per_gpu
        {ACTOR}.use_torch_compile {ACTOR}.use_fused_kernels {ACTOR}.use_remove_padding
        {ACTOR}.ulysses_sequence_parallel_size {ACTOR}.entropy_from_logits_with_chunking
        {ACTOR}.entropy_checkpointing {ACTOR}.use_prefix_grouper {ACTOR}.data_loader_seed
        {ACTOR}.rollout_n {ACTOR}.calculate_entropy {ACTOR}.calculate_sum_pi_squared
        {ACTOR}.sum_pi_squared_checkpointing {ACTOR}.freeze_vision_tower
        {ACTOR}.use_rollout_log_probs {ACTOR}.load_weight {ACTOR}.ppo_infer_micro_batch_size_per_gpu
        {ACTOR}.ppo_infer_max_token_len_per_gpu
        {MODEL}.use_shm {MODEL}.enable_gradient_checkpointing {MODEL}.enable_activation_offload
        {MODEL}.use_remove_padding {MODEL}.use_liger {MODEL}.use_fused_kernels
        {ROLLOUT}.name {ROLLOUT}.mode {ROLLOUT}.gpu_memory_utilization {ROLLOUT}.enforce_eager
        {ROLLOUT}.cudagraph_capture_sizes {ROLLOUT}.free_cache_engine
        {ROLLOUT}.tensor_model_parallel_size {ROLLOUT}.data_parallel_size
        {ROLLOUT}.expert_parallel_size {ROLLOUT}.pipeline_model_parallel_size
        {ROLLOUT}.max_num_batched_tokens {ROLLOUT}.max_model_len {ROLLOUT}.max_num_seqs
        {ROLLOUT}.enable_chunked_prefill {ROLLOUT}.enable_prefix_caching {ROLLOUT}.logprobs_mode
        {ROLLOUT}.scheduling_policy {ROLLOUT}.load_format {ROLLOUT}.log_prob_micro_batch_size
        {ROLLOUT}.log_prob_micro_batch_size_per_gpu {ROLLOUT}.log_prob_use_dynamic_bsz
        {ROLLOUT}.log_prob_max_token_len_per_gpu {ROLLOUT}.disable_log_stats
        {ROLLOUT}.over_sample_rate {ROLLOUT}.multi_stage_wake_up {ROLLOUT}.skip_rollout
        {ROLLOUT}.skip_dump_dir {ROLLOUT}.skip_tokenizer_init {ROLLOUT}.quantization
        {ROLLOUT}.quantization_config_file {ROLLOUT}.mtp {ROLLOUT}.layered_summon
        {ROLLOUT}.prompt_length {ROLLOUT}.response_length {ROLLOUT}.update_weights_bucket_megabytes
        actor_rollout_ref.hybrid_engine actor_rollout_ref.nccl_timeout
        trainer.nnodes trainer.n_gpus_per_node trainer.device
        trainer.use_legacy_worker_impl trainer.ray_wait_register_center_timeout
        trainer.esi_redundant_time data.use_shm data.dataloader_num_workers
        data.filter_overlong_prompts_workers""",
    "corrects the gap between engine and trainer; here the trainer's own model samples": f"""
        {ROLLOUT}.calculate_log_probs {ROLLOUT}.enable_rollout_routing_replay
        algorithm.rollout_correction.rollout_is_threshold
        algorithm.rollout_correction.rollout_rs_threshold
        algorithm.rollout_correction.rollout_is_batch_normalize
        algorithm.rollout_correction.loss_type""",
    "sampling knows temperature, top_p and top_k here": f"{ROLLOUT}.do_sample {ROLLOUT}.ignore_eos",
    "held-out prompts are sampled at temperature 1 here, from the whole distribution": f"""
        {ROLLOUT}.val_kwargs.top_p {ROLLOUT}.val_kwargs.top_k {ROLLOUT}.val_kwargs.do_sample""",
    _UNREAD: f"""
        {ACTOR}.policy_loss.clip_cov_ratio {ACTOR}.policy_loss.clip_cov_lb
        {ACTOR}.policy_loss.clip_cov_ub {ACTOR}.policy_loss.kl_cov_ratio
        {ACTOR}.policy_loss.ppo_kl_coef algorithm.gamma algorithm.lam algorithm.use_pf_ppo
        algorithm.kl_ctrl.horizon algorithm.kl_ctrl.target_kl algorithm.filter_groups.metric""",
    "the optimizer is AdamW in float32 here": f"""
        {ACTOR}.optim.optimizer_impl {ACTOR}.optim.override_optimizer_config
        {ACTOR}.optim.num_cycles {ACTOR}.optim.total_training_steps {ACTOR}.optim.lr_warmup_init
        {ACTOR}.optim.lr_decay_steps {ACTOR}.optim.lr_decay_style {ACTOR}.optim.min_lr
        {ACTOR}.optim.weight_decay_incr_style {ACTOR}.optim.lr_wsd_decay_style
        {ACTOR}.optim.lr_wsd_decay_steps {ACTOR}.optim.use_checkpoint_opt_param_scheduler""",
    "a model folder is loaded as it is: its own code is not run": f"""
        {MODEL}.hf_config_path {MODEL}.trust_remote_code {MODEL}.custom_chat_template
        {MODEL}.external_lib data.trust_remote_code data.tokenizer""",
    "all weights are trained here, without adapters": f"""
        {MODEL}.lora_alpha {MODEL}.target_modules {MODEL}.exclude_modules
        {MODEL}.lora_adapter_path""",
    "prompts come in a seeded order, every one once an epoch; evaluate.prompts says how many are held out": """
        data.shuffle data.validation_shuffle data.val_batch_size data.val_max_samples""",
    "rows are read as they are; the reward is the section verifier": """
        data.reward_fn_key data.return_raw_input_ids data.return_raw_chat data.return_full_prompt
        data.image_patch_size data.image_key data.video_key data.return_multi_modal_inputs
        data.tool_config_path""",
    "a reward manager calls the reward function; here the verifier does": f"""
        reward_model.reward_manager reward_model.launch_reward_fn_async reward_model.num_workers
        reward_model.use_reward_loop reward_model.reward_kwargs.max_resp_len {OVERLONG}.log
        reward.reward_kwargs.overlong_buffer_cfg.log reward.reward_kwargs.max_resp_len
        reward.num_workers reward.reward_manager.name reward.reward_manager.source""",
    "the run folder holds every step's numbers, responses and checkpoints": """
        trainer.project_name trainer.default_local_dir trainer.default_hdfs_dir
        trainer.log_val_generations trainer.rollout_data_dir trainer.validation_data_dir
        trainer.resume_mode trainer.resume_from_path trainer.del_local_ckpt_after_load
        trainer.max_critic_ckpt_to_keep""",
    "held-out prompts are judged before the first and after the last step here": """
        trainer.val_before_train trainer.val_only""",
    "there is no critic here": "trainer.critic_warmup",
}

#: Key -> why it is not carried over.
NOT_CARRIED: Mapping[str, str] = {
    key: reason for reason, keys in _REASONS.items() for key in keys.split()
}

#: Trees of which nothing is carried over -> why. A key below them may have any name.
SUBTREES: Mapping[str, str] = {
    "critic.": "there is no critic here",
    "reward_model.": "there is no reward model here; the reward is the section verifier",
    "reward.": "there is no reward model here; the reward is the section verifier",
    "reward_manager.": "the reward is the section verifier",
    "actor_rollout_ref.ref.": "the reference is a copy of the starting model, in the same process",
    f"{ACTOR}.fsdp_config.": _MACHINERY,
    f"{ACTOR}.megatron.": _MACHINERY,
    f"{ACTOR}.veomni.": _MACHINERY,
    f"{ACTOR}.checkpoint.": "checkpoints are always whole here",
    f"{ACTOR}.profiler.": _MACHINERY,
    f"{ACTOR}.router_replay.": "routing is not replayed here",
    f"{MODEL}.override_config.": "a model folder is loaded as it is",
    f"{MODEL}.lora.": "all weights are trained here, without adapters",
    f"{ROLLOUT}.layer_name_map.": _MACHINERY,
    f"{MODEL}.fused_kernel_options.": _MACHINERY,
    f"{MODEL}.tiled_mlp.": _MACHINERY,
    f"{MODEL}.mtp.": _MACHINERY,
    f"{ROLLOUT}.engine_kwargs.": _MACHINERY,
    f"{ROLLOUT}.agent.": "a response is one turn here",
    f"{ROLLOUT}.multi_turn.": "a response is one turn here",
    f"{ROLLOUT}.checkpoint_engine.": _MACHINERY,
    f"{ROLLOUT}.trace.": _MACHINERY,
    f"{ROLLOUT}.profiler.": _MACHINERY,
    f"{ROLLOUT}.prometheus.": _MACHINERY,
    "algorithm.pf_ppo.": _UNREAD,
    "data.custom_cls.": "rows are read as they are",
    "data.sampler.": "prompts come in a seeded order, every one once an epoch",
    "data.datagen.": "prompts come from a file or a data set",
    "global_profiler.": _MACHINERY,
    "transfer_queue.": _MACHINERY,
    "ray_kwargs.": _MACHINERY,
    "ray_init.": _MACHINERY,
    "hydra.": _MACHINERY,
}

KNOWN = frozenset({*DEFAULTS, *NOT_CARRIED})
