"""Tests as data have them."""

import json

import pytest

from gspo.errors import DataError
from gspo.verifiers.code_data import read_tests
from gspo.verifiers.code_tests import AssertTest, CallTest, OutputTest


def read(data, entry_point=None):
    return read_tests(data, entry_point, "lines")


def test_assert_lines_as_text_and_as_a_list():
    assert read("assert f(1) == 2") == [AssertTest("f(1)", "==", 2)]
    assert read(["assert f(1) == 2"]) == read(json.dumps(["assert f(1) == 2"]))


def test_scripts():
    wanted = [OutputTest("1\n", "2\n", "lines")]
    assert read({"inputs": ["1\n"], "outputs": ["2\n"]}) == wanted
    assert read('{"inputs": ["1\\n"], "outputs": ["2\\n"]}') == wanted
    assert read([{"input": "1\n", "output": "2\n", "testtype": "stdin"}]) == wanted
    assert read({"inputs": [["1", "2"]], "outputs": [["3"]]}) == [OutputTest("1\n2", "3", "lines")]


def test_functions():
    wanted = [CallTest("f", [1, [2]], 3)]
    assert read({"inputs": [[1, [2]]], "outputs": [3], "fn_name": "f"}) == wanted
    assert read({"inputs": ["1\n[2]"], "outputs": ["3"], "fn_name": "f"}) == wanted
    assert read({"inputs": [[1, [2]]], "outputs": [3]}, "f") == wanted


def test_outputs_wrapped_in_lists():
    data = {"inputs": [[1], [2]], "outputs": [[3], [4]], "fn_name": "f"}
    first, _ = read(data)
    assert first.passes(3, 1e-6)
    assert first.passes([3], 1e-6)
    assert first.passes((3,), 1e-6)
    assert not first.passes(4, 1e-6)
    first, _ = read({**data, "outputs": [[3], [4, 5]]})
    assert not first.passes(3, 1e-6)


def test_json_has_lists_and_text_keys():
    (test,) = read({"inputs": [[1]], "outputs": [{"1": [2, 3]}], "fn_name": "f"})
    assert test.passes({1: (2, 3)}, 1e-6)
    assert not test.passes({"1": [2, 4]}, 1e-6)


@pytest.mark.parametrize(
    "data",
    [
        [],
        "",
        None,
        3,
        "import math",
        [1],
        {},
        {"inputs": [], "outputs": []},
        {"inputs": ["1"], "outputs": []},
        {"inputs": "1", "outputs": "2"},
        {"inputs": [1], "outputs": ["2"]},
        {"inputs": [1], "outputs": [2], "fn_name": "f"},
        {"inputs": ["{"], "outputs": ["2"], "fn_name": "f"},
        "assert f(1) == ...",
        [{"input": "1\n"}],
    ],
)
def test_no_tests_and_unreadable_ones_are_an_error(data):
    with pytest.raises(DataError):
        read(data)
