"""What the parts of the reward were, over the rows of a step."""

from __future__ import annotations

from collections.abc import Sequence

from gspo.recorders.base import ResponseRow
from gspo.stats import Mean, Stats
from gspo.verifiers.strict import STRICT

#: Names a step; more are not a sum of parts but a function that invents names, and its values are
#: in the rows.
MAX_PARTS = 32


def part_stats(rows: Sequence[ResponseRow]) -> Stats:
    """`reward/part/{part}`: its mean over the scored responses whose verdict has it. The strict
    grader is no part: it has metrics of its own."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if row.reward is None:
            continue
        for name, value in row.parts.items():
            if name != STRICT and (name in values or len(values) < MAX_PARTS):
                values.setdefault(name, []).append(value)
    return {f"reward/part/{name}": Mean(sum(own), len(own)) for name, own in values.items()}
