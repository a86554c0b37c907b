"""Times by the roofline, worked by hand, and those of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, Qwen3MoeConfig

from gspo.errors import DataError, RecipeError
from gspo.plan.devices import Device
from gspo.plan.measured import measured
from gspo.plan.memory import MemoryPlan, Request, plan
from gspo.plan.method import Method
from gspo.plan.shape import shape_of
from gspo.plan.speed import beside, step_time
from gspo.recipes.load import load_recipe, to_yaml
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Max, Mean

LLAMA = LlamaConfig(
    vocab_size=1000,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    tie_word_embeddings=False,
)
SLOW_MEMORY = Device(name="box", memory=10**12, bfloat16=1e15, float32=1e14, bandwidth=1e9)
SLOW_PRODUCTS = Device(name="box", memory=10**12, bfloat16=1e9, float32=1e9, bandwidth=1e15)
BATCH = ("evaluate.prompts=1", "evaluate.samples=1", "rollout.prompts=4", "rollout.max_tokens=10")


def planned(*settings: str, config: Any = LLAMA, **changes: Any) -> MemoryPlan:
    recipe = load_recipe("demo", [*BATCH, *settings])
    request = Request(
        recipe=recipe,
        shape=shape_of(config),
        precision="mixed",
        prompt_tokens=6,
        device=SLOW_MEMORY,
    )
    return plan(replace(request, **changes))


def test_decoding_reads_weights_and_cache_at_every_token():
    """32 rows, 10 tokens, on average 6 + 5 behind them; the embedding is looked up, not read."""
    weights = 2 * (shape_of(LLAMA).num_parameters - 64_000)
    cache = 32 * 11 * (2 * 2 * 2 * 16 * 2)
    time = step_time(planned())
    assert time.decode_s == pytest.approx(10 * (weights + cache) / 1e9)
    assert time.decode_bound == "memory"
    assert time.tokens_per_s == pytest.approx(320 / time.decode_s)


def test_the_update_takes_6_operations_a_parameter_and_token():
    """4 prompts of 6 and 32 responses of 10: 344 tokens, 320 of them under the head."""
    shape = shape_of(LLAMA)
    body = shape.num_multiplied - 64_000
    attention = 2 * 4 * 16 * 16  # layers, heads x size, half of 2 x (6 + 10)
    work = 6 * ((body + attention) * 344 + 64_000 * 320)
    time = step_time(planned(device=SLOW_PRODUCTS))
    assert time.update_s == pytest.approx(work / 1e9)
    assert time.score_s == 0
    assert time.decode_bound == "products"


def test_old_log_probs_of_the_trainer_are_a_forward_of_the_later_minibatches():
    time = step_time(planned("trainer.old_logp=trainer", device=SLOW_PRODUCTS))
    assert time.score_s == pytest.approx(time.update_s / 3 * 3 / 4)


def test_a_mixture_reads_the_experts_that_some_row_needs():
    """32 rows choose 2 of 8: (3/4)^32 of the experts are left alone."""
    config = Qwen3MoeConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        tie_word_embeddings=True,
    )
    shape = shape_of(config)
    experts = shape.num_expert * (1 - 0.75**32)
    read = 2 * (shape.num_parameters - shape.num_expert + experts) + 32 * 11 * 256
    assert step_time(planned(config=config)).decode_s == pytest.approx(10 * read / 1e9)


def test_dpo_is_four_thirds_of_sft_and_this_run_the_whole_step():
    found = planned()
    time = step_time(found)
    cost = beside(found.setup, time)
    assert cost.dpo == pytest.approx(4 / 3)
    assert cost.gspo == pytest.approx(time.step_s / time.update_s)
    assert cost.generation == pytest.approx(time.rollout_s / time.step_s)


def test_adapters_spare_a_third_of_the_update():
    full, adapters = (
        step_time(planned(method=method)).update_s for method in (Method(), Method(lora_rank=1))
    )
    assert adapters == pytest.approx(full * 4 / 6)


def test_two_devices_halve_what_they_share():
    one, two = step_time(planned()), step_time(planned(devices=2))
    assert two.update_s == pytest.approx(one.update_s / 2)
    assert one.decode_s / 2 < two.decode_s < one.decode_s  # each reads all the weights


def test_times_need_a_device():
    with pytest.raises(RecipeError, match="name one"):
        step_time(planned(device=None))


def recorded(folder: Any, *settings: str) -> Any:
    run = RunFolder.create(folder, info={}, recipe=to_yaml(load_recipe("demo", settings)))
    for step, rollout_s in enumerate((9.0, 2.0, 4.0), start=1):
        seconds = {"rollout": rollout_s, "update": 1.0, "step": rollout_s + 2}
        stats = {f"time/{name}_s": Mean(value, 1) for name, value in seconds.items()}
        more = {"step/tokens": Mean(600, 1), "memory/peak_rss_gib": Max(torch.tensor(step / 2))}
        run.step(step, {**stats, **more}, [])
    run.close()
    return run.path


def test_a_run_tells_its_own_times_without_the_first_step(tmp_path):
    found = measured(recorded(tmp_path / "a"), load_recipe("demo"))
    assert (found.num_steps, found.step_s) == (2, 5.0)
    assert found.seconds == {"rollout": 3.0, "update": 1.0}
    assert found.sampled_per_s == 200.0
    assert found.peak_bytes == 3 * 2**29
    assert found.different == ()


def test_a_run_of_another_recipe_is_said_to_be(tmp_path):
    run = recorded(tmp_path / "a", "rollout.max_tokens=32")
    assert measured(run, load_recipe("demo")).different == ("rollout",)


def test_a_run_without_steps_is_refused(tmp_path):
    run = RunFolder.create(tmp_path / "a", info={}, recipe="")
    run.close()
    with pytest.raises(DataError, match="no step with times"):
        measured(run.path, load_recipe("demo"))
