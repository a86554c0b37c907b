"""AdamW's schedule, groups and state: by hand, and bitwise across a save."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from gspo.errors import DataError, RecipeError
from gspo.policy.optimizer import (
    OptimizerSettings,
    build_optimizer,
    load_optimizer,
    save_optimizer,
    set_learning_rate,
    steps_taken,
)


class Small(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(5, width)
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.norm(self.linear(self.embedding(ids)))).sum()


def settings(**changes):
    return OptimizerSettings(**({"learning_rate": 0.1, "weight_decay": 0.5} | changes))


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.tensor([steps_taken(optimizer) % 5, 3])).backward()
        optimizer.step()


def test_learning_rate_by_hand():
    rates = settings(learning_rate=1.0, schedule="cosine", warmup_steps=2, total_steps=6)
    quarter = 0.5 * (1 + math.cos(math.pi / 4))
    assert [rates.lr(step) for step in range(8)] == pytest.approx(
        [0.5, 1.0, 1.0, quarter, 0.5, 1 - quarter, 0.0, 0.0]
    )
    floor = settings(learning_rate=2.0, schedule="cosine", total_steps=4, final_fraction=0.25)
    assert [floor.lr(0), floor.lr(4), floor.lr(99)] == pytest.approx([2.0, 0.5, 0.5])
    flat = settings(learning_rate=3.0, warmup_steps=3)
    assert [flat.lr(step) for step in range(5)] == pytest.approx([1, 2, 3, 3, 3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": math.nan}, r"optimizer\.learning_rate is nan"),
        ({"betas": (0.9, 1.0)}, r"optimizer\.betas"),
        ({"max_grad_norm": 0.0}, r"optimizer\.max_grad_norm is 0.0"),
        ({"schedule": "cosine"}, r"optimizer\.total_steps is None; the cosine schedule needs"),
        ({"schedule": "cosine", "warmup_steps": 9, "total_steps": 9}, "above optimizer.warmup"),
    ],
)
def test_impossible_settings_are_named(changes, message):
    with pytest.raises(RecipeError, match=message):
        settings(**changes)


def test_an_unknown_schedule_is_refused():
    given = settings()
    object.__setattr__(given, "schedule", "linear")  # past the test suite's own type check
    with pytest.raises(RecipeError, match=r"schedule is 'linear'; wanted 'constant' or 'cosine'"):
        given.__post_init__()


def test_only_weight_matrices_decay():
    groups = build_optimizer(Small(), settings()).param_groups
    decay = {name: group["weight_decay"] for group in groups for name in group["param_names"]}
    assert decay == {
        "embedding.weight": 0.0,  # and with it the tied head
        "linear.weight": 0.5,
        "linear.bias": 0.0,
        "norm.weight": 0.0,
        "norm.bias": 0.0,
    }


def test_frozen_parameters_stay_out_and_a_frozen_model_is_refused():
    model = Small()
    model.linear.requires_grad_(False)
    groups = build_optimizer(model, settings()).param_groups
    assert [name for group in groups for name in group["param_names"]] == [
        "embedding.weight",
        "norm.weight",
        "norm.bias",
    ]
    model.requires_grad_(False)
    with pytest.raises(RecipeError, match="no trainable parameter"):
        build_optimizer(model, settings())


def test_resuming_is_bitwise_the_straight_run_and_weights_alone_are_not(tmp_path):
    straight = Small()
    optimizer = build_optimizer(straight, settings())
    train(straight, optimizer, 2)
    save_optimizer(optimizer, tmp_path)
    halfway = {name: tensor.clone() for name, tensor in straight.state_dict().items()}
    train(straight, optimizer, 2)

    resumed, weights_only = Small(), Small()
    for model, restore in ((resumed, True), (weights_only, False)):
        model.load_state_dict(halfway)
        again = build_optimizer(model, settings())
        if restore:
            load_optimizer(again, tmp_path)
            assert steps_taken(again) == 2
        train(model, again, 2)
    pairs = zip(straight.parameters(), resumed.parameters(), weights_only.parameters(), strict=True)
    for one, two, other in pairs:
        assert torch.equal(one, two)
        assert not torch.equal(one, other)


def test_state_before_the_first_step_round_trips(tmp_path):
    save_optimizer(build_optimizer(Small(), settings()), tmp_path)
    model = Small()
    optimizer = build_optimizer(model, settings())
    train(model, optimizer, 1)
    load_optimizer(optimizer, tmp_path)
    assert steps_taken(optimizer) == 0


@pytest.fixture
def saved(tmp_path):
    model = Small()
    optimizer = build_optimizer(model, settings())
    train(model, optimizer, 1)
    save_optimizer(optimizer, tmp_path)
    return tmp_path


def test_the_files_hold_plain_tensors_and_json(saved):
    assert sorted(path.name for path in saved.iterdir()) == [
        "optimizer.json",
        "optimizer.safetensors",
    ]
    about = json.loads((saved / "optimizer.json").read_text())
    assert about["steps_taken"] == 1
    assert about["parameters"]["linear.weight"] == [3, 3]


def test_another_parameter_set_is_refused_by_name_and_changes_nothing(saved):
    frozen = Small()
    frozen.norm.weight.requires_grad_(False)
    cases = [
        (Small(width=4), r"'linear.weight' has shape \(4, 4\).*\(3, 3\)"),
        (frozen, "1 parameters that are not trained here, first 'norm.weight'"),
    ]
    for model, message in cases:
        optimizer = build_optimizer(model, settings())
        with pytest.raises(DataError, match=message):
            load_optimizer(optimizer, saved)
        assert steps_taken(optimizer) == 0
    more = Small()
    more.extra = nn.Linear(2, 2)
    with pytest.raises(DataError, match=r"nothing for parameter 'extra.weight'"):
        load_optimizer(build_optimizer(more, settings()), saved)


def test_a_missing_slot_is_refused_by_name(saved):
    tensors = load_file(saved / "optimizer.safetensors")
    del tensors["exp_avg_sq:norm.bias"]
    save_file(tensors, saved / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"lacks 1 of 15 tensors, first 'exp_avg_sq:norm.bias'"):
        load_optimizer(build_optimizer(Small(), settings()), saved)


@pytest.mark.parametrize("name", ["optimizer.json", "optimizer.safetensors"])
def test_missing_and_broken_files_are_named(saved, name):
    optimizer = build_optimizer(Small(), settings())
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="cannot be read"):
        load_optimizer(optimizer, saved)
    (saved / name).unlink()
    with pytest.raises(DataError, match=f"has no {name}"):
        load_optimizer(optimizer, saved)


def test_every_group_gets_the_learning_rate():
    optimizer = build_optimizer(Small(), settings())
    set_learning_rate(optimizer, 0.125)
    assert [group["lr"] for group in optimizer.param_groups] == [0.125, 0.125]
