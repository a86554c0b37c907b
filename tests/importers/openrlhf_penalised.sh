# Token ratios with a KL term; options in arrays.
SAVE_PATH="out/penalised"
DATA_ARGS=(
   --data.prompt_dataset data/train.jsonl
   --data.input_key prompt
   --data.label_key answer
   # --data.max_samples 1000
   --data.max_len 9216
   --rollout.max_new_tokens 8192
)
ALGORITHM_ARGS=(
   --algo.advantage.estimator dr_grpo
   --algo.kl.init_coef 1e-4
   --algo.kl.use_loss
   --algo.kl.estimator k2
   --algo.dynamic_filtering_enable
   --algo.dynamic_filtering_range 0.0 1.0
   --actor.eps_clip_low_high 0.2 0.27
   --actor.dual_clip 3.0
   --reward.overlong_buffer_len 4096
   --reward.overlong_penalty_factor 0.5
   --algo.advantage.is_correction_enable
   --algo.advantage.is_correction_type icepop
)
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --actor.model_name_or_path models/start \
   --reward.remote_url=rewards/maths.py \
   --rollout.batch_size 64 --rollout.n_samples_per_prompt 16 --train.batch_size 1024 \
   --train.num_episodes 3 --data.max_samples 6400 \
   --train.dynamic_batch_enable --train.max_tokens_per_gpu 32768 \
   --actor.lr_scheduler constant --actor.lr_warmup_ratio 0 \
   --eval.dataset data/held_out.jsonl --eval.steps 5 --eval.temperature 1.0 \
   --ckpt.output_dir ${SAVE_PATH} \
   ${DATA_ARGS[@]} ${ALGORITHM_ARGS[@]} --logger.tensorboard_dir ${SAVE_PATH}/runs
