"""Tests as data have them, read into one list. Nothing here runs them.

    text, or a list of texts     assert lines: see code_asserts
    {"inputs": [..], "outputs": [..]}                  scripts: standard input and output
    {"inputs": [..], "outputs": [..], "fn_name": ..}   a function, as APPS, TACO and verl have it
    [{"input": .., "output": ..}, ..]                  the same, one object a test

Each may also be JSON in a text. No tests at all is a DataError: none failed is not all passed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gspo.errors import DataError
from gspo.verifiers.code_asserts import parse_asserts
from gspo.verifiers.code_compare import OutputRule
from gspo.verifiers.code_tests import CallTest, OutputTest, Test
from gspo.verifiers.sandbox.values import NotPlain, encode

_FUNCTION_KEYS = ("fn_name", "entry_point")


def read_tests(data: Any, entry_point: str | None, rule: OutputRule) -> list[Test]:
    """The tests; DataError says what cannot be read. entry_point: a function the data name apart."""
    value = _from_text(data)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        value = {
            "inputs": [row.get("input") for row in value],
            "outputs": [row.get("output") for row in value],
            **{key: value[0][key] for key in _FUNCTION_KEYS if key in value[0]},
        }
    tests: list[Test]
    if isinstance(value, Mapping):
        tests = _from_pairs(value, entry_point, rule)
    else:
        tests = [*parse_asserts(_source(value), entry_point)]
    if not tests:
        raise DataError(f"tests are {repr(data)[:80]}: none is in them, and none failed is no pass")
    for test in tests:
        _check_plain(test)
    return tests


def _from_text(data: Any) -> Any:
    if isinstance(data, str) and data.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(data)
        except ValueError:
            return data
    return data


def _source(value: Any) -> str:
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise DataError(
            f"tests are {repr(value)[:80]}; wanted assert lines, or an object with inputs and outputs"
        )
    return "\n".join(lines)


def _from_pairs(value: Mapping[str, Any], entry_point: str | None, rule: OutputRule) -> list[Test]:
    inputs, outputs = value.get("inputs"), value.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise DataError(
            f"tests have the keys {sorted(value)}; wanted lists under inputs and outputs"
        )
    if len(inputs) != len(outputs):
        raise DataError(f"tests have {len(inputs)} inputs and {len(outputs)} outputs")
    name = next((value[key] for key in _FUNCTION_KEYS if value.get(key)), entry_point)
    pairs = list(zip(inputs, outputs, strict=True))
    if name is None:
        return [OutputTest(_text(given), _text(wanted), rule) for given, wanted in pairs]
    read = [(_arguments(given), _expected(given, wanted)) for given, wanted in pairs]
    unwrap = all(isinstance(wanted, list) and len(wanted) == 1 for _, wanted in read)
    return [CallTest(name, given, wanted, unwrap) for given, wanted in read]


def _text(value: Any) -> str:
    """A stream as text; APPS also has lists of lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise DataError(
            f"a script's input or output is {value!r}, wanted text; functions need fn_name"
        )
    return value


def _arguments(given: Any) -> list[Any]:
    """A list of arguments, or a text with one JSON value a line."""
    if isinstance(given, str):
        return [_json(line) for line in given.split("\n") if line.strip()]
    if not isinstance(given, list):
        raise DataError(f"a function's input is {given!r}, wanted the list of its arguments")
    return given


def _expected(given: Any, wanted: Any) -> Any:
    """Where the input is JSON in a text, so is the output."""
    return _json(wanted) if isinstance(given, str) and isinstance(wanted, str) else wanted


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(
            f"a function's input or output is {text[:80]!r}, no JSON: {error}"
        ) from error


def _check_plain(test: Test) -> None:
    try:
        encode(test.expected)
        encode(test.arguments if isinstance(test, CallTest) else None)
    except NotPlain as error:
        raise DataError(f"test {test.shown}: {error}") from error
