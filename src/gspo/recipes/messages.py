"""Validation errors in the words of a recipe: where it stands, what was given, what is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gspo.recipes.names import all_settings, unknown_setting
from gspo.recipes.yaml_text import KeyPath

MAX_GIVEN = 60  # characters of a value that a message repeats

_WANTED = {
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "at most {le:g}",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text (put it in quotes if it is)",
    "string_too_short": "text that is not empty, or null where none is allowed",
    "string_pattern_mismatch": "letters, digits, '.', '_' and '-' only, the first a letter or digit",
    "literal_error": "{expected}",
    "none_required": "null",
    "tuple_type": "a list of two numbers",
    "too_short": "a list of two numbers",
    "too_long": "a list of two numbers",
    "model_type": "a mapping of settings",
    "dict_type": "a mapping",
}


def explain(error: ValidationError, places: Mapping[KeyPath, str], source: str) -> str:
    """One line an error. places: path -> "FILE line N"; source: what has no place of its own."""
    lines = dict.fromkeys(
        f"{_place(path, places, source)}: {text}"
        for details in error.errors()
        for path, text in _errors(details)
    )
    return "\n".join(lines)


def _errors(details: ErrorDetails) -> Iterator[tuple[KeyPath, str]]:
    path = tuple(part for part in details["loc"] if not str(part).startswith("<"))
    context = details.get("ctx", {})
    if details["type"] == "conflicts":
        for setting, text in context["conflicts"]:
            yield tuple(setting.split(".")), f"{setting} {text}"
        return
    if "setting" in context:
        path = (*path, context["setting"])
    yield path, _text(details, path)


def _text(details: ErrorDetails, path: KeyPath) -> str:
    dotted, kind = ".".join(map(str, path)), details["type"]
    context = details.get("ctx", {})
    given = repr(details["input"])
    if len(given) > MAX_GIVEN:
        given = f"{given[:MAX_GIVEN]}…"
    if kind == "extra_forbidden":
        return _not_here(dotted, details["loc"])
    if kind == "missing" and isinstance(path[-1], int):
        return f"{'.'.join(map(str, path[:-1]))} is too short; wanted a list of two numbers"
    if kind == "missing":
        return f"{dotted} is missing and has no default; set it"
    if kind == "objective_name":
        return details["msg"]
    if kind == "cut_share":
        return f"{dotted} {details['msg']}"
    if kind == "string_type" and isinstance(details["input"], bool):
        given += " (as yes, no, on, off are read)"
    wanted = _WANTED.get(kind)
    if wanted is None:
        return f"{dotted} is {given}; {details['msg']}"
    return f"{dotted} is {given}; wanted {wanted.format(**context)}"


def _not_here(dotted: str, loc: tuple[str | int, ...]) -> str:
    """A key that is unknown, or known but for another kind of section."""
    kinds = [kind for kind in all_settings().get(dotted, ()) if kind]
    if not kinds:
        return unknown_setting(dotted)
    own = [str(part).strip("<>") for part in loc if str(part).startswith("<")]
    return f"{dotted} is a setting of {', '.join(kinds)}, not of {own[-1]}; remove it"


def _place(path: KeyPath, places: Mapping[KeyPath, str], source: str) -> str:
    while path:
        if path in places:
            return places[path]
        for other, place in places.items():  # a section that only an override inside it made
            if other[: len(path)] == path:
                return place
        path = path[:-1]
    return source
