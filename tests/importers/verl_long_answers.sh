# DAPO: clip-higher, dynamic sampling, a punishment for length.
train_batch=512
gen_batch=$((train_batch * 3))
buffer=$((1024 * 4))
python3 -m recipe.dapo.main_dapo \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.actor.clip_ratio_low=0.2 \
    actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.actor.loss_agg_mode="token-mean" \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    data.train_batch_size=${train_batch} \
    data.gen_batch_size=${gen_batch} \
    data.max_prompt_length=2048 data.max_response_length=20480 \
    data.train_files=data/maths.parquet \
    +algorithm.filter_groups.enable=True \
    +algorithm.filter_groups.max_num_gen_batches=10 \
    +algorithm.filter_groups.metric=acc \
    actor_rollout_ref.model.path=example/base-32b \
    actor_rollout_ref.rollout.n=16 \
    actor_rollout_ref.rollout.top_p=0.95 actor_rollout_ref.rollout.top_k=50 \
    reward_model.reward_manager=dapo \
    +reward_model.reward_kwargs.overlong_buffer_cfg.enable=True \
    +reward_model.reward_kwargs.overlong_buffer_cfg.len=$buffer \
    +reward_model.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0 \
    custom_reward_function.path=rewards/maths.py \
    custom_reward_function.name=score \
    actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.05 \
    trainer.total_epochs=2 data.train_max_samples=8192 \
    trainer.save_freq=5
