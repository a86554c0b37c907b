"""Parts by hand, and what they add up to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transformers import Qwen2Config

from gspo.errors import RecipeError
from gspo.plan.devices import DEVICES, device_named
from gspo.plan.memory import MemoryPlan, Request, plan, plan_memory
from gspo.plan.method import Method
from gspo.plan.shape import shape_of
from gspo.recipes.load import load_recipe

GIB = 2**30
#: A shape of 7.6 billion parameters (Qwen2.5-7B's), its head apart from its embedding.
SEVEN = shape_of(
    Qwen2Config(
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
    )
)
NUM = 7_615_616_512
DEMO = load_recipe("demo")


def seven(*settings: str, **changes: Any) -> MemoryPlan:
    recipe = load_recipe("demo", ["evaluate.prompts=1", "evaluate.samples=1", *settings])
    request = Request(recipe=recipe, shape=SEVEN, precision="mixed", prompt_tokens=100)
    return plan(replace(request, **changes))


def test_the_parts_add_up_to_the_total():
    for planned in (plan_memory(DEMO), seven(), seven(devices=8)):
        assert sum(planned.parts.values()) == planned.total == max(planned.stages.values())


def test_mixed_precision_is_16_bytes_a_parameter_and_2_more_with_a_reference():
    parts = seven().parts
    assert SEVEN.num_parameters == NUM
    assert parts["weights"] + parts["gradients"] + parts["optimizer"] == 16 * NUM
    assert parts["reference"] == 0
    assert seven("objective.kl.coefficient=0.1").parts["reference"] == 2 * NUM


@pytest.mark.parametrize(("dtype", "weights", "others"), [("float32", 4, 12), ("bfloat16", 2, 6)])
def test_the_trainers_own_layouts(dtype, weights, others):
    planned = plan_memory(load_recipe("demo", [f"model.dtype={dtype}"]))
    count = planned.setup.shape.num_parameters
    assert planned.parts["weights"] == weights * count
    assert planned.parts["gradients"] + planned.parts["optimizer"] == others * count


def test_the_cache_by_hand():
    """256 rows of 100 + 64 tokens; keys and values of 28 layers, 4 heads of 128, in bfloat16."""
    planned = seven("rollout.prompts=32", "rollout.group=8", "rollout.max_tokens=64")
    assert planned.parts["kv_cache"] == 256 * 164 * (2 * 28 * 4 * 128 * 2)


def test_the_lean_path_keeps_a_prompt_once_for_its_group():
    """The demo's model, 2 kv heads of 32: 7 of 8 prompts of 500 tokens spared are worth it."""
    settings = ["model.max_positions=1024", "evaluate.prompts=1", "evaluate.samples=1"]
    planned = plan_memory(load_recipe("demo", settings), prompt_tokens=500)
    a_token = 2 * 4 * 2 * 32 * 4
    assert planned.parts["kv_cache"] == (256 * 64 + 32 * 500) * a_token


def test_an_evaluation_samples_more_rows_than_a_step():
    assert plan_memory(DEMO).setup.workload.rows == 512


def test_logits_are_kept_where_they_are_few_and_chunked_where_not():
    few = plan_memory(DEMO)
    assert few.setup.workload.kept_logits
    work = few.setup.workload
    assert few.parts["head"] == work.trained * (2 * 16 * 4 + 128 * 4)
    many = plan_memory(load_recipe("demo", ["model.dtype=float32"]), precision="mixed")
    assert many.setup.workload.microbatch > work.microbatch  # 8 groups of 522 tokens, all at once
    small = Request(recipe=DEMO, shape=replace(few.setup.shape, vocabulary=200_000))
    chunked = plan(small)
    assert not chunked.setup.workload.kept_logits
    assert chunked.parts["head"] < 30 * 2**20
    assert "heap_holes" not in chunked.parts


def test_a_forward_holds_whole_responses_within_the_budget():
    """A group is 100 + 8 x 64 = 612 tokens: 3 groups in 2,000; in 300, three responses of one."""
    whole = seven("trainer.max_tokens_per_microbatch=2000").setup.workload
    assert (whole.microbatch, whole.trained) == (1836, 1536)
    part = seven("trainer.max_tokens_per_microbatch=300").setup.workload
    assert (part.microbatch, part.trained) == (292, 192)


def test_adapters_leave_the_base_without_gradients():
    parts = seven(method=Method(lora_rank=16)).parts
    count = Method(lora_rank=16).num_adapter(SEVEN)
    assert parts["weights"] == 2 * NUM + 4 * count
    assert parts["gradients"] + parts["optimizer"] == 12 * count


def test_a_quantised_base_by_hand():
    """6,525,288,448 weights of maps in half a byte and their scales, the rest in bfloat16."""
    method = Method(lora_rank=1, lora_targets=("q_proj",), base_bits=4)
    maps = 28 * (2 * 3584**2 + 2 * 3584 * 512 + 3 * 3584 * 18944)
    held = round(maps * (0.5 + 1 / 64 + 1 / 4096)) + 2 * (NUM - maps)
    assert seven(method=method).parts["weights"] == held + 4 * method.num_adapter(SEVEN)


def test_a_reference_under_adapters_is_the_base():
    adapters = Method(lora_rank=4)
    assert seven("objective.kl.coefficient=0.1", method=adapters).parts["reference"] == 0


def test_devices_share_what_is_sharded_and_gather_a_layer():
    one, eight = seven().parts, seven(devices=8).parts
    for name in ("weights", "gradients", "optimizer"):
        assert eight[name] * 8 == pytest.approx(one[name], abs=8)
    assert "gathered" not in one
    ends, layer = 2 * 152064 * 3584, SEVEN.largest_layer
    assert eight["gathered"] == (ends + 2 * layer) * 2 + ends * 2
    assert eight["engine_copy"] == 2 * NUM
    assert eight["kv_cache"] * 8 == one["kv_cache"]


def test_a_device_fits_or_does_not():
    assert plan_memory(DEMO).fits is None
    assert plan_memory(DEMO, device="L4").fits is True
    assert seven(device=DEVICES["h100"]).fits is False
    assert seven(device=DEVICES["mi300x"]).fits is True


def test_an_unknown_device_names_the_nearest():
    with pytest.raises(RecipeError, match="did you mean 'h100'"):
        device_named("h10")
    with pytest.raises(RecipeError, match="wanted at least 1"):
        plan_memory(DEMO, devices=0)


def test_names_of_devices_as_people_write_them():
    assert device_named("RTX 4090") is DEVICES["rtx-4090"]
    assert device_named("A100_80").memory == 80 * GIB


def test_a_prompt_of_a_task_is_measured_and_another_is_assumed(tmp_path):
    assert plan_memory(DEMO).setup.workload.prompt_tokens == len("1234+5678=")
    settings = ["data={path: x.jsonl}", "verifier.kind=exact", f"model.tokenizer={tmp_path}"]
    from gspo.data.tokenizer import character_tokenizer

    character_tokenizer("abc").save_pretrained(tmp_path)
    recipe = load_recipe("demo", [*settings, "coldstart=null"])
    planned = plan_memory(recipe)
    assert planned.setup.workload.prompt_tokens == 256 - 64
    assert "data.max_prompt_tokens" in planned.notes[0]
