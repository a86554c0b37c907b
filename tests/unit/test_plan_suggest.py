"""What to change: in order, each with what it saves, until it fits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from transformers import LlamaConfig

from gspo.plan.devices import DEVICES, Device
from gspo.plan.memory import MemoryPlan, Request, plan
from gspo.plan.shape import shape_of
from gspo.plan.suggest import suggestions
from gspo.recipes.load import load_recipe

SHAPE = shape_of(
    LlamaConfig(
        vocab_size=32000,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=22,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )
)
SETTINGS = ("evaluate.prompts=1", "evaluate.samples=1", "objective.kl.coefficient=0.01")


def planned(memory: int) -> MemoryPlan:
    device = Device(name="box", memory=memory, bfloat16=1e12, float32=1e12, bandwidth=1e9)
    recipe = load_recipe("demo", SETTINGS)
    request = Request(
        recipe=recipe, shape=SHAPE, precision="mixed", prompt_tokens=100, device=device
    )
    return plan(request)


NEEDED = planned(10**12).total


def test_what_fits_needs_no_change():
    assert suggestions(planned(10**12)) == []


def test_without_a_device_nothing_is_to_be_changed():
    assert suggestions(plan(replace(planned(1).request, device=None))) == []


def test_the_smaller_micro_batch_comes_first_and_is_enough():
    found = suggestions(planned(NEEDED))
    first = found[0]
    assert first.text.startswith("trainer.max_tokens_per_microbatch=164")
    assert first.fits
    assert first.total == NEEDED - first.saves
    assert all(each.alone for each in found[1:])


def test_settings_build_on_one_another_down_to_a_quantised_base():
    found = [each for each in suggestions(planned(2**30)) if not each.alone]
    words = ["microbatch", "kl=null", "LoRA", "8 bits", "4 bits"]
    places = [next(i for i, each in enumerate(found) if word in each.text) for word in words]
    assert places == sorted(places)
    assert found[0].total == NEEDED - found[0].saves
    for before, after in pairwise(found):
        assert after.total == before.total - after.saves
    assert all(each.saves > 0 for each in found)


def test_a_change_that_saves_nothing_yet_waits_for_its_stage():
    """Sampling 256 long rows is the fullest stage: a smaller forward helps after fewer rows alone."""
    settings = [*SETTINGS, "model.max_positions=4096", "rollout.max_tokens=3000"]
    recipe = load_recipe("demo", [*settings, "rollout.prompts=32"])
    device = Device(name="box", memory=2**30, bfloat16=1e12, float32=1e12, bandwidth=1e9)
    request = replace(planned(1).request, recipe=recipe, device=device)
    found = [each.text for each in suggestions(plan(request))]
    assert found[0].startswith("engine.max_batch=64")
    assert found[1].startswith("trainer.max_tokens_per_microbatch")


def test_the_fewest_devices_and_the_smallest_larger_one():
    hardware = [each for each in suggestions(planned(NEEDED)) if each.alone]
    assert [each.text for each in hardware] == ["2 x box, sharded", "a100-40 instead"]
    assert all(each.fits for each in hardware)


def test_a_reference_that_is_dropped_saves_its_2_bytes_a_parameter():
    found = next(each for each in suggestions(planned(2**30)) if "kl=null" in each.text)
    assert found.saves == 2 * SHAPE.num_parameters


@pytest.mark.parametrize("name", DEVICES)
def test_every_device_is_told_in_bytes_and_seconds(name):
    device = DEVICES[name]
    assert 20e9 < device.memory < 300e9
    assert device.float32 < device.bfloat16 < 1e16
    assert 1e11 < device.bandwidth < 1e13
