"""From a recipe to another trainer's file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gspo.recipes.importers import openrlhf_out, trl_out, verl_out
from gspo.recipes.importers.openrlhf_keys import FLAGS
from gspo.recipes.importers.openrlhf_out import WANDB_KEY
from gspo.recipes.importers.outgoing import Outgoing
from gspo.recipes.importers.report import Report
from gspo.recipes.importers.verl_keys import OVERLONG
from gspo.recipes.schema import Recipe
from gspo.recipes.yaml_text import to_text

#: Keys that Hydra adds, for verl's own defaults have no such place.
ADDED = (OVERLONG, "algorithm.filter_groups", "data.gen_batch_size")


@dataclass(frozen=True, slots=True)
class Exported:
    """settings: their key -> value. text: the file."""

    settings: dict[str, Any]
    report: Report
    text: str


def export_recipe(trainer: str, recipe: Recipe, source: str) -> Exported:
    """The settings of `trainer` ("trl", "verl" or "openrlhf") for a recipe. source: its name, for the
    first line of the file.

    RecipeError where the objective, or the cut into updates, has no counterpart there.
    """
    title, to_settings, written = _TRAINERS[trainer]
    out = Outgoing(title, recipe)
    to_settings(out)
    header = f"# From the recipe {source}, by gspo export {trainer}.\n"
    return Exported(out.settings, out.report, header + written(out.settings))


def _trl_text(settings: Mapping[str, Any]) -> str:
    return "# trl grpo --config THIS_FILE\n" + to_text(dict(settings))


def _verl_text(settings: Mapping[str, Any]) -> str:
    words = [
        f"{'+' if key.startswith(ADDED) else ''}{key}={_hydra(value)}"
        for key, value in settings.items()
    ]
    return _command("python3 -m verl.trainer.main_ppo", [shlex.quote(word) for word in words])


def _hydra(value: Any) -> str:
    """A value as Hydra reads it from a command line: `[a,b]`, `{a:1}`, true, null."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{','.join(map(_hydra, value))}]"
        case dict():
            return f"{{{','.join(f'{key}: {_hydra(inner)}' for key, inner in value.items())}}}"
        case _:
            return str(value)


def _openrlhf_text(settings: Mapping[str, Any]) -> str:
    options = list[str]()
    for key, value in settings.items():
        if key in FLAGS:
            options.append(f"--{key}")
        else:
            values = value if isinstance(value, list) else [value]
            options.append(f"--{key} {' '.join(map(_word, values))}")
    return _command("python3 -m openrlhf.cli.train_ppo_ray", options)


def _word(value: Any) -> str:
    return f'"{value}"' if value == WANDB_KEY else shlex.quote(str(value))


def _command(program: str, words: list[str]) -> str:
    return " \\\n    ".join([program, *words]) + "\n"


_TRAINERS: Mapping[
    str, tuple[str, Callable[[Outgoing], None], Callable[[Mapping[str, Any]], str]]
] = {
    "trl": ("TRL", trl_out.to_settings, _trl_text),
    "verl": ("verl", verl_out.to_settings, _verl_text),
    "openrlhf": ("OpenRLHF", openrlhf_out.to_settings, _openrlhf_text),
}
