"""`a.b=c` on the command line: one setting over what the file says.

The order does not matter: a section comes before the settings in it, so `objective=gspo
objective.kl.coefficient=1e-3` is gspo with that penalty. A setting that decides what others mean
takes those with it: naming an objective starts from its own defaults, another `clip` drops the
`cut_share` that `auto` aimed at, `model.path`, `data.path` and `data.task` drop what belongs to the
other kind of section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.fields import Section
from gspo.recipes.names import unknown_setting
from gspo.recipes.sections import FileData, NewModel, SavedModel, TaskData
from gspo.recipes.yaml_text import Document, KeyPath, read_yaml

MAX_SHOWN = 80  # characters of an override that a message repeats


def _only_in(old: type[Section], new: type[Section]) -> frozenset[str]:
    """Settings that go when a section of one kind becomes another: the old one's own, and the
    one that told them apart."""
    null = {name for name, field in new.model_fields.items() if field.annotation is type(None)}
    return frozenset(old.model_fields.keys() - new.model_fields.keys() | null)


#: setting -> its neighbours that lose their meaning when it is set
TAKES_ALONG: Mapping[tuple[str, str], frozenset[str]] = {
    ("model", "path"): _only_in(NewModel, SavedModel),
    ("data", "path"): _only_in(TaskData, FileData),
    ("data", "task"): _only_in(FileData, TaskData),
    ("objective", "clip"): frozenset({"cut_share"}),
}


@dataclass(frozen=True, slots=True)
class Override:
    """One `a.b=c`: the place it sets, the value, and the text as given."""

    path: tuple[str, ...]
    value: Any
    text: str

    @property
    def label(self) -> str:
        """How a message calls it."""
        return _label(self.text)


def parse_override(text: str) -> Override:
    """`a.b=c`, c in YAML: `1e-6`, `null`, `[0.9, 0.99]`, `{low: 3e-4, high: 4e-4}`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise RecipeError(f"{_label(text)}: wanted SETTING=VALUE, as trainer.steps=20")
    parts = tuple(name.split("."))
    if not all(parts) or "-" in name:
        raise RecipeError(f"{_label(text)}: {unknown_setting(name)}")
    if not value:
        raise RecipeError(f"{_label(text)}: no value; none is written null")
    if parts == ("objective", "name"):
        parts = ("objective",)
    return Override(parts, read_yaml(value, _label(text)).values, text)


def apply_overrides(document: Document, texts: Sequence[str]) -> Document:
    """A new document with every override applied; the given one stays as it is."""
    given: dict[tuple[str, ...], Override] = {}
    values, places = document.values, dict(document.places)
    overrides = sorted(map(parse_override, texts), key=lambda override: len(override.path))
    for override in overrides:  # before anything is set, so that an override is never taken along
        values = _without_taken_along(values, override)
    for override in overrides:
        path = override.path
        if path in given:
            raise RecipeError(
                f"{override.label}: {'.'.join(path)} is also set by {given[path].text!r}; keep one"
            )
        given[path] = override
        values = _set(values, path, override.value)
        places = {key: place for key, place in places.items() if key[: len(path)] != path}
        places[path] = override.label
    return Document(values, places)


def _label(text: str) -> str:
    return f"override {text[:MAX_SHOWN] + '…' if len(text) > MAX_SHOWN else text!r}"


def _without_taken_along(values: dict[str, Any], override: Override) -> dict[str, Any]:
    section, setting = (*override.path, "")[:2]
    taken = TAKES_ALONG.get((section, setting), frozenset())
    inside = values.get(section)
    if override.value is None or not isinstance(inside, dict):
        return values
    return {**values, section: {key: old for key, old in inside.items() if key not in taken}}


def _set(values: Any, path: KeyPath, value: Any, above: KeyPath = ()) -> Any:
    if not path:
        return value
    if above == ("objective",) and isinstance(values, str):
        values = {"name": values}
    inside = values if isinstance(values, dict) else {}
    return {**inside, path[0]: _set(inside.get(path[0]), path[1:], value, (*above, path[0]))}
