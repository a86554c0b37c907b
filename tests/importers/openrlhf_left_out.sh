# Leave one out, with the penalty that is on unless it is switched off.
python -m openrlhf.cli.train_ppo_ray \
  --actor.model_name_or_path models/start \
  --actor.policy_loss_type gspo \
  --algo.advantage.estimator rloo \
  --algo.advantage.is_correction_enable \
  --rollout.n_samples_per_prompt 4 --rollout.batch_size 32 --train.batch_size 32 \
  --data.prompt_dataset example/maths,example/code --data.max_len 1024 \
  --data.max_samples 320 \
  --logger.wandb.key 0123456789
