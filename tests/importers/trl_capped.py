import trl

EPOCHS = 2
config = trl.GRPOConfig(
    loss_type="bnpo",
    importance_sampling_level="token",
    epsilon=0.2,
    delta=3.0,
    scale_rewards="batch",
    num_generations=8,
    generation_batch_size=256,
    per_device_train_batch_size=16,
    gradient_accumulation_steps=4,
    num_train_epochs=EPOCHS,
    num_iterations=2,
    warmup_steps=10,
    lr_scheduler_type="constant",
    model_init_kwargs={"dtype": "bfloat16", "attn_implementation": "sdpa"},
)


def short(completions, **columns):
    return [-float(len(text)) for text in completions]


def main():
    trainer = trl.GRPOTrainer(
        model="example/base-7b",
        reward_funcs=short,
        args=config,
        train_dataset=make_data(),
        callbacks=[print],
    )
    trainer.train()
