"""Files, folders and hub data sets: the same rows give the same prompts, whatever holds them."""

import datetime
import decimal
import json

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gspo.data import sources
from gspo.data.prompts import load_prompts
from gspo.data.tables import plain
from gspo.errors import DataError

ROWS = [
    {
        "prompt": "1+1?",
        "answer": "2",
        "tests": [{"in": [1, 2], "out": 3}],
        "hard": True,
        "hint": None,
    },
    {
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}],
        "answer": "4",
        "tests": [],
        "hard": False,
        "hint": "x",
    },
]
TEXT_ROWS = [{"prompt": f"{k}+{k}?", "answer": str(2 * k)} for k in range(4)]
CHAT_ROWS = [{**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in TEXT_ROWS]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def prompts(source, **settings):
    return load_prompts(source, **settings).prompts


def contents(source, **settings):
    """Everything but where a row lay: the source's name."""
    found = prompts(source, **settings)
    return [(p.id, p.text, p.messages, p.answer, dict(p.columns)) for p in found]


def arrow_file(path, rows, form):
    table = pa.Table.from_pylist(rows)
    new = {"stream": pa.ipc.new_stream, "file": pa.ipc.new_file}[form]
    with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("rows", [TEXT_ROWS, CHAT_ROWS], ids=["text", "messages"])
def test_every_format_gives_the_prompts_of_jsonl(tmp_path, rows):
    wanted = contents(jsonl(tmp_path / "data.jsonl", rows))
    (tmp_path / "list.json").write_text(json.dumps(rows, indent=2))
    jsonl(tmp_path / "lines.json", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    pd.DataFrame(rows).to_parquet(tmp_path / "pandas.parquet")
    arrow_file(tmp_path / "stream.arrow", rows, "stream")
    arrow_file(tmp_path / "file.arrow", rows, "file")
    datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / "saved"))
    files = ["list.json", "lines.json", "data.parquet", "pandas.parquet", "stream.arrow"]
    for name in [*files, "file.arrow", "saved"]:
        assert contents(tmp_path / name) == wanted, name


def test_a_table_loses_only_what_it_filled_in(tmp_path):
    """Prompts of text and of messages cannot share a table's column; JSONL holds both."""
    rows = [{**row, "prompt": "x"} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    assert contents(tmp_path / "data.parquet") == contents(jsonl(tmp_path / "data.jsonl", rows))
    assert [p.columns.get("hint") for p in prompts(tmp_path / "data.parquet")] == [None, "x"]
    assert len(prompts(jsonl(tmp_path / "mixed.jsonl", ROWS))) == 2


def test_a_byte_order_mark_and_separators_in_a_json_list(tmp_path):
    text = "one\u2028two\u2029three\x85four"
    body = json.dumps([{"prompt": text, "answer": "1"}], ensure_ascii=False)
    (tmp_path / "data.json").write_bytes(b"\xef\xbb\xbf" + body.encode())
    assert prompts(tmp_path / "data.json")[0].text == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", r"data\.json row 1: the list holds a int"),
        ('[{"prompt": "x", "answer": 1e400}]', r"data\.json: not valid JSON: 1e400 is beyond"),
        ('[{"prompt": "x", "answer": "1"}', r"data\.json: not valid JSON"),
        ("[]", "holds no row"),
        ('{"prompt": ["a", "b"]}', r"data\.json:1: a message is 'a'"),
        ('{\n"prompt": "a"\n}', r"data\.json:1: not valid JSON"),
    ],
)
def test_what_a_json_file_can_have_wrong(tmp_path, content, message):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(DataError, match=message):
        load_prompts(tmp_path / "data.json")


@pytest.mark.parametrize("text", ['a,"1\nb,2\nc,3\n', '"a"b,1\n'], ids=["open", "behind"])
def test_a_csv_quote_that_is_wrong_swallows_no_rows(tmp_path, text):
    (tmp_path / "data.csv").write_text("prompt,answer\n" + text)
    with pytest.raises(DataError, match=r"data\.csv line"):
        prompts(tmp_path / "data.csv")


def test_nan_in_a_list_of_a_table_is_null(tmp_path):
    table = pa.table({"prompt": ["a"], "answer": ["1"], "scores": [[1.0, float("nan")]]})
    pq.write_table(table, tmp_path / "data.parquet")
    assert prompts(tmp_path / "data.parquet")[0].columns == {"scores": [1.0, None]}


def test_a_csv_field_may_be_longer_than_pythons_limit(tmp_path):
    document = "x" * 200_000
    (tmp_path / "data.csv").write_text(f"prompt,answer\n{document},1\n")
    assert prompts(tmp_path / "data.csv")[0].text == document


def test_tables_give_plain_python():
    given = {
        "tests": np.array([[1, 2], [3, 4]]),
        "score": np.float32(0.5),
        "flag": np.bool_(True),
        "day": datetime.datetime(2024, 1, 1, 12),
        "price": decimal.Decimal("1.10"),
        "pair": (1, np.int64(2)),
        "missing": float("nan"),
        "inside": {"kept": [None, 1], "gone": None},
    }
    wanted = {
        "tests": [[1, 2], [3, 4]],
        "score": 0.5,
        "flag": True,
        "day": "2024-01-01T12:00:00",
        "price": "1.10",
        "pair": [1, 2],
        "inside": {"kept": [None, 1]},
    }
    assert json.dumps(plain(given)) == json.dumps(wanted)


def test_an_answer_that_pandas_lost_is_no_answer(tmp_path):
    """NaN is pandas' null; a text column that says "NaN" is text."""
    frame = pd.DataFrame({"prompt": ["a", "b"], "answer": [1.5, None], "note": ["NaN", "x"]})
    frame.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"data\.parquet row 2: no column 'answer'"):
        load_prompts(tmp_path / "data.parquet")
    (first,) = prompts(tmp_path / "data.parquet", bad_rows="drop")
    assert (first.answer, first.columns) == (1.5, {"note": "NaN"})


def test_large_strings_maps_and_dictionaries_of_a_table(tmp_path):
    table = pa.table(
        {
            "prompt": pa.array(["a"], pa.large_string()),
            "answer": pa.array(["x"]).dictionary_encode(),
            "parts": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    (prompt,) = prompts(tmp_path / "data.parquet")
    assert (prompt.text, prompt.answer, prompt.columns) == ("a", "x", {"parts": {"k": 1}})


def test_text_that_is_no_utf8_inside_a_table_is_named(tmp_path):
    text = pa.array([b"\xe9"], pa.binary()).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"prompt": text, "answer": ["1"]}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"data\.parquet cannot be read after row 0"):
        load_prompts(tmp_path / "data.parquet")


def test_a_broken_arrow_file_is_named(tmp_path):
    (tmp_path / "data.arrow").write_bytes(b"not arrow at all, not by far")
    with pytest.raises(DataError, match=r"data\.arrow is no Arrow file"):
        load_prompts(tmp_path / "data.arrow")


# -- folders and hub names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data files as a hub repository holds them."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "set"
    place.mkdir()
    jsonl(place / "train.jsonl", CHAT_ROWS)
    jsonl(place / "test.jsonl", CHAT_ROWS[:1])
    return place


def test_a_folder_of_data_files_with_splits(folder):
    wanted = contents(folder / "train.jsonl")
    assert contents(folder) == wanted
    assert contents(folder, split="test") == wanted[:1]
    with pytest.raises(DataError, match="has no split 'tset'; did you mean 'test'"):
        load_prompts(folder, split="tset")


def test_a_saved_folder_with_splits(tmp_path):
    parts = {"train": datasets.Dataset.from_list(TEXT_ROWS)}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    assert len(prompts(tmp_path / "saved")) == 4
    with pytest.raises(DataError, match="has no split 'dev'; known are train"):
        load_prompts(tmp_path / "saved", split="dev")
    with pytest.raises(DataError, match=r"data\.subset is 'main', but a saved folder has none"):
        load_prompts(tmp_path / "saved", subset="main")


def test_a_hub_name_goes_through_datasets(monkeypatch):
    asked = []

    def load_dataset(name, subset):
        asked.append((name, subset))
        return datasets.DatasetDict({"train": datasets.Dataset.from_list(TEXT_ROWS)})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    loaded = load_prompts("openai/gsm8k", subset="main")
    assert asked == [("openai/gsm8k", "main")]
    assert loaded.report.lines() == ["openai/gsm8k: 4 read, 4 kept"]
    assert [p.answer for p in loaded.prompts] == ["0", "2", "4", "6"]


def test_a_hub_data_set_that_does_not_load_is_an_error_of_data(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    with pytest.raises(DataError, match="nobody/nothing is no file or folder here, and as a hub"):
        load_prompts("nobody/nothing")


@pytest.mark.parametrize("name", ["nowhere/train.jsonl", "./train.jsonl", "a b", "a/b/c"])
def test_what_looks_like_a_file_is_never_looked_up(monkeypatch, name):
    monkeypatch.setattr(sources, "_open", lambda *_: pytest.fail("looked up"))
    with pytest.raises(DataError, match="is not there|ends in"):
        load_prompts(name)


def test_a_file_has_neither_split_nor_subset(tmp_path):
    path = jsonl(tmp_path / "data.jsonl", TEXT_ROWS)
    with pytest.raises(DataError, match=r"data\.split is 'test', but .* is a file, which has none"):
        load_prompts(path, split="test")
