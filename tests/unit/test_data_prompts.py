"""Rows of files to prompts: what files have wrong is named, nothing is dropped or changed."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gspo.data.prompts import load_prompts
from gspo.errors import DataError

ROWS = [{"prompt": f"What is {k}+{k}?", "answer": str(2 * k), "level": k} for k in range(1, 6)]


def lines(rows):
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


@pytest.fixture
def load(tmp_path):
    """Write bytes, text or rows as data.jsonl and load it."""

    def write_and_load(content, **settings):
        path = tmp_path / "data.jsonl"
        if isinstance(content, list):
            content = lines(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_prompts(path, **settings).prompts

    return write_and_load


def test_a_row_by_hand(load):
    (prompt,) = load([{"prompt": "What is 6*7?", "answer": 42, "tests": ["a"], "none": None}])
    assert (prompt.text, prompt.answer, prompt.ids) == ("What is 6*7?", 42, ())
    assert prompt.columns == {"tests": ["a"]}
    assert prompt.source == "data"
    assert prompt.id == "1-0e69f6ae"


def test_columns_are_named_by_the_recipe(load):
    (prompt,) = load(
        [{"q": "6*7?", "gold": "42", "id": 9}], columns={"prompt": "q", "answer": "gold"}
    )
    assert (prompt.id, prompt.text, prompt.answer, prompt.columns) == ("9", "6*7?", "42", {})
    (prompt,) = load([{"prompt": "6*7?", "answer": "42"}], columns={"answer": None})
    assert (prompt.answer, prompt.columns) == (None, {"answer": "42"})


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "open"])
def test_every_record_is_read(load, count, mark, end, last):
    records = [json.dumps(row).encode() for row in ROWS[:count]]
    content = mark + (end + b"  " + end).join(records) + (end if last else b"")
    assert [p.answer for p in load(content)] == [row["answer"] for row in ROWS[:count]]


def test_a_line_separator_inside_text_does_not_end_the_line(load):
    text = "one\u2028two\u0085three\x0bfour"
    (prompt,) = load(json.dumps({"prompt": text, "answer": "1"}, ensure_ascii=False))
    assert prompt.text == text


def test_values_stay_what_they_are_in_any_order(load):
    values = [3, "3", [3], {"a": None}, "2024-01-01", True, 1.5]
    rows = [{"prompt": f"p{k}", "answer": "x", "value": value} for k, value in enumerate(values)]
    for ordered in (rows, rows[::-1]):
        found = {p.text: p.columns["value"] for p in load(ordered)}
        assert found == {row["prompt"]: row["value"] for row in rows}
        assert [type(found[f"p{k}"]) for k in range(7)] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("bad_line", "message"),
    [
        (b'{"prompt": "x", "answer"', r"data\.jsonl:3: not valid JSON"),
        (b'{"prompt": "caf\xe9", "answer": "1"}', r"data\.jsonl:3: byte 0xe9 at place 15"),
        (b"[1, 2]", r"data\.jsonl:3: the line holds a list; wanted a JSON object"),
        (b'{"prompt": "x", "answer": NaN}', r"data\.jsonl:3: .*NaN is no JSON number"),
        (b'{"prompt": "x", "answer": 1e400}', r"data\.jsonl:3: .*1e400 is beyond"),
        (b'{"prompt": "\\ud800", "answer": "1"}', r"data\.jsonl:3: .*surrogates not allowed"),
        (b"[" * 100_000, r"data\.jsonl:3: not valid JSON"),
        (b'{"prompt": "x"}', r"data\.jsonl:3: no column 'answer'; the row has prompt"),
        (b'{"prompt": "x", "answer": null}', r"data\.jsonl:3: no column 'answer'"),
        (b'{"prompt": "x", "answer": " "}', r"data\.jsonl:3: column 'answer' is empty"),
        (b'{"answer": "x"}', r"data\.jsonl:3: no column 'prompt'; the row has answer"),
        (b"{}", r"data\.jsonl:3: no column 'prompt'; the row has none"),
        (b'{"prompt": "", "answer": "1"}', r"data\.jsonl:3: the prompt is ''"),
        (b'{"prompt": "  ", "answer": "1"}', r"data\.jsonl:3: the prompt is '  '"),
        (b'{"prompt": [], "answer": "1"}', r"data\.jsonl:3: the prompt is \[\]"),
        (b'{"prompt": 3, "answer": "1"}', r"data\.jsonl:3: the prompt is 3; wanted text or a"),
        (b'{"prompt": ["hi"], "answer": "1"}', r"data\.jsonl:3: a message is 'hi'"),
        (
            b'{"prompt": [{"role": "user", "content": " "}], "answer": "1"}',
            r"data\.jsonl:3: the prompt is ' '",
        ),
        (
            b'{"prompt": [{"role": "assistant", "content": "x"}], "answer": "1"}',
            r"data\.jsonl:3: the last message's role is 'assistant'",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(load, bad_line, message):
    good = json.dumps(ROWS[0]).encode()
    with pytest.raises(DataError, match=message):
        load(good + b"\n\n" + bad_line + b"\n" + good)


def test_wrong_encodings_are_errors(load):
    with pytest.raises(DataError, match=r":1: byte 0xff at place 0 is not UTF-8"):
        load(lines(ROWS).encode("utf-16"))
    with pytest.raises(DataError, match=r":1: byte 0x8b at place 1 is not UTF-8.*uncompressed"):
        load(b"\x1f\x8b\x08\x00rest")


def test_ids(load):
    rows = [{"prompt": "same", "answer": "1"}] * 2
    first, second = load(rows)
    assert first.id != second.id
    assert [p.id for p in load(rows)] == [first.id, second.id]
    with pytest.raises(DataError, match=r":2: id '7' was given before, at .*data\.jsonl:1"):
        load([{"id": 7, **rows[0]}, {"id": "7", **rows[0]}])


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_no_data_is_an_error(load, content):
    with pytest.raises(DataError, match="holds no row"):
        load(content)


def test_a_missing_file_and_an_unknown_kind(tmp_path):
    with pytest.raises(DataError, match=r"absent\.jsonl is not there"):
        load_prompts(tmp_path / "absent.jsonl")
    with pytest.raises(
        DataError,
        match=r"ends in '\.pkl'; wanted one of \.jsonl, \.json, \.csv, \.parquet, \.arrow",
    ):
        load_prompts(tmp_path / "data.pkl")


def test_messages_are_kept_for_the_template(load):
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": "6*7?"}]
    (prompt,) = load([{"prompt": messages, "answer": "42"}])
    assert (prompt.messages, prompt.text) == (messages, "")


def test_parquet_gives_what_jsonl_gives(load, tmp_path):
    rows = [
        {
            "prompt": [{"role": "user", "content": "6*7?", "name": "ann"}],
            "answer": "42",
            "tests": [{"in": [1, 2], "out": 3}],
            "hard": True,
            "hint": None,
        },
        {
            "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "1+1?"}],
            "answer": "2",
            "tests": [],
            "hard": False,
            "hint": "x",
        },
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    assert load_prompts(tmp_path / "data.parquet").prompts == load(rows)


def test_csv_guesses_no_types(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes('\ufeffprompt,answer,day,note\n"a, ""b""\nc",007,2024-01-01,\n'.encode())
    (prompt,) = load_prompts(path).prompts
    assert (prompt.text, prompt.answer) == ('a, "b"\nc', "007")
    assert prompt.columns == {"day": "2024-01-01"}
    path.write_text("prompt,answer\nx,1\ny\n")
    with pytest.raises(DataError, match=r"data\.csv row 2: the number of fields"):
        load_prompts(path)


def test_a_broken_parquet_file_is_named(tmp_path):
    (tmp_path / "data.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(DataError, match=r"data\.parquet is no Parquet file"):
        load_prompts(tmp_path / "data.parquet")
