"""Columns as people have them: TRL's layout, verl's, and names of their own."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gspo.data.files import Row
from gspo.data.layouts import named_columns
from gspo.data.prompts import load_prompts, repeated
from gspo.errors import DataError

VERL = {
    "data_source": "openai/gsm8k",
    "prompt": [{"role": "user", "content": "6*7?"}],
    "ability": "math",
    "reward_model": {"style": "rule", "ground_truth": "42"},
    "extra_info": {"split": "train", "index": 0},
}


def row(**values):
    return Row(1, "data:1", values)


@pytest.fixture
def load(tmp_path):
    """Rows as data.jsonl, loaded."""

    def write_and_load(rows, **settings):
        path = tmp_path / "data.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
        return load_prompts(path, **settings)

    return write_and_load


def test_verls_layout_as_it_is(load, tmp_path):
    (prompt,) = load([VERL]).prompts
    assert (prompt.answer, prompt.source) == ("42", "openai/gsm8k")
    assert prompt.messages == VERL["prompt"]
    # What verl's functions are given: data_source and extra_info, each under its own name.
    assert prompt.columns == {k: v for k, v in VERL.items() if k != "prompt"}
    pq.write_table(pa.Table.from_pylist([VERL]), tmp_path / "data.parquet")
    assert load_prompts(tmp_path / "data.parquet").prompts == [prompt]


def test_trls_layout_as_it_is(load):
    rows = [
        {"prompt": "6*7?", "solution": "42", "difficulty": 3},
        {"prompt": [{"role": "user", "content": "1+1?"}], "solution": "2", "difficulty": 1},
    ]
    first, second = load(rows).prompts
    assert (first.text, first.answer) == ("6*7?", None)
    assert first.columns == {"solution": "42", "difficulty": 3}
    assert second.messages == rows[1]["prompt"]


def test_names_of_ones_own():
    given = row(question="6*7?", solution="42", tests=[1], uid=7)
    columns = {"prompt": "question", "answer": "solution", "id": "uid"}
    assert named_columns(given, columns) == {
        "prompt": "6*7?",
        "answer": "42",
        "id": 7,
        "tests": [1],
    }


def test_a_value_inside_another_column():
    given = row(prompt="x", meta={"gold": {"value": 0}}, **{"a.b": "dotted"})
    found = named_columns(given, {"answer": "meta.gold.value"})
    assert found["answer"] == 0
    assert found["meta"] == {"gold": {"value": 0}}
    assert named_columns(given, {"answer": "a.b"})["answer"] == "dotted"


def test_an_answer_column_goes_before_verls():
    assert named_columns(row(answer="1", **VERL), {})["answer"] == "1"
    assert "answer" not in named_columns(row(prompt="x"), {})


@pytest.mark.parametrize(
    ("values", "columns", "message"),
    [
        ({"q": "x"}, {"prompt": "qq"}, r"data:1: no column 'qq' \(data\.columns\.prompt\)"),
        ({"q": "x", "m": 3}, {"prompt": "q", "answer": "m.n"}, r"no column 'm\.n'.*has m, q"),
        ({"q": None}, {"prompt": "q"}, "no column 'q'"),
        ({"q": "x", "prompt": "y"}, {"prompt": "q"}, "takes 'q' as 'prompt', and the row has a"),
    ],
)
def test_what_a_map_can_have_wrong(values, columns, message):
    with pytest.raises(DataError, match=message):
        named_columns(row(**values), columns)


def test_a_clash_is_solved_as_the_message_says():
    columns = {"prompt": "q", "old_prompt": "prompt"}
    assert named_columns(row(q="x", prompt="y"), columns) == {"prompt": "x", "old_prompt": "y"}


def test_an_answer_missing_in_some_rows_is_an_error_naming_the_row(load):
    rows = [{"prompt": f"p{k}", **({"answer": k} if k != 7 else {})} for k in range(10)]
    for ordered, line in ((rows, 8), (rows[7:], 1)):
        with pytest.raises(DataError, match=rf":{line}: no column 'answer'; the row has prompt"):
            load(ordered)
    with pytest.raises(DataError, match=r":8: no column 'answer'; the row has answer, prompt"):
        load([{"answer": None, **entry} for entry in rows])


@pytest.mark.parametrize(
    "answer", [0, 0.5, False, [1, 2], {"a": 1}, ["x"], "007", "2024-01-01", 10**30]
)
def test_an_answer_stays_what_it_is(load, answer):
    (prompt,) = load([{"prompt": "x", "answer": answer}]).prompts
    assert prompt.answer == answer
    assert type(prompt.answer) is type(answer)


def test_mixed_types_do_not_depend_on_the_order(load):
    values = [3, "3", [3], *[None] * 1000, "text", 2.5, "2024-01-01"]
    rows = [{"prompt": f"p{k}", "value": value} for k, value in enumerate(values)]
    wanted = {p.text: p.columns for p in load(rows).prompts}
    random.Random(1).shuffle(rows)
    assert {p.text: p.columns for p in load(rows).prompts} == wanted
    assert wanted["p5"] == {}


# -- what is kept, dropped, and worth a look


BAD = [
    {"prompt": "a", "answer": "1"},
    {"prompt": " ", "answer": "2"},
    {"prompt": "b"},
    {"prompt": "c", "answer": ""},
    {"prompt": [], "answer": "3"},
    {"prompt": [{"role": "user"}], "answer": "3"},
    {"prompt": [{"role": "assistant", "content": "x"}], "answer": "3"},
    {"prompt": "d", "answer": "4", "id": "x"},
    {"prompt": "e", "answer": "5", "id": "x"},
    {"prompt": "", "answer": "2"},
    {"prompt": "a", "answer": "1"},
    {"prompt": "a", "answer": "9"},
]


def test_bad_rows_are_dropped_by_reason_with_the_first_of_each(load):
    loaded = load(BAD, bad_rows="drop")
    assert [(p.text, p.answer) for p in loaded.prompts] == [
        ("a", "1"),
        ("d", "4"),
        ("a", "1"),
        ("a", "9"),
    ]
    counts = {entry.what: entry.count for entry in loaded.report.dropped}
    assert counts == {
        "the prompt is empty": 2,
        "the answer is empty": 1,
        "the prompt is neither text nor messages": 1,
        "a message without role or content": 1,
        "the last message is the assistant's": 1,
        "the id was given before": 1,
        "no column 'answer'": 1,
    }
    head, first, *_, note, other = loaded.report.lines()
    assert head.endswith("data.jsonl: 12 read, 4 kept, 8 dropped")
    assert first.startswith("  dropped 2: the prompt is empty; first ")
    assert ":2: the prompt is ' '" in first
    assert note.startswith("  note 1: the prompt came before; first ")
    assert note.endswith(f"data.jsonl:11, as {head.split(': ')[0]}:1")
    assert "  note 1: the prompt came before, with another answer" in other
    record = json.loads(json.dumps(loaded.report.record()))
    assert (record["rows"], record["kept"], record["dropped"][0]["count"]) == (12, 4, 2)


def test_the_first_bad_row_is_an_error_by_default(load):
    with pytest.raises(DataError, match=r":2: the prompt is ' '"):
        load(BAD)


def test_nothing_left_says_why(load):
    with pytest.raises(DataError, match=r"no row is left:\n.*2 read, 0 kept, 2 dropped\n  dropped"):
        load([{"prompt": ""}, {"prompt": " "}], bad_rows="drop")


def test_what_breaks_a_whole_file_is_an_error_all_the_same(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"prompt": "a"}\n{"prompt"\n')
    with pytest.raises(DataError, match=r":2: not valid JSON"):
        load_prompts(path, bad_rows="drop")


def test_nulls_in_messages_are_those_that_tables_fill_in(load):
    messages = [{"role": "user", "content": "x", "tool_calls": None}]
    (prompt,) = load([{"prompt": messages}]).prompts
    assert prompt.messages == [{"role": "user", "content": "x"}]


def test_prompts_of_two_files_are_compared_by_content(load):
    train = load([{"prompt": "a", "id": 1}, {"prompt": "b", "id": 2}]).prompts
    other = load([{"prompt": "b", "id": 7}, {"prompt": "c", "id": 1}]).prompts
    assert repeated(other, train) == ["7"]
