"""A recipe while it is made from another trainer's settings, and the account of each of them.

Every setting of the other file ends in exactly one list of the report. A default of the other trainer
that differs from ours is written into the recipe and reported like a setting that was given.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers.report import Changed, NotCarried, Report, Taken
from gspo.recipes.load import recipe_from

#: Stands for what the other file does not name. `gspo train --dry-run` finds no such file.
MISSING = "MISSING"
MISSING_MODEL = f"{MISSING}/model"
MISSING_DATA = f"{MISSING}/prompts.jsonl"
MISSING_REWARD = f"{MISSING}/reward.py:reward"

#: Of a key that is translated elsewhere, but not beside the other settings of this file.
UNREAD = "the settings around it leave it without effect there"
#: Values that no report shows.
SECRETS = frozenset({"hub_token", "logger.wandb.key"})

LARGEST = 1e18  # more than any setting counts; the arithmetic here stays exact and finite

#: A number as the trainers read it from text too: `.5`, `1_000`, "1e-6" in quotes.
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?")
#: Whole numbers with a 0 in front are octal for some readers and decimal for others.
_AMBIGUOUS = re.compile(r"[-+]?0\d+")
#: Switches whose default is none.
_SWITCHES = frozenset({"bf16"})

_NOWHERE = object()


@dataclass(frozen=True, slots=True)
class Given:
    """A value in the other trainer's file, and its place, as "train.py line 12"."""

    value: Any
    place: str


class Draft:
    """The settings of one file, the recipe they become, and the report."""

    def __init__(
        self, trainer: str, source: str, given: Mapping[str, Given], defaults: Mapping[str, Any]
    ) -> None:
        """trainer: its name as people write it. source: the file's name. defaults: of every key
        that is translated."""
        self.trainer = trainer
        self.source = source
        self.report = Report()
        self.values: dict[str, Any] = {}
        self._given = given
        self._defaults = defaults
        self._accounted: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the file sets it."""
        return key in self._given

    def __getitem__(self, key: str) -> Any:
        """The file's value, or the trainer's default. RecipeError for a switch that is neither true
        nor false: any text would count as on."""
        value = self._value(key)
        is_switch = key in _SWITCHES or isinstance(self._defaults.get(key), bool)
        if is_switch and value not in (None, True, False):
            raise self.error(key, f"{key} is {value!r}; wanted true or false, without quotes")
        return value

    def number(self, key: str) -> float:
        """The value, which must be a number. RecipeError names the place."""
        value = _read_number(self[key])
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) < LARGEST
        ):
            raise self.error(key, f"{key} is {self[key]!r}; wanted a finite number")
        return value

    def count(self, key: str, *, least: int = 1) -> int:
        """The value, which must be a whole number of at least `least`."""
        number = self.number(key)
        if number != int(number) or number < least:
            raise self.error(key, f"{key} is {number:g}; wanted a whole number of at least {least}")
        return int(number)

    def pair(self, key: str) -> list[float]:
        """The value, which must be two numbers."""
        value = self[key]
        numbers = [_read_number(each) for each in value] if isinstance(value, list) else []
        if len(numbers) != 2 or not all(
            isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < LARGEST
            for each in numbers
        ):
            raise self.error(key, f"{key} is {value!r}; wanted two numbers")
        return numbers

    def error(self, key: str, text: str) -> RecipeError:
        """An error at the place of a key."""
        return RecipeError(f"{self.place(key)}: {text}")

    def place(self, key: str) -> str:
        """Where the value comes from."""
        return self._given[key].place if key in self._given else f"{self.trainer}'s default"

    def take(self, key: str, settings: Mapping[str, Any], note: str = "") -> None:
        """The key means these settings of ours. A default that is ours too needs no line, unless
        there is something to know."""
        self._write(settings)
        self._accounted.add(key)
        ours = all(_default(name) == value for name, value in settings.items())
        if self.has(key) or note or (settings and not ours):
            line = Taken(key, self._shown(key), dict(settings), self.place(key), note)
            self.report.taken.append(line)

    def change(self, key: str, settings: Mapping[str, Any] | str, why: str) -> None:
        """The key becomes something that is not quite the same."""
        if not isinstance(settings, str):
            self._write(settings)
        self._accounted.add(key)
        self.report.changed.append(Changed(key, self._shown(key), settings, why, self.place(key)))

    def leave(self, key: str, why: str) -> None:
        """The key has no counterpart. A default that is not carried needs no line."""
        self._accounted.add(key)
        if self.has(key):
            self.report.not_carried.append(NotCarried(key, self._shown(key), why))

    def switched_off(self, key: str, off: tuple[Any, ...], why: str) -> None:
        """A key whose values `off` do nothing, as here; another value is not carried over."""
        if self[key] in off:
            self.take(key, {})
        else:
            self.leave(key, why)

    def also(self, key: str) -> None:
        """The key went into another one's line."""
        if self.has(key) and key not in self._accounted:
            words = "in another line of this report"
            self.report.taken.append(Taken(key, self._shown(key), words, self.place(key)))
        self._accounted.add(key)

    def fill(self, settings: Mapping[str, Any]) -> None:
        """Settings that the other file has no key for."""
        self._write(settings)

    def remark(self, what: str, there: str, here: str, why: str) -> None:
        """A difference that no single setting makes."""
        self.report.changed.append(Changed(what, there, here, why))

    def anchor(self, note: str) -> None:
        """Which policy the ratio is measured against, where no key of the file says it."""
        self.fill({"trainer.old_logp": "trainer"})
        words, to = "the trainer's, scored anew", {"trainer.old_logp": "trainer"}
        self.report.taken.append(Taken("old log-probs", words, to, self.trainer, note))

    def lost(self, key: str, value: Any, why: str) -> None:
        """What was found beside the settings and has no counterpart."""
        self.report.not_carried.append(NotCarried(key, value, why))

    def settle(self, reasons: Mapping[str, str]) -> None:
        """What is left of the file is not carried over. reasons: key -> why."""
        for key in self._given:
            if key not in self._accounted:
                self.leave(key, reasons.get(key, UNREAD))

    def is_accounted(self, key: str) -> bool:
        """Whether the key already stands in the report, or in another one's line."""
        return key in self._accounted

    def drop(self, section: str) -> None:
        """A section is written anew."""
        self.values.pop(section, None)

    def get(self, setting: str, absent: Any = None) -> Any:
        """A setting of the recipe as far as it is written."""
        inside: Any = self.values
        for part in setting.split("."):
            if not isinstance(inside, dict) or part not in inside:
                return absent
            inside = inside[part]
        return inside

    def _value(self, key: str) -> Any:
        return self._given[key].value if key in self._given else self._defaults[key]

    def _shown(self, key: str) -> Any:
        return "(not shown)" if key in SECRETS else self._value(key)

    def _write(self, settings: Mapping[str, Any]) -> None:
        for setting, value in settings.items():
            *sections, name = setting.split(".")
            inside = self.values
            for section in sections:
                inside = inside.setdefault(section, {})
            inside[name] = value


def _read_number(value: Any) -> Any:
    """Text that is a number to the other trainer; anything else as it is."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value) or _AMBIGUOUS.fullmatch(value):
        return value
    plain = value.replace("_", "")
    return int(plain) if plain.lstrip("+-").isdigit() else float(plain)


def _default(setting: str) -> Any:
    inside: Any = our_defaults()
    for part in setting.split("."):
        if not isinstance(inside, dict) or part not in inside:
            return _NOWHERE
        inside = inside[part]
    return inside


@functools.cache
def our_defaults() -> dict[str, Any]:
    """A recipe of defaults for a saved model and a file of prompts."""
    verifier = {"kind": "function", "function": MISSING_REWARD}
    places = {"model": {"path": MISSING_MODEL}, "data": {"path": MISSING_DATA}}
    return recipe_from({**places, "verifier": verifier}).model_dump(mode="json")
