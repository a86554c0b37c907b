#!/usr/bin/env bash
# GSPO on school sums, eight processors.
set -xeuo pipefail

export VLLM_USE_V1=1
home=${DATA_HOME:-data}
name="sums-gspo"

loss_mode=gspo
low=3e-4   # section 5.1 of the paper
high=4e-4

train_batch_size=512
mini_batch_size=128  # four updates
responses=16
max_prompt=$((1024 * 2))
max_response=$((1024 * 8))

ACTOR="
    actor_rollout_ref.actor.policy_loss.loss_mode=${loss_mode} \
    actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean \
    actor_rollout_ref.actor.clip_ratio_low=$low
    actor_rollout_ref.actor.clip_ratio_high=$high
    actor_rollout_ref.actor.clip_ratio_c=10.0"

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    algorithm.use_kl_in_reward=False \
    data.train_files="['$home/train.parquet']" \
    data.val_files=$home/test.parquet \
    data.train_batch_size=$train_batch_size \
    data.max_prompt_length=${max_prompt} \
    data.max_response_length=${max_response} \
    data.filter_overlong_prompts=True \
    data.truncation='error' \
    actor_rollout_ref.model.path=example/small-instruct \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.optim.lr_warmup_steps=10 \
    actor_rollout_ref.actor.optim.weight_decay=0.1 \
    actor_rollout_ref.actor.ppo_mini_batch_size=$mini_batch_size \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((max_prompt + max_response) * 2)) \
    actor_rollout_ref.actor.fsdp_config.param_offload=False \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=$responses \
    actor_rollout_ref.rollout.temperature=1.0 \
    actor_rollout_ref.rollout.val_kwargs.temperature=1.0 \
    actor_rollout_ref.rollout.val_kwargs.n=4 \
    $ACTOR \
    custom_reward_function.path=rewards/sums.py \
    trainer.logger='["console","wandb"]' \
    trainer.experiment_name="${name}" \
    trainer.n_gpus_per_node=$GPUS \
    trainer.test_freq=10 \
    trainer.save_freq=20 \
    trainer.total_training_steps=500 $@
