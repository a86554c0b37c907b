"""Another trainer's settings while they are made from a recipe, and the account of each of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.fields import Section
from gspo.recipes.importers.draft import MISSING, MISSING_REWARD
from gspo.recipes.importers.report import Changed, NotCarried, Report, Taken
from gspo.recipes.load import recipe_from
from gspo.recipes.schema import Recipe
from gspo.recipes.sections import FileData, SavedModel

#: Values that stay one setting although they hold others.
_WHOLE = (
    "objective.clip",
    "objective.kl",
    "rollout.dynamic_sampling",
    "rollout.length_schedule",
    "data.columns",
    "data.chat",
    "data.refresh",
    "data.options",
    "verifier.parts",
    "coldstart",
)

#: Section or setting -> why it has no counterpart anywhere.
REASONS: Mapping[str, str] = {
    "coldstart": "supervised training first is a run of its own there",
    "data.only": "leave the other prompts out of the data",
    "data.refresh": "the prompts of an epoch are fixed there",
    "data.bad_rows": "a row without prompt or answer ends the run there, or goes in as it is",
    "data.columns": "the columns have to be renamed in the data",
    "data.max_prompt_tokens": "longer prompts have to be left out of the data",
    "data.overlong": "longer prompts have to be left out of the data",
    "rollout.length_schedule": "the longest response is fixed there",
    "rollout.dynamic_sampling": "groups of equal rewards stay in the batch there",
    "trainer.max_tokens_per_microbatch": "micro-batches are cut in another way there; gradients are the same",
    "engine": "the engine is another one there",
    "record": "the run is recorded in another way there",
    "evaluate.prompts": "all held-out prompts are used there",
    "verifier": "the reward has to be written as a function there",
    "model": "a model there is a folder or a hub name",
}


class Outgoing:
    """A recipe, the settings it becomes, and the report."""

    def __init__(self, trainer: str, recipe: Recipe) -> None:
        self.trainer = trainer
        self.recipe = recipe
        self.report = Report()
        self.settings: dict[str, Any] = {}
        self._accounted: set[str] = set()

    def value(self, setting: str) -> Any:
        """A setting of the recipe, nested ones as plain values; None where its section has it not."""
        inside: Any = self.recipe
        for part in setting.split("."):
            inside = getattr(inside, part, None)
        return _plain(inside)

    def take(self, setting: str, to: Mapping[str, Any], note: str = "") -> None:
        """The setting means these of theirs."""
        self.settings.update(to)
        self._accounted.add(setting)
        self.report.taken.append(Taken(setting, self.value(setting), dict(to), "", note))

    def change(self, setting: str, to: Mapping[str, Any] | str, why: str) -> None:
        """The setting becomes something that is not quite the same."""
        if not isinstance(to, str):
            self.settings.update(to)
        self._accounted.add(setting)
        self.report.changed.append(Changed(setting, self.value(setting), to, why))

    def leave(self, setting: str, why: str) -> None:
        """The setting has no counterpart."""
        self._accounted.add(setting)
        self.report.not_carried.append(NotCarried(setting, self.value(setting), why))

    def done(self, *settings: str) -> None:
        """Settings that went into other lines, or are off on both sides."""
        self._accounted.update(settings)

    def refuse(self, setting: str, text: str) -> RecipeError:
        """An error for what cannot be left out."""
        return RecipeError(f"{setting} is {self.value(setting)!r}: {text}")

    def settle(self) -> None:
        """What is left and differs from our defaults is not carried over."""
        defaults = dict(_leaves(_blank(self.recipe), ""))
        for setting, value in _leaves(self.recipe.model_dump(mode="json"), ""):
            if setting in self._accounted or defaults.get(setting) == value:
                continue
            names = (setting, setting.partition(".")[0])
            if any(name in self._accounted for name in names):
                continue
            why = next((REASONS[name] for name in names if name in REASONS), None)
            self.leave(setting, why or f"{self.trainer} has no such setting")


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _leaves(values: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        setting = f"{above}{name}"
        if isinstance(value, dict) and setting not in _WHOLE:
            yield from _leaves(value, f"{setting}.")
        else:
            yield setting, value


def _blank(recipe: Recipe) -> dict[str, Any]:
    """A recipe of the same kinds of sections with nothing set."""
    model = {"path": MISSING} if isinstance(recipe.model, SavedModel) else {}
    data = {"path": MISSING} if isinstance(recipe.data, FileData) else {"task": recipe.data.task}
    objective = {"name": recipe.objective.name}
    brings_none = recipe.data.task is None
    verifier = {"kind": "function", "function": MISSING_REWARD} if brings_none else {}
    tokenizer = (
        {} if isinstance(recipe.model, SavedModel) else {"tokenizer": recipe.model.tokenizer}
    )
    blank = {"model": {**model, **tokenizer}, "data": data, "verifier": verifier}
    return recipe_from({**blank, "objective": objective}).model_dump(mode="json")
