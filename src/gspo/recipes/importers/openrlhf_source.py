"""OpenRLHF's options in a launch script, or in a text file of options alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers.found import Found, Unreadable
from gspo.recipes.importers.openrlhf_keys import FLAGS, LISTS
from gspo.recipes.importers.report import NotCarried
from gspo.recipes.importers.shell_words import HOLE, Shown, commands, is_rest_of_command_line, plain
from gspo.recipes.yaml_text import read_yaml

REST = "what is typed behind the script's name is not in the file"
PROGRAM = ("openrlhf.cli.train_ppo_ray", "train_ppo_ray.py")


def read_openrlhf(path: Path) -> Found:
    """Every option of the command that starts OpenRLHF. RecipeError: there is none, or several."""
    words = launched(path, PROGRAM, "--")
    found = Found()
    index = 0
    while index < len(words):
        word = words[index]
        place = f"{path.name} line {word.line}"
        index += 1
        if is_rest_of_command_line(word.text):
            found.lost.append(NotCarried("$@", None, REST))
            continue
        if HOLE in word.text and not word.text.startswith("--"):
            found.add(word.text.replace(HOLE, ""), plain(word.text), place)
            continue
        if not word.text.startswith("--"):
            raise RecipeError(f"{place}: {word.text!r} belongs to no option; wanted --name value")
        key, equals, inline = word.text[2:].partition("=")
        values = [inline] if equals else []
        while not equals and index < len(words) and _follows(words[index].text):
            values.append(words[index].text)
            index += 1
        found.add(key, _value(key, values, place), place)
    return found


def _follows(text: str) -> bool:
    return not text.startswith("--") and not is_rest_of_command_line(text)


def _value(key: str, values: list[str], place: str) -> Any:
    if key in FLAGS:
        if values:
            raise RecipeError(f"{place}: --{key} takes no value, but {values[0]!r} follows it")
        return True
    read = [_scalar(text, place) for text in values]
    if key in LISTS:
        return next((value for value in read if isinstance(value, Unreadable)), read)
    if len(read) != 1:
        raise RecipeError(f"{place}: --{key} has {len(read)} values; wanted one")
    return read[0]


def _scalar(text: str, place: str) -> Any:
    """A number, or text. Words as true stay text: no option takes them."""
    stated = plain(text)
    if isinstance(stated, Unreadable):
        return stated
    try:
        value = read_yaml(stated, place).values
    except RecipeError:
        return stated
    return value if isinstance(value, int | float) and not isinstance(value, bool) else stated


def launched(path: Path, programs: tuple[str, ...], marker: str) -> list[Shown]:
    """The words behind the one command that starts a program, or all words of a file of settings.
    marker: how a setting begins, or what it holds."""
    found: list[list[Shown]] = []
    every = commands(path)
    for command in every:
        for index, word in enumerate(command):
            if word.text.endswith(programs):
                found.append(command[index + 1 :])
                break
    if len(found) > 1:
        lines = ", ".join(str(command[0].line) for command in found if command)
        raise RecipeError(
            f"{path.name} starts {programs[0]} {len(found)} times (lines {lines}); leave one"
        )
    if found:
        return found[0]
    words = [word for command in every for word in command]
    if (
        words and words[0].text.startswith(marker)
        if marker == "--"
        else words and marker in words[0].text
    ):
        return words
    raise RecipeError(
        f"{path.name} does not start {programs[0]}, and does not begin with a setting of it"
    )
