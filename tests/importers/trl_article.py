from trl import GRPOConfig

args = GRPOConfig(
    importance_sampling_level="sequence",  # the GSPO ratio
    loss_type="grpo",
    beta=0.0,
    epsilon=3e-4,
    epsilon_high=4e-4,
    gradient_accumulation_steps=1,
    steps_per_generation=4,  # 4 minibatch updates per rollout batch
)
