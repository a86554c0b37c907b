"""`gspo verify`."""

import json

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app


@pytest.fixture
def verify(tmp_path):
    """Write rows and judge them."""

    def run(kind, rows, *options):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return CliRunner().invoke(build_app(), ["verify", kind, str(path), *options])

    return run


def verdicts(result):
    assert result.exit_code == 0, result.stderr
    return [(v["id"], v["reward"], v["failure"]) for v in json.loads(result.stdout)["verdicts"]]


def test_exact_in_the_order_of_the_file(verify):
    rows = [
        {"id": "z", "answer": "46", "completion": "#### 46.0"},
        {"id": 7, "answer": 46, "completion": "46"},
        {"answer": "46", "completion": "####46"},
    ]
    assert verdicts(verify("exact", rows, "--marker", "####", "--json")) == [
        ("z", 1, None),
        (7, 0, None),
        (3, 1, None),
    ]
    assert verdicts(verify("exact", rows, "--json"))[1] == (7, 1, None)


def test_the_tasks(verify):
    rows = [
        {"id": 1, "answer": "5773", "completion": "760=13;>5773"},
        {"id": 2, "answer": 5773, "completion": ">5773"},
        {"id": 3, "answer": "5773", "completion": "5773"},
    ]
    assert [reward for _, reward, _ in verdicts(verify("addition", rows, "--json"))] == [1, 1, 0]
    rows = [
        {"id": 1, "answer": 46, "numbers": [3, 7, 25], "completion": "25+(3*7)"},
        {"id": 2, "answer": 46, "numbers": [3, 7, 25], "completion": "25+21"},
    ]
    assert [reward for _, reward, _ in verdicts(verify("countdown", rows, "--json"))] == [1, 0]


FUNCTION = """
def reward(completion, tests, **columns):
    print("chatter")
    return 1 / len(completion) * tests
"""


def test_a_function_with_its_columns_and_its_failures(verify, tmp_path):
    (tmp_path / "mine.py").write_text(FUNCTION)
    option = ["--function", f"{tmp_path}/mine.py:reward", "--json"]
    rows = [
        {"id": "a", "tests": 2, "completion": "xxxx"},
        {"id": "b", "tests": 2, "completion": ""},
        {"id": "c", "completion": "x"},
        {"id": "d", "tests": 1, "completion": "x"},
    ]
    result = verify("function", rows, *option)
    (a, b, c, d) = verdicts(result)
    assert (a, d) == (("a", 0.5, None), ("d", 1, None))
    assert b == ("b", None, "ZeroDivisionError: division by zero")
    assert c[1] is None
    assert "needs ['tests'], which prompt c has not" in c[2]
    assert "chatter" not in result.stdout
    assert "chatter" in result.stderr


def test_mathematics(verify):
    rows = [
        {"id": 1, "answer": "1/2", "completion": r"\boxed{\frac{1}{2}}"},
        {"id": 2, "answer": "1/2", "completion": "0.5"},
        {"id": 3, "answer": "x + * 2", "completion": "4"},
        {"id": 4, "answer": "1/3", "completion": "#### 0.3333333"},
    ]
    plain = verdicts(verify("math", rows, "--json"))
    assert [reward for _, reward, _ in plain] == [1, 1, None, 1]
    assert "cannot be read as mathematics" in plain[2][2]
    strict = verify("math", rows, "--answer-in", "hash", "--exact-form", "--json")
    assert [reward for _, reward, _ in verdicts(strict)] == [0, 0, None, 0]


def test_the_form(verify):
    rows = [{"completion": "<think>a</think><answer>b</answer>"}, {"completion": "b"}]
    assert [reward for _, reward, _ in verdicts(verify("format", rows, "--json"))] == [1, 0]
    result = verify("regex", rows, "--pattern", "^b", "--json")
    assert [reward for _, reward, _ in verdicts(result)] == [0, 1]


def test_code_with_reasons(verify):
    square = "```python\ndef f(x): return x * x\n```"
    rows = [
        {"id": "right", "tests": ["assert f(3) == 9"], "completion": square},
        {"id": "wrong", "tests": ["assert f(3) == 6"], "completion": square},
        {"id": "none", "tests": "assert f(3) == 9", "completion": "x squared"},
        {
            "id": "script",
            "tests": {"inputs": ["3"], "outputs": ["9"]},
            "completion": "```\n1 / 0\n```",
        },
        {"id": "answer", "answer": "assert f(3) == 9", "completion": square},
        {"id": "no tests", "completion": square},
    ]
    result = verify("code", rows, "--json")
    assert [(r["id"], r["reward"], r["reason"]) for r in json.loads(result.stdout)["verdicts"]] == [
        ("right", 1, None),
        ("wrong", 0, "wrong: f(3): gave 9"),
        ("none", 0, "format: no program in the response"),
        ("script", 0, "crash: input '3': raised ZeroDivisionError: division by zero"),
        ("answer", 1, None),
        ("no tests", None, None),
    ]
    assert "wanted assert lines" in verdicts(result)[-1][2]
    table = verify("code", rows[:2]).stdout.splitlines()
    assert table == [
        "id     reward  failure  reason",
        "right       1  -        -",
        "wrong       0  -        wrong: f(3): gave 9",
    ]


def test_a_function_with_a_limit(verify, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def f(completion):\n    while completion == 'x': pass\n    return 1\n"
    )
    rows = [{"id": 1, "completion": "x"}, {"id": 2, "completion": "y"}]
    result = verify(
        "function", rows, "--function", f"{tmp_path}/mine.py:f", "--limit-s", "1", "--json"
    )
    assert verdicts(result) == [(1, None, "timeout: killed after 1 s"), (2, 1, None)]


def test_a_table_for_people(verify):
    result = verify("exact", [{"id": "a\x1b", "answer": "1", "completion": "1"}])
    assert result.stdout.splitlines() == ["id  reward  failure", "a␛       1  -"]


@pytest.mark.parametrize(
    ("kind", "rows", "options", "code", "words"),
    [
        ("exact", [{"id": 1, "answer": "x"}], [], 3, "rows.jsonl:1: completion is None"),
        ("exact", [[1]], [], 3, "rows.jsonl:1"),
        ("exact", [], [], 3, "holds no row"),
        ("exact", [], ["--function", "f.py:g"], 2, "--function is of kind function, not of exact"),
        ("addition", [], ["--marker", "#"], 2, "--marker is of kind exact, not of addition"),
        ("function", [], [], 2, "needs --function file.py:name"),
        ("regex", [], [], 2, "needs --pattern TEXT"),
        ("math", [], ["--answer-in", "end"], 2, "--answer-in is 'end'"),
        ("exact", [], ["--limit-s", "1"], 2, "--limit-s is of kind function or math"),
        ("function", [], ["--function", "no.py:f"], 2, "there is no file"),
        ("maths", [], [], 2, "Invalid value"),
    ],
)
def test_what_cannot_be_judged(verify, kind, rows, options, code, words):
    result = verify(kind, rows, *options)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_not_there():
    result = CliRunner().invoke(build_app(), ["verify", "exact", "nowhere.jsonl"])
    assert result.exit_code == 3
    assert "nowhere.jsonl is not there" in result.stderr
