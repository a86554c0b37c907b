"""What other trainers' settings become, worked out by hand."""

from pathlib import Path

import pytest

from gspo.errors import RecipeError
from gspo.recipes.importers.convert import import_settings
from gspo.recipes.objective_section import Band

FILES = Path(__file__).parents[1] / "importers"
SUFFIX = {"trl": ".py", "verl": ".txt", "openrlhf": ".txt"}


def imported(name, **options):
    return import_settings(name.partition("_")[0], FILES / name, **options)


@pytest.fixture
def made(tmp_path):
    """Import a few settings: keywords of GRPOConfig, overrides, or options."""

    def make(trainer, text):
        path = tmp_path / f"a{SUFFIX[trainer]}"
        path.write_text(f"GRPOConfig({text})" if trainer == "trl" else text)
        return import_settings(trainer, path)

    return make


def why(result, key):
    (found,) = [line.why for line in result.report.changed if line.key == key]
    return found


def note(result, key):
    (found,) = [line.note for line in result.report.taken if line.key == key]
    return found


def test_the_articles_setting_of_trl():
    result = imported("trl_article.py")
    recipe = result.recipe
    assert recipe.objective.name == "gspo"
    assert recipe.objective.clip == Band(low=3e-4, high=4e-4)
    assert recipe.objective.kl is None
    trainer = recipe.trainer
    assert (trainer.minibatches, trainer.minibatch_by, trainer.old_logp) == (
        4,
        "response",
        "trainer",
    )
    assert (recipe.rollout.prompts, recipe.rollout.group) == (4, 8)  # 8 rows x 4 slices / 8
    assert recipe.optimizer.lr == 1e-6
    assert (recipe.advantage.baseline, recipe.advantage.scale) == ("mean", "std")
    assert "N times as many" in why(result, "per_device_train_batch_size")
    assert result.report.not_carried == []


def test_the_articles_setting_of_verl():
    result = imported("verl_article.txt")
    recipe = result.recipe
    assert recipe.objective.name == "gspo"
    assert recipe.objective.clip == Band(low=3e-4, high=4e-4)
    assert recipe.objective.kl is None
    assert (recipe.rollout.prompts, recipe.trainer.minibatches) == (1024, 4)  # 1024 / 256 prompts
    assert "GSPO-token" in note(result, "actor_rollout_ref.actor.policy_loss.loss_mode")
    assert "critic" in why(result, "algorithm.adv_estimator")


def test_the_articles_setting_of_openrlhf():
    result = imported("openrlhf_article.txt")
    recipe = result.recipe
    assert recipe.objective.name == "gspo"
    assert recipe.objective.clip == Band(low=0.2, high=0.2)
    assert recipe.objective.kl.coefficient == 0.01  # on unless it is switched off
    assert recipe.objective.kl.estimator == "k1"
    assert recipe.optimizer.betas == (0.9, 0.95)
    assert "next to nothing is cut" in note(result, "actor.eps_clip")
    assert "times weaker" in why(result, "algo.kl.init_coef")


def test_trl_script_of_school_sums():
    result = imported("trl_sums.py")
    recipe = result.recipe
    # 32 x 8 / 4 / 2 = 32 rows x 8 slices = 256 completions; 8 slices / 2 accumulated = 4 updates
    assert (recipe.rollout.prompts, recipe.rollout.group, recipe.trainer.minibatches) == (32, 8, 4)
    assert (recipe.trainer.steps, recipe.trainer.checkpoint_every) == (100, 10)
    assert (recipe.optimizer.schedule, recipe.optimizer.warmup_steps) == ("constant", 20)
    assert recipe.rollout.max_tokens == 1024
    assert (recipe.record.folder, recipe.name, recipe.record.to) == ("out", "sums-gspo", ["wandb"])
    assert recipe.model.path == "example/small-instruct"
    data = recipe.data
    assert (data.path, data.subset, data.split) == ("example/school-sums", "main", "train")
    first, second = recipe.verifier.parts
    assert (first.kind, first.function) == ("function", "lib/rewards.py:ends_with_answer")
    assert (second.kind, second.pattern[:7]) == ("regex", "^<think")
    assert {line.key for line in result.report.not_carried} == {
        "use_vllm",
        "vllm_mode",
        "logging_steps",
    }


def test_trl_defaults_are_taken_as_they_are(made):
    recipe = made("trl", "").recipe
    assert recipe.objective.name == "dapo"
    assert recipe.objective.clip == Band(low=0.2, high=0.2)
    assert (recipe.trainer.minibatches, recipe.rollout.prompts) == (1, 1)
    assert (recipe.optimizer.schedule, recipe.trainer.dtype) == ("cosine", "bfloat16")
    assert recipe.seed == 42


def test_one_update_a_rollout_batch_is_said(made):
    result = made("trl", "importance_sampling_level='sequence', loss_type='grpo'")
    assert "nothing is ever cut" in why(result, "updates a rollout batch")


@pytest.mark.parametrize("loss", ["dapo", "bnpo", "dr_grpo", "luspo"])
def test_gspo_by_length_becomes_gspo_and_says_so(made, loss):
    result = made("trl", f"importance_sampling_level='sequence', loss_type={loss!r}")
    assert result.recipe.objective.name == "gspo"
    assert "counts by its length" in why(result, "loss_type")


def test_trl_token_losses(made):
    names = {"grpo": "grpo", "dapo": "dapo", "bnpo": "dapo", "dr_grpo": "dr_grpo", "sapo": "sapo"}
    for theirs, ours in names.items():
        assert made("trl", f"loss_type={theirs!r}").recipe.objective.name == ours
    capped = made("trl", "delta=3.0").recipe.objective
    assert (capped.name, capped.dual_clip) == ("ppo", 3.0)
    weights = made("trl", "loss_type='cispo', epsilon_high=5.0").recipe.objective
    assert weights.clip == Band(low=1.0, high=4.0)  # the largest weight itself there


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loss_type='vespo'", "no counterpart"),
        ("loss_type='cispo'", "5.0 is usual"),
        ("loss_type='luspo'", "no counterpart"),
        ("importance_sampling_level='word'", "token or sequence"),
        ("steps_per_generation=3, gradient_accumulation_steps=2", "straddle"),
        ("per_device_train_batch_size=3", "no whole groups of 8"),
        ("num_generations=1", "at least 2"),
        ("steps_per_generation=2, generation_batch_size=16", "exclude one another"),
        ("epsilon='wide'", "wanted a finite number"),
        ("lr_scheduler_type='inverse_sqrt'", "no counterpart"),
        ("scale_rewards='some'", "group, batch or none"),
    ],
)
def test_trl_settings_without_a_counterpart(made, text, message):
    with pytest.raises(RecipeError, match=message):
        made("trl", text)


def test_trl_constant_schedule_knows_no_warm_up(made):
    plain = made("trl", "lr_scheduler_type='constant', warmup_steps=10, max_steps=100")
    assert plain.recipe.optimizer.warmup_steps == 0
    share = made("trl", "lr_scheduler_type='cosine', warmup_steps=0.1, max_steps=100")
    assert share.recipe.optimizer.warmup_steps == 10


def test_trl_passes_over_a_rollout_batch(made):
    """Two passes of four updates: 80 optimizer steps are 10 rollout batches."""
    result = made("trl", "steps_per_generation=4, num_iterations=2, max_steps=80")
    assert (result.recipe.trainer.minibatches, result.recipe.trainer.steps) == (4, 10)
    assert [line.key for line in result.report.not_carried] == ["num_iterations"]


def test_a_reward_of_the_script_itself_is_named_and_not_loaded():
    result = imported("trl_capped.py", lenient=True)
    assert result.recipe.verifier.function == "MISSING/reward.py:short"
    assert "start the training" in why(result, "reward_funcs")
    assert result.recipe.model.dtype == "bfloat16"
    assert result.recipe.advantage.scale == "none"
    lost = {line.key for line in result.report.not_carried}
    assert {
        "dataset_name",
        "GRPOTrainer(callbacks)",
        "model_init_kwargs.attn_implementation",
    } <= lost


def test_verl_script_of_school_sums():
    recipe = imported("verl_sums.sh").recipe
    assert recipe.objective.clip == Band(low=3e-4, high=4e-4)
    # 512 / 128 prompts; verl moves the rate once a rollout batch: 10 x 4 updates
    assert (recipe.trainer.minibatches, recipe.optimizer.warmup_steps) == (4, 40)
    assert (recipe.rollout.prompts, recipe.rollout.group) == (512, 16)
    assert (recipe.data.path, recipe.data.eval_path) == ("data/train.parquet", "data/test.parquet")
    assert (recipe.data.max_prompt_tokens, recipe.data.overlong) == (2048, "drop")
    assert recipe.trainer.max_tokens_per_microbatch == 20480
    assert recipe.verifier.function == "rewards/sums.py:compute_score"
    assert (recipe.evaluate.every, recipe.evaluate.samples) == (10, 4)
    assert (recipe.trainer.steps, recipe.trainer.checkpoint_every, recipe.name) == (
        500,
        20,
        "sums-gspo",
    )


def test_verl_ignores_the_aggregation_of_gspo(made):
    result = made("verl", "actor_rollout_ref.actor.policy_loss.loss_mode=gspo")
    assert "verl ignores it" in why(result, "actor_rollout_ref.actor.loss_agg_mode")
    assert "counts by its length" in why(result, "metric actor/pg_clipfrac")


def test_verl_long_answers():
    recipe = imported("verl_long_answers.sh").recipe
    assert (recipe.objective.name, recipe.objective.dual_clip) == ("ppo", 3.0)
    assert recipe.rollout.dynamic_sampling.max_factor == 30  # 10 x 1536 / 512
    assert recipe.trainer.steps == 32  # 2 x 8192 / 512
    assert recipe.optimizer.warmup_steps == 16  # floor(0.05 x 32) rollout batches x 16 updates
    assert [part.kind for part in recipe.verifier.parts] == ["function", "overlong"]
    assert (recipe.rollout.top_p, recipe.rollout.top_k) == (0.95, 50)


def test_verl_penalties():
    in_loss = imported("verl_penalty.yaml")
    assert in_loss.recipe.objective.kl.estimator == "k2"  # k3+ has the gradient of k2
    assert in_loss.recipe.objective.name == "grpo"
    assert (in_loss.recipe.advantage.scale, in_loss.recipe.trainer.minibatch_by) == (
        "none",
        "group",
    )
    assert in_loss.recipe.data.columns == {"prompt": "messages"}
    in_reward = imported("verl_geometric.txt")
    assert (in_reward.recipe.objective.name, in_reward.recipe.objective.kl.estimator) == (
        "gmpo",
        "k1",
    )
    assert in_reward.recipe.advantage.baseline == "loo"
    assert "their mean" in why(in_reward, "algorithm.kl_ctrl.kl_coef")


def test_verl_bypass_is_anchored_anew(made):
    text = "algorithm.rollout_correction.bypass_mode=True data.seed=1"
    result = made("verl", text)
    assert result.recipe.trainer.old_logp == "trainer"
    assert "engine's log-probs" in why(result, "algorithm.rollout_correction.bypass_mode")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("actor_rollout_ref.actor.policy_loss.loss_mode=clip_cov", "no counterpart"),
        ("actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum", "no counterpart"),
        ("algorithm.adv_estimator=remax", "no counterpart"),
        ("data.train_batch_size=100", "do not divide"),
        (
            "actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_type=abs",
            "k1, k2 and k3",
        ),
    ],
)
def test_verl_settings_without_a_counterpart(made, text, message):
    with pytest.raises(RecipeError, match=message):
        made("verl", text)


def test_openrlhf_script_of_school_sums():
    result = imported("openrlhf_sums.sh")
    recipe = result.recipe
    assert recipe.objective.clip == Band(low=3e-4, high=4e-4)
    assert recipe.objective.kl is None
    # 128 prompts x 8 = 1024 samples / 256 an update
    assert (recipe.rollout.prompts, recipe.trainer.minibatches) == (128, 4)
    assert recipe.trainer.steps == 100  # 12800 / 128
    assert (recipe.optimizer.schedule, recipe.optimizer.warmup_steps) == ("constant", 20)
    assert (recipe.rollout.max_tokens, recipe.data.max_prompt_tokens) == (2048, 1024)
    assert recipe.data.columns == {"prompt": "question"}
    assert recipe.data.chat is not None
    assert recipe.verifier.function == "rewards/sums.py:reward_func"
    assert (recipe.record.folder, recipe.name) == ("out", "sums-gspo")


def test_openrlhf_gspo_with_the_correction_is_anchored_anew():
    result = imported("openrlhf_left_out.sh")
    assert "instead of the old" in why(result, "algo.advantage.is_correction_enable")
    assert result.recipe.advantage.baseline == "loo"
    assert result.recipe.data.path == "example/maths"


def test_openrlhf_penalised():
    recipe = imported("openrlhf_penalised.sh").recipe
    assert (recipe.objective.name, recipe.objective.dual_clip) == ("ppo", 3.0)
    assert (recipe.objective.kl.estimator, recipe.objective.kl.coefficient) == ("k2", 1e-4)
    assert (recipe.trainer.steps, recipe.trainer.minibatches) == (300, 1)
    assert recipe.rollout.dynamic_sampling.max_factor == 100
    assert recipe.verifier.parts[1].weight == 0.5
    assert recipe.record.to == ["tensorboard"]


def test_a_recipe_that_cannot_be_names_the_file(made):
    with pytest.raises(RecipeError, match=r"a.txt makes a recipe that cannot be: .*warmup_steps"):
        made(
            "verl",
            "actor_rollout_ref.actor.optim.lr_warmup_steps=90 trainer.total_training_steps=10",
        )


@pytest.mark.parametrize(
    ("trainer", "text", "message"),
    [
        ("trl", "reward_weights=2, reward_funcs=['accuracy_reward']", "wanted one number for each"),
        ("trl", "epsilon=1e400", "wanted a finite number"),
        ("trl", "num_generations=2.5", "wanted a whole number"),
        ("openrlhf", "--actor.eps_clip_low_high 0.1 x", "wanted two numbers"),
    ],
)
def test_values_of_the_wrong_kind_name_their_place(made, trainer, text, message):
    with pytest.raises(RecipeError, match=rf"a\.\w+ line 1: .*{message}"):
        made(trainer, text)


@pytest.mark.parametrize(
    ("trainer", "name", "text", "key"),
    [
        ("trl", "a.yaml", 'bf16: "false"', "bf16"),
        ("trl", "a.yaml", 'use_vllm: "False"', "use_vllm"),
        (
            "trl",
            "a.py",
            "GRPOConfig(use_bias_correction_kl='no', beta=0.1)",
            "use_bias_correction_kl",
        ),
        ("verl", "a.yaml", "{actor_rollout_ref: {actor: {use_kl_loss: 'False'}}}", "use_kl_loss"),
    ],
)
def test_a_switch_that_is_text_is_no_switch(tmp_path, trainer, name, text, key):
    (tmp_path / name).write_text(text)
    with pytest.raises(RecipeError, match=rf"{key} is '\w+'; wanted true or false"):
        import_settings(trainer, tmp_path / name)


@pytest.mark.parametrize(
    ("text", "value"),
    [("'1e-6'", 1e-6), ("1e-6", 1e-6), (".5", 0.5), ("1_000e-9", 1e-6), ("5.", 5.0), ("+2", 2)],
)
def test_numbers_as_the_other_trainer_reads_them(tmp_path, text, value):
    path = tmp_path / "a.yaml"
    path.write_text(f"learning_rate: {text}")
    assert import_settings("trl", path).recipe.optimizer.lr == value


@pytest.mark.parametrize("text", ["010", "0x10", "1e", "one", "1e400"])
def test_text_that_is_no_number_or_two(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(f"learning_rate: {text}")
    with pytest.raises(RecipeError, match="learning_rate is .*; wanted a finite number"):
        import_settings("trl", path)


def test_warmup_steps_come_before_a_ratio_as_in_transformers(made):
    result = made("trl", "max_steps=100, warmup_ratio=0.1, warmup_steps=7")
    assert result.recipe.optimizer.warmup_steps == 7
    assert [line.key for line in result.report.not_carried] == ["warmup_ratio"]
    assert made("trl", "max_steps=100, warmup_ratio=0.1").recipe.optimizer.warmup_steps == 10


def test_a_warmup_of_null_is_the_ratio(made):
    optim = "actor_rollout_ref.actor.optim"
    text = f"trainer.total_training_steps=20 {optim}.lr_warmup_steps=null {optim}.lr_warmup_steps_ratio=0.1"
    batches = "data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=16"
    assert made("verl", f"{text} {batches}").recipe.optimizer.warmup_steps == 2 * 4


@pytest.mark.parametrize("values", ["0.1", "0.1 x", "0 0.5 1"])
def test_a_pair_that_is_none(made, values):
    text = f"--algo.dynamic_filtering_enable --algo.dynamic_filtering_range {values}"
    with pytest.raises(RecipeError, match="dynamic_filtering_range is .*; wanted two numbers"):
        made("openrlhf", f"{text} --rollout.n_samples_per_prompt 8")


def test_a_cispo_bound_that_is_text(made):
    with pytest.raises(RecipeError, match="epsilon_high is 'x'; wanted a finite number"):
        made("trl", "loss_type='cispo', epsilon_high='x'")
