#!/bin/bash
# GSPO on school sums.
set -x
MODEL_PATH="example/small-instruct"

python3 -m openrlhf.cli.train_ppo_ray \
   --actor.num_gpus_per_node 8 \
   --vllm.num_engines 4 \
   --train.colocate_all \
   --actor.model_name_or_path ${MODEL_PATH} \
   --actor.policy_loss_type gspo \
   --actor.eps_clip_low_high 3e-4 4e-4 \
   --algo.advantage.estimator group_norm \
   --algo.kl.init_coef 0 \
   --reward.remote_url rewards/sums.py \
   --rollout.batch_size 128 \
   --rollout.n_samples_per_prompt 8 \
   --train.batch_size 256 \
   --train.micro_batch_size 4 \
   --data.max_len 3072 \
   --rollout.max_new_tokens 2048 \
   --data.prompt_dataset example/school-sums \
   --data.input_key question \
   --data.label_key answer \
   --data.apply_chat_template \
   --data.max_samples 12800 \
   --actor.adam.lr 1e-6 \
   --actor.lr_scheduler constant_with_warmup \
   --actor.lr_warmup_ratio 0.05 \
   --ckpt.output_dir out/sums-gspo \
   --ckpt.save_steps 20
