"""What the settings of the `verifier` section must agree on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gspo.recipes.sections import FileData
from gspo.recipes.verifier_section import NEEDED, SETTINGS_OF, GraderSection, VerifierSection

if TYPE_CHECKING:
    from gspo.recipes.schema import Recipe

Conflict = tuple[str, str]
FUNCTION = re.compile(r".+:[A-Za-z_]\w*")
COMPARING = ("exact", "math")  # kinds that read the answer column


def verifier_conflicts(recipe: Recipe) -> Iterator[Conflict]:
    """Every rule the section breaks."""
    section, data = recipe.verifier, recipe.data
    for place, grader in section.graders:
        yield from _grader(place, grader, section)
        if grader.kind == "task" and isinstance(data, FileData):
            yield (
                f"{place}.kind",
                "is task, but data come from a file, which brings no verifier; set it to exact, "
                "math, code or function",
            )
        if grader.kind == "overlong" and (grader.buffer_tokens or 0) > recipe.rollout.max_tokens:
            yield (
                f"{place}.buffer_tokens",
                f"is {grader.buffer_tokens}, more than the longest response; set it below the "
                f"{recipe.rollout.max_tokens} of rollout.max_tokens",
            )
    yield from _parts(section)
    yield from _strict(section)
    kinds = [(place, grader.kind) for place, grader in section.graders]
    for place, kind in [*kinds, ("verifier.strict", section.strict)]:
        if (
            kind in COMPARING
            and isinstance(data, FileData)
            and data.columns.get("answer", "") is None
        ):
            where = place if place == "verifier.strict" else f"{place}.kind"
            yield (
                "data.columns.answer",
                f"is null, but {where}: {kind} compares with it; name the column",
            )


def _grader(place: str, grader: GraderSection, section: VerifierSection) -> Iterator[Conflict]:
    for setting in NEEDED.get(grader.kind, ()):
        if getattr(grader, setting) is None:
            example = "; set it to file.py:name" if setting == "function" else "; set it"
            yield f"{place}.{setting}", f"is null, but {place}.kind is {grader.kind}{example}"
    if grader.function is not None and not FUNCTION.fullmatch(grader.function):
        yield (
            f"{place}.function",
            f"is {grader.function!r}; wanted file.py:name or package.module:name",
        )
    for setting, kinds in SETTINGS_OF.items():
        given = getattr(grader, setting) is not None
        of_strict = setting == "marker" and section.strict == "exact"
        if given and grader.kind not in kinds and not of_strict:
            yield (
                f"{place}.{setting}",
                f"goes with {place}.kind: {' or '.join(kinds)}, which is {grader.kind}; set one of "
                "the two",
            )


def _parts(section: VerifierSection) -> Iterator[Conflict]:
    if not section.parts:
        return
    given = [name for name in (*SETTINGS_OF, "kind") if name in section.model_fields_set]
    given = [name for name in given if getattr(section, name) not in (None, "task")]
    if section.strict == "exact" and "marker" in given:
        given.remove("marker")
    if given:
        yield (
            f"verifier.{given[0]}",
            "goes with one verifier, but verifier.parts names several; move it into its part",
        )
    names = [part.name or part.kind for part in section.parts]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield "verifier.parts", f"has {name} more than once; give each a name of its own"
    if any(name == "strict" for name in names):
        yield "verifier.parts", "has a part named strict, which is the strict grader's; rename it"


def _strict(section: VerifierSection) -> Iterator[Conflict]:
    strict = section.strict
    if strict not in (None, *COMPARING) and not FUNCTION.fullmatch(strict):
        yield (
            "verifier.strict",
            f"is {strict!r}; wanted exact, math, file.py:name or package.module:name",
        )
