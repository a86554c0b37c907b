"""verl's settings: Hydra YAML, or overrides on a command line in a script or a text file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers.found import Found, Unreadable, text_of
from gspo.recipes.importers.openrlhf_source import REST, launched
from gspo.recipes.importers.report import NotCarried
from gspo.recipes.importers.shell_words import is_rest_of_command_line, plain
from gspo.recipes.importers.verl_keys import DEFAULTS, RENAMED
from gspo.recipes.yaml_text import KeyPath, read_yaml

PROGRAM = ("verl.trainer.main_ppo", "main_ppo.py", "main_dapo", "main_dapo.py", "main_ppo")
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?\s*([\w.]+)\s*(?:,\s*(.*?)\s*)?\}")


def read_verl(path: Path) -> Found:
    """Every key of the file, by its dotted name. RecipeError where it is no such file."""
    if path.suffix in (".yaml", ".yml"):
        return _resolved(_from_yaml(path))
    found = Found()
    for word in launched(path, PROGRAM, "="):
        place = f"{path.name} line {word.line}"
        stated = plain(word.text)
        if is_rest_of_command_line(word.text):
            found.lost.append(NotCarried("$@", None, REST))
            continue
        if isinstance(stated, Unreadable) and "=" not in stated.text:
            found.add(stated.text, stated, place)  # a variable that may hold settings
            continue
        text = stated.text if isinstance(stated, Unreadable) else stated
        if text.startswith("--"):
            continue  # --config-name and the like choose the file of defaults
        name, equals, value = text.partition("=")
        key = name.lstrip("+")
        if not equals or not key or key.startswith("~"):
            raise RecipeError(f"{place}: {text!r} sets nothing; wanted NAME=VALUE, as data.seed=1")
        read = (
            Unreadable(value, stated.why)
            if isinstance(stated, Unreadable)
            else _value(value, place)
        )
        found.add(RENAMED.get(key, key), read, place)
    return _resolved(found)


def _value(text: str, place: str) -> Any:
    """Hydra's values are YAML's, but for quotes that it takes off once more."""
    if not text.strip():
        return None
    try:
        return read_yaml(text, place).values
    except RecipeError:
        return text


def _from_yaml(path: Path) -> Found:
    document = read_yaml(text_of(path), path.name)
    if not isinstance(document.values, dict):
        raise RecipeError(
            f"{path.name} holds {document.values!r}; wanted sections, as 'actor_rollout_ref:'"
        )
    found = Found()
    for keys, value in _leaves(document.values, ()):
        key = ".".join(map(str, keys))
        if keys[0] == "defaults" or keys[-1] == "_target_":
            continue  # Hydra's own: which files, which classes
        found.add(RENAMED.get(key, key), value, document.places[keys])
    return found


def _leaves(value: dict[str, Any], above: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for name, inside in value.items():
        here = (*above, name)
        if isinstance(inside, dict) and inside and ".".join(map(str, here)) not in DEFAULTS:
            yield from _leaves(inside, here)
        else:
            yield here, inside


def _resolved(found: Found) -> Found:
    """`${data.max_prompt_length}` and `${oc.select:a.b,1}`, as far as this file or a default of verl
    says what stands there."""
    done = Found(lost=found.lost)
    for key, given in found.given.items():
        done.add(key, _looked_up(given.value, found, 0), given.place)
    return done


def _looked_up(value: Any, found: Found, depth: int) -> Any:
    if not isinstance(value, str) or "${" not in value:
        return value
    match = _REFERENCE.fullmatch(value.strip())
    if match is None or depth > 10:
        return Unreadable(value, "it is put together from other values")
    key, otherwise = RENAMED.get(match[1], match[1]), match[2]
    if key in found.given:
        return _looked_up(found.given[key].value, found, depth + 1)
    if key in DEFAULTS:
        return DEFAULTS[key]
    if otherwise is not None:
        return _value(otherwise, "reference")
    return Unreadable(value, f"{key} is not set in the file")
