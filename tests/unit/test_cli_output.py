"""Tables for people, one object for programs."""

import json
import os
import subprocess
import sys

from gspo.cli.output import print_json, print_table, stdout_kept_clean


def test_json_is_strict(capsys):
    print_json(
        {"a": [float("nan"), float("-inf"), 0.5], "b": {"c": (1, None, True)}, "d": "\ud800"}
    )
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.isascii()
    assert json.loads(out) == {
        "a": [None, None, 0.5],
        "b": {"c": [1, None, True]},
        "d": "\ud800",
    }


def test_columns_are_aligned_and_numbers_stand_right(capsys):
    print_table(("name", "n"), [("a", 1.0), ("longer", 12.34567), ("b\x1b[31m", None)])
    assert capsys.readouterr().out.splitlines() == [
        "name        n",
        "a           1",
        "longer  12.35",
        "b␛[31m      -",
    ]


def test_a_table_without_rows_is_its_header(capsys):
    print_table(("name", "n"), [])
    assert capsys.readouterr().out == "name  n\n"


def test_what_others_print_goes_to_standard_error(capfd):
    with stdout_kept_clean():
        sys.stdout.write("from Python\n")
        os.write(1, b"from a library\n")
        subprocess.run(["echo", "from a child"], check=True)
    sys.stdout.write("the report\n")
    out, err = capfd.readouterr()
    assert out == "the report\n"
    assert sorted(err.splitlines()) == ["from Python", "from a child", "from a library"]
