"""Assert lines become an expression for the program and a value that stays."""

import pytest

from gspo.errors import DataError
from gspo.verifiers.code_asserts import parse_asserts

# line: expression, relation, expected, negated
LINES = {
    "assert f(2) == 4": ("f(2)", "==", 4, False),
    "assert 4 == f(2)": ("f(2)", "==", 4, False),
    "assert f(2) is True": ("f(2)", "==", True, False),
    "assert f(2) is not None": ("f(2)", "==", None, True),
    "assert f(2) != 4, 'no'": ("f(2)", "==", 4, True),
    "assert not f(2)": ("f(2)", "true", None, True),
    "assert not f(2) == 4": ("f(2)", "==", 4, True),
    "assert f(2)": ("f(2)", "true", None, False),
    "assert f(2) > 3": ("f(2)", ">", 3, False),
    "assert 3 < f(2)": ("f(2)", ">", 3, False),
    "assert f(2) in (4, 5)": ("f(2)", "in", (4, 5), False),
    "assert 3 not in f(2)": ("f(2)", "contains", 3, True),
    "assert abs(f(2) - 4.0) < 1e-6": ("f(2)", "near", (4.0, 0.0, 1e-6), False),
    "assert abs(4.0 - f(2)) <= 1e-6": ("f(2)", "near", (4.0, 0.0, 1e-6), False),
    "assert 1e-6 > abs(f(2) - 4.0)": ("f(2)", "near", (4.0, 0.0, 1e-6), False),
    "assert math.isclose(f(2), 4.0, abs_tol=0.1)": ("f(2)", "near", (4.0, 1e-9, 0.1), False),
    "assert set(f((1, 2))) == set((2, 1))": ("set(f((1, 2)))", "==", {1, 2}, False),
    "assert f([0] * 2, -1) == [float('inf'), 2 ** 3]": (
        "f([0] * 2, -1)",
        "==",
        [float("inf"), 8],
        False,
    ),
    "x = [1, 2]\nassert f(x) == x": ("f([1, 2])", "==", [1, 2], False),
    "assert f(lambda a: a > 1) == [2]": ("f(lambda a: a > 1)", "==", [2], False),
}


@pytest.mark.parametrize("source", LINES)
def test_a_line(source):
    (test,) = parse_asserts(source, None)
    assert (test.expression, test.relation, test.expected, test.negated) == LINES[source]


def test_and_makes_several():
    tests = parse_asserts("assert f(1) == 1 and f(2) == 4", None)
    assert [test.expected for test in tests] == [1, 4]


def test_imports_are_set_up_and_values_are_not():
    (test,) = parse_asserts("import math\nwanted = 3\nassert f(math.pi) == wanted", None)
    assert test.setup == "import math"
    assert "3" not in test.expression
    assert test.expected == 3


def test_check_of_a_candidate():
    source = "METADATA = {'a': 1}\n\ndef check(candidate):\n    assert candidate(2) == 4\n\ncheck(square)"
    (test,) = parse_asserts(source, None)
    assert (test.expression, test.candidate) == ("candidate(2)", "square")
    (test,) = parse_asserts(source.rpartition("\n")[0], "cube")
    assert test.candidate == "cube"


@pytest.mark.parametrize(
    "source",
    [
        "assert True",
        "assert 1 == 1",
        "assert f(2) == g(2)",
        "assert all(f(x) == y for x, y in [(1, 1)])",
        "assert f(2) == 4 or f(2) == 5",
        "assert 1 < f(2) < 3",
        "assert f(2) == 10 ** 10 ** 10",
        "assert f(2) == [0] * 10 ** 9",
        "assert f(2) == open('x').read()",
        "for x in range(3):\n    assert f(x) == x",
        "exec('assert f(1) == 1')",
        "x = f(2)\nassert x == 4",
        "def check(candidate):\n    assert candidate(2) == 4",
        "assert f(2) ==",
        "assert f(2) == 1 if f(3) else 2",
    ],
)
def test_what_would_have_to_be_run_is_refused(source):
    with pytest.raises(DataError, match="tests"):
        parse_asserts(source, None)


def test_the_message_names_the_line():
    with pytest.raises(DataError, match=r"line 2: cannot read .*: neither side is a literal"):
        parse_asserts("assert f(1) == 1\nassert f(2) == g(2)", None)
