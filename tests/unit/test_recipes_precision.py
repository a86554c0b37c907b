"""engine.dtype: what it comes to depends on what is measured."""

from __future__ import annotations

import pytest

from gspo.engines.packed import Rates
from gspo.policy.model import tiny_model
from gspo.recipes import build, precision
from gspo.recipes.load import recipe_from
from gspo.recipes.precision import sampling_precision

SHAPE = {"hidden": 32, "layers": 1, "heads": 4, "kv_heads": 2, "max_positions": 64}


def recipe(dtype: str, **engine):
    return recipe_from(
        {
            "data": {"task": "addition"},
            "rollout": {"prompts": 4, "group": 8},
            "engine": {"dtype": dtype, **engine},
        }
    )


@pytest.fixture
def model():
    return tiny_model(17, seed=0, intermediate=48, **SHAPE)


def measured(monkeypatch, float32: float, bfloat16: float) -> list[tuple[int, int, int]]:
    asked = []

    def measure(*shape):
        asked.append(shape)
        return Rates(float32, bfloat16)

    monkeypatch.setattr(precision, "measure_rates", measure)
    return asked


def test_the_models_own_precision_needs_no_measuring(monkeypatch, model) -> None:
    asked = measured(monkeypatch, 100.0, 300.0)
    assert sampling_precision(recipe("model"), model) is None
    assert asked == []


def test_where_it_is_faster_it_is_used(monkeypatch, model) -> None:
    """At the model's shape and the rows that are decoded together: 4 prompts x 8, at most 512."""
    asked = measured(monkeypatch, 100.0, 300.0)
    found = sampling_precision(recipe("bfloat16"), model)
    assert found is not None
    assert asked == [(32, 48, 32)]
    assert found.dtype == "bfloat16"
    assert found.evidence()["gflops"] == {"float32": 100.0, "bfloat16": 300.0}
    assert "32 rows by 32 x 48: 300 GFLOP/s in bfloat16, 100 in float32" in found.text
    sampling_precision(recipe("bfloat16", max_batch=16), model)
    assert asked[1] == (32, 48, 16)


def test_where_it_is_not_sampling_stays_as_it_is_and_says_so(monkeypatch, model) -> None:
    measured(monkeypatch, 100.0, 110.0)
    found = sampling_precision(recipe("bfloat16"), model)
    assert found is not None
    assert found.dtype == "model"
    assert "gains too little here" in found.text
    assert "\n" not in found.text


def test_its_log_probs_are_never_old_ones() -> None:
    assert build.build_plan(recipe("model")).engine_old_logp
    assert not build.build_plan(recipe("bfloat16")).engine_old_logp
