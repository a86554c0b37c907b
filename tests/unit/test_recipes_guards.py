"""What is rarely meant: a line with the fix; its neighbours say nothing."""

import json

import pytest

from gspo.errors import RecipeError
from gspo.recipes.guards import RULES, guards
from gspo.recipes.load import load_recipe
from gspo.settings import OBJECTIVES

BFLOAT16 = "model.dtype=bfloat16"
SAVED = ["model={path: m}", "coldstart=null"]


def wide(low, high):
    return f"objective.clip={{low: {low}, high: {high}}}"


#: rule -> (overrides, words of the line)
SAID = {
    "wide_clip": [
        ([wide(0.2, 0.28)], "objective.clip reaches 0.28 from ratio 1"),
        ([wide(0.1, 0.01)], "`objective.clip=auto` measures"),
        (["objective={name: gspo_token, clip: {low: 0.2, high: 0.2}}"], "A gspo_token ratio"),
        # 64 tokens: 0.8 / sqrt(64) is 0.1 in nats, 0.105 as a distance.
        (["objective.clip={length_fair: {low: 0.1, high: 0.8}}"], "reaches 0.105"),
    ],
    "one_update": [
        (["trainer.minibatches=1"], "gspo is grpo then"),
        (["trainer.minibatches=1", "objective=grpo"], "so the clip has nothing to cut"),
    ],
    "low_precision": [
        ([BFLOAT16], "objective.clip=auto would measure that noise"),
        ([BFLOAT16, "objective.clip=paper"], "objective.clip is 0.0003"),
        ([BFLOAT16, wide(0.06, 0.07)], "moves log s by 0.0066"),
        (["trainer.dtype=bfloat16"], "trainer.dtype is bfloat16"),
        (["trainer.dtype=bfloat16", "objective.clip=paper"], "`trainer.dtype=model`"),
    ],
    "cut_tail": [
        (["rollout.top_p=0.9"], "cut the tail"),
        (["rollout.top_k=50"], "1.0 and 0 are off"),
    ],
    "no_skipping": [
        (["objective={name: gspo, kl: {coefficient: 0.01}}"], "(k3) gives every response a grad"),
        (
            ["objective={name: gspo, kl: {coefficient: 0.01, estimator: k1}}"],
            "(k1) gives every response an advantage",
        ),
    ],
    "advantage_scale": [(["objective=dr_grpo"], "`advantage.scale=none`")],
    "same_grader": [
        (["verifier={kind: exact, strict: exact}"], "is the training grader itself"),
        (["verifier={kind: function, function: 'a.py:f', strict: 'a.py:f'}"], "the two never part"),
    ],
}

SILENT = [
    [],
    [wide(0.09, 0.0999)],
    ["objective=grpo"],
    ["objective.clip=paper"],
    ["objective.clip={length_fair: {low: 0.7, high: 0.7}}"],
    ["trainer.minibatches=2"],
    [BFLOAT16, "objective=grpo"],
    ["rollout.top_p=1.0", "rollout.top_k=0"],
    ["objective=dr_grpo", "advantage.scale=none"],
    ["verifier={kind: function, function: 'a.py:f', strict: 'a.py:g'}"],
    ["verifier.strict=exact", "verifier.marker='>'"],
]


@pytest.mark.parametrize(
    ("rule", "overrides", "words"),
    [(rule, *case) for rule, cases in SAID.items() for case in cases],
)
def test_one_line_with_the_fix(rule, overrides, words):
    (guard,) = guards(load_recipe("demo", overrides))
    assert guard.rule == rule
    assert words in guard.text
    assert "\n" not in guard.text


@pytest.mark.parametrize("overrides", SILENT, ids=str)
def test_what_is_meant_is_not_commented(overrides):
    assert guards(load_recipe("demo", overrides)) == []


def test_every_guard_is_tried():
    assert {*SAID, "dropout"} == set(RULES)


def test_a_wide_band_in_bfloat16_is_said_once():
    """0.1 is beyond ten times the noise: only its width is worth a line."""
    assert [g.rule for g in guards(load_recipe("demo", [BFLOAT16, wide(0.1, 0.1)]))] == [
        "wide_clip"
    ]


def test_dropout_is_read_from_the_models_config(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    config = {"model_type": "qwen3", "attention_dropout": 0.1}
    recipe = load_recipe("demo", [f"model={{path: {folder}}}", "coldstart=null"])
    assert guards(recipe) == [], "a folder without a config is for `prepare` to refuse"
    (folder / "config.json").write_text(json.dumps(config))
    (guard,) = guards(recipe)
    assert guard.rule == "dropout"
    assert "attention_dropout 0.1" in guard.text
    (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.0}))
    assert guards(recipe) == []


def test_the_four_that_need_no_guard():
    """A ratio per response is divided by responses; a dual clip is refused elsewhere than in ppo;
    no objective has an entropy term; there is one temperature."""
    sequence = [cls for cls in OBJECTIVES.values() if cls.unit == "sequence"]
    assert {cls.denominator for cls in sequence} == {"responses"}
    for name in set(OBJECTIVES) - {"ppo"}:
        with pytest.raises(RecipeError, match="dual_clip"):
            load_recipe("demo", [f"objective={{name: {name}, dual_clip: 3}}"])
    with pytest.raises(RecipeError, match="entropy"):
        load_recipe("demo", ["objective={name: gspo, entropy: 0.01}"])
    for section in ("engine", "trainer", "model"):
        with pytest.raises(RecipeError, match="temperature"):
            load_recipe("demo", [f"{section}.temperature=0.7"])
