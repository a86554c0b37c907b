"""What equals what."""

import math

import pytest

from gspo.verifiers.code_compare import same_output, same_value
from gspo.verifiers.code_tests import AssertTest

NAN = float("nan")
SAME = [
    (2, 2), (2.0, 2), (2, 2.0), (0.1 + 0.2, 0.3), (-0.0, 0.0), (math.inf, math.inf), (None, None),
    ([1, (2, "a")], [1, (2, "a")]), ({1, 2}, {2, 1}), ({"a": 0.30000000000000004}, {"a": 0.3}),
    (frozenset({(1, 2)}), frozenset({(1, 2)})), ({1}, frozenset({1})), (b"x", b"x"), (1 + 2j, 1 + 2j), (10**400, 10**400),
    (True, True), ({1: [2]}, {1.0: [2]}), ("\u00e9", "\u00e9"),
]  # fmt: skip
DIFFERENT = [
    (True, 1), (1, True), (0, False), ([True], [1]), ({True}, {1}), ({1: 2}, {True: 2}), (NAN, NAN),
    ([NAN], [NAN]), (NAN, 1.0), (1.0, NAN), (math.inf, 1.0), (-math.inf, math.inf), ("2", 2),
    ((1, 2), [1, 2]), ([1, 2], (1, 2)), (None, 0), ([1], [1, 2]),
    (1e18 + 1000, 10**18), (10**400, 1.0), (0.3, 0.3001), ({"a": 1}, {"a": 1, "b": 2}), (b"x", "x"),
    (frozenset({(1, True)}), frozenset({(1, 1)})), (1, 1 + 1j), ("\u00e9", "e\u0301"), ([], None),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), SAME)
def test_same(given, expected):
    assert same_value(given, expected, 1e-6)


@pytest.mark.parametrize(("given", "expected"), DIFFERENT)
def test_different(given, expected):
    assert not same_value(given, expected, 1e-6)


OUTPUTS = {
    "equal": ("1 2\n", "1 2", "lines", True),
    "blanks at ends": ("YES \r\n\n\n", "YES", "lines", True),
    "blanks inside": ("1  2", "1 2", "lines", False),
    "blanks inside, tokens": ("1  2", "1 2", "tokens", True),
    "another line break": ("1 2 3", "1 2\n3", "lines", False),
    "another line break, tokens": ("1 2 3", "1 2\n3", "tokens", True),
    "blank at the start": (" 1", "1", "lines", False),
    "decimals": ("0.333333", "0.333333333333", "lines", True),
    "decimals too far": ("0.3333", "0.333333333333", "lines", False),
    "decimals in a list": ("[0.1, 0.2]", "[0.1, 0.2000000001]", "lines", True),
    "exponent": ("1e-3", "0.001", "lines", True),
    "decimal for an integer": ("2.0", "2", "lines", False),
    "integer for a decimal": ("2", "2.0", "lines", True),
    "large integers": ("9" * 5000, "9" * 5000, "lines", True),
    "large integers, one digit": ("9" * 5000 + "8", "9" * 5001, "lines", False),
    "leading zeros": ("007", "7", "lines", False),
    "nan for a number": ("nan", "1.0", "lines", False),
    "number for nan": ("1.0", "nan", "lines", False),
    "long decimal": ("1." + "0" * 10**6, "1.0", "lines", False),
    "case": ("yes", "YES", "lines", False),
    "nothing": ("", "1", "lines", False),
    "nothing wanted": ("\n", "", "lines", True),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs(name):
    given, expected, rule, same = OUTPUTS[name]
    assert same_output(given.encode(), expected, rule, 1e-6) is same


def test_output_that_is_no_text():
    assert not same_output(b"\xff\xfe", "1", "lines", 1e-6)


RELATIONS = [
    ("true", None, 5, True), ("true", None, 0, False), ("<", 3, 2, True), ("<", 3, "a", False),
    ("in", (1, 2), 2, True), ("in", (1, 2), True, False), ("in", "abc", "bc", True),
    ("contains", 3, [1, 3], True), ("contains", "b", "abc", True), ("contains", 3, 3, False),
    ("near", (4.0, 0.0, 0.1), 4.05, True), ("near", (4.0, 0.0, 0.1), NAN, False),
    ("near", (1.0, 0.0, 0.1), True, False), ("near", (4.0, 0.0, 0.1), "4", False),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "expected", "value", "passes"), RELATIONS)
def test_relations(relation, expected, value, passes):
    assert AssertTest("f()", relation, expected).passes(value, 1e-6) is passes


def test_what_cannot_be_compared_passes_no_negation_either():
    assert not AssertTest("f()", "<", 3, negated=True).passes("a", 1e-6)
    assert not AssertTest("f()", "contains", 3, negated=True).passes(None, 1e-6)
    assert AssertTest("f()", "==", 3, negated=True).passes("a", 1e-6)
