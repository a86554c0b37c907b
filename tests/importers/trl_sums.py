"""GSPO on school sums: a launch script as people write them."""

from datasets import load_dataset
from lib.rewards import ends_with_answer
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import think_format_reward

PROMPTS_PER_STEP = 32
GROUP = 8
UPDATES = 4
ROWS = PROMPTS_PER_STEP * GROUP // UPDATES // 2
MODEL = "example/small-instruct"

training = load_dataset("example/school-sums", "main", split="train")


args = GRPOConfig(
    output_dir="out/sums-gspo",
    importance_sampling_level="sequence",
    loss_type="grpo",
    epsilon=3e-4,
    epsilon_high=4e-4,
    beta=0.0,
    num_generations=GROUP,
    per_device_train_batch_size=ROWS,
    gradient_accumulation_steps=2,
    steps_per_generation=2 * UPDATES,
    max_completion_length=2**10,
    learning_rate=1e-6,
    lr_scheduler_type="constant_with_warmup",
    warmup_steps=20,
    max_steps=100 * UPDATES,
    save_steps=10 * UPDATES,
    save_total_limit=3,
    bf16=True,
    use_vllm=True,
    vllm_mode="colocate",
    logging_steps=1,
    report_to="wandb",
)

trainer = GRPOTrainer(
    model=MODEL,
    reward_funcs=[ends_with_answer, think_format_reward],
    args=args,
    train_dataset=training,
)
trainer.train()
