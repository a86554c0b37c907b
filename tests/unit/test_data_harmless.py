"""What may be handed to somebody else's eval."""

import pytest

from gspo.data.harmless import is_harmless


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "-3.5",
        "[[1, 0], [0, 1]]",
        "['a', 'b', 'a']",
        "(1 + 2) * 3 / 4",
        "x**3/3 + 5*x + C",
        "x^2 - 2*x",
        "sin(x) + log(x)*exp(2*x)",
        "x**(3/2)",
        "1 2 3\n4 5 6",
        "three blind mice",
        "1e999",
        "_ Q _\n_ _ Q",
    ],
)
def test_answers_people_write(text):
    assert is_harmless(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch /tmp/x')",
        "().__class__",
        "x.y",
        "open('/etc/passwd')",
        "eval('1')",
        "exec('1')",
        "'__import__'",
        "[f() for f in [1]]",
        "lambda: 1",
        "(x := 1)",
        "9**9**9",
        "(9**9)**9",
        "9^9^9",
        "1e999*1e999",
        "(1 if x else 2)",
        "10**100",
        "2**x",
        "1" * 40,
        "f'{1}'",
        "log(x, base=2)",
        "a[0]",
        "{1: 2}",
        "x" * 3000,
        "(" * 1000,
        "1 +",
        "factorial(99999)",
        "...",
    ],
)
def test_everything_else(text):
    assert not is_harmless(text)
