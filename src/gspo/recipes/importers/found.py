"""What stands in another trainer's file: keys, values, places. What is unknown or cannot be read is
an error with its line, or under `lenient` a line of the report."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers.draft import SECRETS, Given
from gspo.recipes.importers.report import NotCarried

MAX_BYTES = 1_000_000  # a launch script has a few thousand


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that only running the file would tell. text: as it stands there."""

    text: str
    why: str


@dataclass(slots=True)
class Found:
    """Keys of a file, and what stands beside them without a counterpart."""

    given: dict[str, Given] = field(default_factory=dict)
    lost: list[NotCarried] = field(default_factory=list)

    def add(self, key: str, value: Any, place: str) -> None:
        """RecipeError where the key is set twice."""
        if key in self.given:
            first = self.given[key].place
            raise RecipeError(f"{place}: {key} is set twice, first at {first}; remove one")
        self.given[key] = Given(value, place)


def text_of(path: Path) -> str:
    """The text of a file, which must be UTF-8 and no larger than a script."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RecipeError(f"{path} has more than {MAX_BYTES} bytes; that is no settings file")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise RecipeError(f"cannot read {path}: {error.strerror}") from error


def checked(
    found: Found,
    known: Iterable[str],
    unused: Mapping[str, str],
    subtrees: Mapping[str, str],
    trainer: str,
    *,
    lenient: bool,
) -> Found:
    """The keys that are known and readable. known: names. unused: those of them that are
    not carried over -> why. subtrees: `a.b.` -> why nothing below it is. RecipeError, a line for each key, unless lenient."""
    names = frozenset(known)
    kept, errors, fatal = Found(lost=list(found.lost)), list[str](), list[str]()
    for key, given in found.given.items():
        value = given.value
        shown = value.text if isinstance(value, Unreadable) else value
        below = next((why for tree, why in subtrees.items() if f"{key}.".startswith(tree)), None)
        if key.startswith("$"):
            fatal.append(f"{given.place}: {key} is not stated in the file; write out what it holds")
        elif key not in names and below is not None:
            kept.lost.append(NotCarried(key, shown, below))
        elif key not in names:
            errors.append(f"{given.place}: {_unknown(key, names, trainer)}")
            kept.lost.append(
                NotCarried(key, shown, f"{trainer} has no setting of this name known here")
            )
        elif isinstance(value, Unreadable) and key in SECRETS:
            kept.given[key] = Given(value.text, given.place)
        elif isinstance(value, Unreadable) and key in unused:
            kept.lost.append(NotCarried(key, shown, unused[key]))
        elif isinstance(value, Unreadable):
            errors.append(
                f"{given.place}: {key} is {value.text}: {value.why}; write its value there"
            )
            kept.lost.append(NotCarried(key, shown, f"its value cannot be read: {value.why}"))
        else:
            kept.given[key] = given
    if fatal:  # any setting may hide in it, the objective too
        raise RecipeError("\n".join(fatal))
    if errors and not lenient:
        hint = "; or leave them out with --lenient" if len(errors) > 1 else ", or use --lenient"
        raise RecipeError("\n".join(errors) + hint)
    return kept


def _unknown(key: str, names: frozenset[str], trainer: str) -> str:
    """Nearest by the last part of the name, then by the whole of it."""
    leaf = key.rpartition(".")[2]
    same = sorted(name for name in names if name.replace(".", "_").endswith(key.replace(".", "_")))
    same = same or sorted(name for name in names if name.rpartition(".")[2] == leaf)
    near = same or difflib.get_close_matches(key, names, n=2, cutoff=0.6)
    leaves = {name.rpartition(".")[2]: name for name in names}
    near = near or [leaves[name] for name in difflib.get_close_matches(leaf, leaves, n=2)]
    hint = f"; did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    return f"{trainer} has no setting {key} that is known here{hint}"
