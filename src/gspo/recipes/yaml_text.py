"""YAML of a recipe: plain values, the line of each, and nothing that surprises.

Differs from YAML 1.1: `1e-6` is a number; `010`, `1_000`, `12:00` and dates are text; tags are
refused, a key may stand once, and aliases cannot blow up. `to_text` writes what `read_yaml` reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from gspo.errors import RecipeError
from gspo.recipes.fields import NUMBER

KeyPath = tuple[str | int, ...]

MAX_CHARACTERS = 200_000  # a recipe has a few thousand
MAX_VALUES = 10_000  # counted with every alias written out
MAX_DEPTH = 20  # the deepest setting stands at 4

_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_RULES = (
    ("tag:yaml.org,2002:bool", r"(?:yes|no|true|false|on|off)", "yYnNtTfFoO", re.IGNORECASE),
    ("tag:yaml.org,2002:null", r"(?:~|null|)", ["~", "n", "N", ""], re.IGNORECASE),
    (_INT, r"[-+]?(?:0|[1-9]\d{0,29})", "-+0123456789", 0),
    (_FLOAT, NUMBER.pattern, "-+0123456789", 0),
    (_FLOAT, r"[-+]?\.(?:inf|nan)", "-+.", re.IGNORECASE),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  filled below, as PyYAML has it


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _pattern, _first, _flags in _RULES:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$", _flags), list(_first))
_PLAIN_TAGS = {
    *(tag for tag, *_ in _RULES),
    *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq")),
}


@dataclass(frozen=True, slots=True)
class Document:
    """Values of a YAML text, and where each stands: path -> "FILE line N"."""

    values: Any
    places: dict[KeyPath, str]


def read_yaml(text: str, source: str) -> Document:
    """The one document of a text. source names it in messages. RecipeError says file and line."""
    if len(text) > MAX_CHARACTERS:
        raise RecipeError(
            f"{source} has {len(text)} characters; a recipe has at most {MAX_CHARACTERS}"
        )
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise RecipeError(_yaml_message(error, source)) from error
    reader = _Reader(source)
    values = {} if root is None else reader.read(root, ())
    return Document(values, reader.places)


def to_text(values: Any) -> str:
    """YAML that `read_yaml` turns into the same values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _yaml_message(error: Exception, source: str) -> str:
    if isinstance(error, RecursionError):
        return f"{source} is nested too deep; a recipe goes {MAX_DEPTH} deep at most"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = "" if mark is None else f" line {mark.line + 1}"
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{source}{line}: this is not YAML: {problem}"


class _Reader:
    """Walks the nodes of one document."""

    def __init__(self, source: str) -> None:
        self.places: dict[KeyPath, str] = {}
        self._source = source
        self._num_values = 0

    def read(self, node: yaml.Node, path: KeyPath, line: int | None = None) -> Any:
        """The value of a node. line: of its key, where it has one."""
        place = f"{self._source} line {(node.start_mark.line if line is None else line) + 1}"
        self.places[path] = place
        self._num_values += 1
        if self._num_values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise RecipeError(
                f"{place}: more than {MAX_VALUES} values or {MAX_DEPTH} levels once the aliases "
                "are written out; a recipe has a hundred"
            )
        if node.tag not in _PLAIN_TAGS:
            raise RecipeError(f"{place}: the tag {node.tag} is not allowed; write a plain value")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line
            place = f"{self._source} line {line + 1}"
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or not key:
                raise RecipeError(f"{place}: a setting's name must be a word")
            if key in values:
                first = self.places[(*path, key)]
                raise RecipeError(f"{place}: {key} is set twice, first at {first}; remove one")
            values[key] = self.read(value_node, (*path, key), line)
        return values


def _scalar(node: yaml.Node) -> Any:
    text = node.value
    match node.tag.rsplit(":", 1)[-1]:
        case "int":
            return int(text)
        case "float":
            return float(text.replace(".inf", "inf").replace(".nan", "nan"))
        case "bool":
            return text.lower() in ("yes", "true", "on")
        case "null":
            return None
        case _:
            return text
