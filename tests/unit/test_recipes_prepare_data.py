"""From the data section to prompts with ids: limits, held-out prompts, what is said of them."""

import json

import pytest

from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError, RecipeError
from gspo.recipes.load import load_recipe
from gspo.recipes.prepare_data import prepare_data, prompt_limit

#: A file's recipe without a model to load: the tokenizer is handed over.
BASE = ["model.path=/m", "rollout.max_tokens=8", "rollout.prompts=1", "trainer.minibatches=1"]


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Writes rows to a.jsonl and held-out ones to b.jsonl, and prepares them."""
    monkeypatch.chdir(tmp_path)

    def run(rows, *settings, held_out=(), context=40):
        for name, part in (("a", rows), ("b", held_out)):
            text = "".join(json.dumps(row) + "\n" for row in part)
            (tmp_path / f"{name}.jsonl").write_text(text)
        more = ["data.eval_path=b.jsonl"] if held_out else []
        recipe = load_recipe("own-data", ["data.path=a.jsonl", *BASE, *more, *settings])
        return prepare_data(recipe, None, character_tokenizer("0123456789+="), context)

    return run


def row(prompt, **values):
    return {"prompt": prompt, "answer": "1", **values}


def notes(report):
    return [(entry.what, entry.count, entry.first) for entry in report.notes]


@pytest.mark.parametrize("settings", [[], ["data.max_prompt_tokens=32"]])
def test_the_limit_is_the_room_beside_a_response(prepared, settings):
    data = prepared([row("1" * 32), row("1" * 33, id="x")], *settings)
    assert [len(p.ids) for p in data.prompts] == [32]
    (report,) = data.reports
    assert (report.rows, report.kept, report.num_dropped) == (2, 1, 1)
    assert report.lines()[1] == "  dropped 1: longer than 32 tokens; first x (33 tokens)"


@pytest.mark.parametrize("length", [10, 16, 17, 400])
def test_error_and_drop_at_a_limit_of_16(prepared, length):
    rows = [row("1"), row("2" * length)]
    settings = ["data.max_prompt_tokens=16"]
    fits = length <= 16
    data = prepared(rows, *settings, "data.overlong=drop")
    assert len(data.prompts) == 1 + fits
    if fits:
        assert len(prepared(rows, *settings, "data.overlong=error").prompts) == 2
    else:
        with pytest.raises(DataError, match=rf"1 of 2 prompts are longer than 16 .*\({length}\)"):
            prepared(rows, *settings, "data.overlong=error")


def test_a_limit_beyond_the_models_room_is_an_error_not_a_smaller_limit(prepared):
    with pytest.raises(
        RecipeError, match=r"max_prompt_tokens is 33, but .* of 40 tokens leaves 32"
    ):
        prepared([row("1")], "data.max_prompt_tokens=33")
    with pytest.raises(RecipeError, match="no room for a prompt"):
        prompt_limit(load_recipe("own-data", BASE), 8)


def test_another_limit_is_measured_anew(prepared):
    rows = [row("1"), row("1" * 20)]
    assert len(prepared(rows, "data.max_prompt_tokens=20").prompts) == 2
    assert len(prepared(rows, "data.max_prompt_tokens=19").prompts) == 1


def test_held_out_prompts_that_are_trained_on_are_remarked_upon(prepared):
    train = [row(f"{k}+1=") for k in range(4)]
    data = prepared(train, held_out=[*train[:2], row("9+9=")])
    what = "held-out prompts are trained on too, so their pass rate is not that of new ones"
    first = data.held_out[0].id
    assert notes(data.reports[1]) == [(what, 2, first)]
    same = prepared(train, "data.eval_path=a.jsonl")
    assert notes(same.reports[1])[0][:2] == (what, 4)
    assert notes(prepared(train, held_out=[row("9+9=")]).reports[1]) == []


def test_only_the_first_held_out_prompts_are_used_and_this_is_said(prepared):
    held_out = [row(f"{k}+2=", id=k) for k in range(5)]
    data = prepared([row("1")], "evaluate.prompts=3", held_out=held_out)
    assert [p.id for p in data.held_out] == ["0", "1", "2"]
    assert data.reports[1].kept == 3
    assert notes(data.reports[1]) == [("not used, evaluate.prompts is smaller", 2, "3")]


def test_only_these_prompts(prepared, tmp_path):
    rows = [row(f"{k}+1=", id=k) for k in range(4)]
    (tmp_path / "kept.jsonl").write_text('{"id": 3}\n{"id": "1"}\n')
    data = prepared(rows, "data.only=kept.jsonl")
    assert [p.id for p in data.prompts] == ["1", "3"]
    assert data.reports[0].lines() == [
        "a.jsonl: 4 read, 2 kept, 2 dropped",
        "  dropped 2: not in kept.jsonl; first 0",
    ]
    (tmp_path / "kept.jsonl").write_text('{"id": "other"}\n')
    with pytest.raises(DataError, match=r"data\.only: none of the 1 ids in kept\.jsonl is one of"):
        prepared(rows, "data.only=kept.jsonl")


def test_columns_of_the_recipe_reach_the_loader(prepared):
    rows = [{"question": "1+1=", "solution": "2", "level": 3}]
    settings = ["data.columns={prompt: question, answer: solution}"]
    (prompt,) = prepared(rows, *settings).prompts
    assert (prompt.text, prompt.answer, prompt.columns) == ("1+1=", "2", {"level": 3})


def test_bad_rows_as_the_recipe_says(prepared):
    rows = [row("1"), row("")]
    assert prepared(rows, "data.bad_rows=drop").reports[0].num_dropped == 1
    with pytest.raises(DataError, match=r"a\.jsonl:2: the prompt is ''"):
        prepared(rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.columns.prompt=null"], r"data\.columns\.prompt is null; only answer may be"),
        (["data.bad_rows=skip"], "wanted 'error' or 'drop'"),
        (["data.refresh={every: 0}"], r"data\.refresh\.every is 0; wanted at least 1"),
        (["data.refresh={}"], r"data\.refresh\.every is missing"),
        (["rollout.dynamic_sampling={max_factor: 1}"], "max_factor is 1; wanted a number above 1"),
        (["rollout.length_schedule={start: 9, steps: 5}"], "is 9, more than the 8 it grows to"),
        (["data.system_prompt=x"], r"did you mean 'data\.chat\.system'"),
        (["data.prompt_key=x"], r"did you mean 'data\.columns'"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(RecipeError, match=message):
        load_recipe("own-data", [*BASE, *settings])


def test_a_gym_task_needs_a_model_with_a_tokenizer():
    task = ["data.task=reasoning_gym/chain_sum", "verifier={}"]
    with pytest.raises(RecipeError, match=r"coldstart needs a task .* but reasoning_gym/chain_sum"):
        load_recipe("demo", task)
    recipe = load_recipe("own-data", [*BASE, *task, "data.options={min_terms: 2, weights: [1, 2]}"])
    assert recipe.data.options == {"min_terms": 2, "weights": [1, 2]}
    with pytest.raises(RecipeError, match=r"data\.options\.digits is \[4\]"):
        load_recipe("demo", ["data.options.digits=[4]"])
