"""The plan beside what bench/plan.py measured: still the same plan, within its fifth, on its page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.plan import ALLOWED, COMMON, RESULTS, SETTINGS, Setting, table
from gspo.plan.memory import Request, plan
from gspo.plan.shape import shape_of as model_shape
from gspo.policy.model import tiny_config
from gspo.recipes.build import shape_of
from gspo.recipes.load import load_recipe
from tests.docs.pages import ROOT

ROWS: list[dict[str, Any]] = json.loads(RESULTS.read_text())["rows"]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_plan_is_still_the_one_that_was_measured(setting: Setting):
    (row,) = (row for row in ROWS if row["name"] == setting.name)
    data = f"data={{path: prompts.jsonl, max_prompt_tokens: {setting.prompt}}}"
    more = [data, "verifier.kind=exact", "model.max_positions=4096", "model.tokenizer=not-read"]
    recipe = load_recipe("demo", [*COMMON, *more, *setting.overrides()])
    config = tiny_config(setting.words, **shape_of(recipe.model))
    planned = plan(Request(recipe=recipe, shape=model_shape(config)))
    assert planned.parts == row["planned"]["parts"]
    assert planned.total == pytest.approx(row["measured"]["peak"], rel=ALLOWED)


def test_settings_span_what_was_asked_for():
    sizes = [row["num_parameters"] / 1e6 for row in ROWS]
    assert len(ROWS) >= 4
    assert min(sizes) < 35
    assert max(sizes) > 130


def test_the_table_of_the_page_is_that_of_the_results():
    assert table(ROWS) in (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
