"""The strict YAML reader."""

import pytest

from gspo.errors import RecipeError
from gspo.recipes.yaml_text import MAX_CHARACTERS, read_yaml, to_text


def test_values_and_their_lines():
    document = read_yaml("a: 1\nb:\n  c: [x, 2.5]\n  d:\n", "f")
    assert document.values == {"a": 1, "b": {"c": ["x", 2.5], "d": None}}
    assert document.places[("a",)] == "f line 1"
    assert document.places[("b", "c")] == "f line 3"
    assert document.places[("b", "d")] == "f line 4"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("-3", -3),
        ("010", "010"),
        ("12:00", "12:00"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("no", False),
        ("On", True),
        ("~", None),
        ("None", "None"),
        ("'1'", "1"),
        (".inf", float("inf")),
        ("9" * 40, "9" * 40),
    ],
)
def test_how_a_word_is_read(text, value):
    got = read_yaml(text, "f").values
    assert (type(got), got) == (type(value), value)
    assert read_yaml(to_text(value), "f").values == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "f line 3: a is set twice, first at f line 1"),
        ("a:\n  b: !!python/object/apply:os.system ['true']", "f line 2: the tag tag:yaml.org"),
        ("a: !!set {x}", "is not allowed"),
        ("a: [1, 2", "f line 1: this is not YAML"),
        ("a: 1\n---\nb: 2\n", "this is not YAML"),
        ("[a]: x", "f line 1: a setting's name must be a word"),
        ("a: &x [*x]", "levels once the aliases"),
        ("[" * 5000, "f is nested too deep"),
        ("a: \x00", "this is not YAML"),
    ],
)
def test_what_is_refused(text, words):
    with pytest.raises(RecipeError) as caught:
        read_yaml(text, "f")
    assert words in str(caught.value)


def test_aliases_may_repeat_a_little_but_not_blow_up():
    assert read_yaml("a: &x {b: 1}\nc: *x\n", "f").values["c"] == {"b": 1}
    levels = ["l0: &l0 [x, x]"]
    levels += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(RecipeError, match="more than 10000 values"):
        read_yaml("\n".join(levels), "f")


def test_a_text_of_any_size_is_not_read():
    with pytest.raises(RecipeError, match="at most 200000"):
        read_yaml("#" * (MAX_CHARACTERS + 1), "f")
