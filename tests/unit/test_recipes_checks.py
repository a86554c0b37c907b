"""What settings must agree on: the rule, the numbers, a setting that works."""

import pytest

from gspo.errors import RecipeError
from gspo.recipes.load import load_recipe

FILE = ["data={path: a.jsonl}", "model.path=/m", "coldstart=null", "verifier.kind=exact"]


def refused(*overrides):
    with pytest.raises(RecipeError) as caught:
        load_recipe("demo", overrides)
    return str(caught.value)


def test_a_group_of_one():
    assert "rollout.group is 1: no group baseline possible" in refused("rollout.group=1")
    assert "set 2 or more" in refused("rollout.group=0")


def test_whole_groups_are_dealt_out_evenly():
    message = refused("trainer.minibatches=5")
    assert "32 prompts cannot be cut into 5 equal parts" in message
    assert "set rollout.prompts to 30 or 35, or trainer.minibatches to 4" in message
    assert load_recipe("demo", ["trainer.minibatches=5", "rollout.prompts=35"])
    assert load_recipe("demo", ["trainer.minibatches=4"])


def test_fewer_prompts_than_minibatches():
    message = refused("rollout.prompts=3")
    assert "set rollout.prompts to 4, or trainer.minibatches to 3" in message


def test_responses_are_dealt_out_evenly():
    response = "trainer.minibatch_by=response"
    assert load_recipe("demo", [response, "rollout.prompts=1", "trainer.minibatches=8"])
    message = refused(response, "rollout.prompts=5", "rollout.group=6", "trainer.minibatches=4")
    assert "5 prompts x 6 = 30 responses cannot be cut into 4 equal parts" in message
    assert "set rollout.prompts to 4 or 6, or trainer.minibatches to 3" in message
    for prompts in (4, 6):
        even = [response, f"rollout.prompts={prompts}", "rollout.group=6"]
        assert load_recipe("demo", even)


def test_the_longest_sequence_fits_a_microbatch_and_the_model():
    message = refused("trainer.max_tokens_per_microbatch=73", "data.max_prompt_tokens=10")
    assert "is 73, but a prompt of 10 + a response of 64 tokens must fit" in message
    assert "set it to 74 or more" in message
    assert load_recipe(
        "demo", ["trainer.max_tokens_per_microbatch=74", "data.max_prompt_tokens=10"]
    )
    assert "model.max_positions is 256" in refused("rollout.max_tokens=256")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["model.hidden=130"], "model.hidden is 130: each of 4 heads needs an even share"),
        (["model.kv_heads=3"], "model.kv_heads is 3: 4 heads must share them evenly; 2 works"),
        (["data.num_prompts=10"], "data.num_prompts is 10, fewer than the 32 of one step"),
        (["optimizer.warmup_steps=320"], "80 steps x 4 minibatches = 320 optimizer steps"),
        (["coldstart.warmup=280"], "coldstart.warmup is 280 of 280 steps"),
        (["verifier.kind=function"], "verifier.function is null, but verifier.kind is function"),
        (["verifier.marker='#'"], "verifier.marker goes with verifier.kind: exact, which is task"),
        (
            ["verifier.kind=function", "verifier.function=f"],
            "verifier.function is 'f'; wanted file.py:name",
        ),
        ([*FILE[:3]], "verifier.kind is task, but data come from a file"),
        ([*FILE[:2], FILE[3]], "coldstart needs a task that writes demonstrations"),
        ([FILE[0], *FILE[2:]], "model.tokenizer is null, which is a task's alphabet"),
        (
            [*FILE, "data.columns.answer=null"],
            "data.columns.answer is null, but verifier.kind: exact compares",
        ),
    ],
)
def test_what_does_not_go_together(overrides, words):
    assert words in refused(*overrides)


def test_the_neighbours_of_these_are_fine():
    assert load_recipe("demo", FILE)
    assert load_recipe("demo", ["optimizer.warmup_steps=319", "data.num_prompts=32"])
    assert load_recipe("demo", ["verifier.kind=function", "verifier.function=a/b.py:reward"])
