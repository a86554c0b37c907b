"""A run's recipe, and how it differs from another one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gspo.dashboard.folder import RunFolderView
from gspo.dashboard.plain import plain


def recipe(run: RunFolderView, against: RunFolderView | None = None) -> dict[str, Any]:
    """recipe.yaml as it is; with another run also the settings that differ. A setting that one
    of them lacks is null there."""
    answer: dict[str, Any] = {"text": run.recipe_text()}
    if against is not None:
        here, there = _settings(run.recipe()), _settings(against.recipe())
        answer["differences"] = [
            {"key": key, "here": plain(here.get(key)), "there": plain(there.get(key))}
            for key in sorted({*here, *there})
            if here.get(key) != there.get(key)
        ]
    return answer


def _settings(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted names of all settings; lists stay whole."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= _settings(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
