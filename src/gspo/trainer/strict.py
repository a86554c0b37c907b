"""The training reward against the strict grader's, over the rows of a step."""

from __future__ import annotations

from collections.abc import Sequence

from gspo.recorders.base import ResponseRow
from gspo.stats import Mean, Stats
from gspo.verifiers.strict import STRICT


def strict_stats(rows: Sequence[ResponseRow]) -> Stats:
    """`reward/strict_mean` and `reward/strict_gap`, over responses that both graders scored, and
    `verifier/strict_failed_share`."""
    pairs = [
        (row.reward, row.parts[STRICT])
        for row in rows
        if row.reward is not None and STRICT in row.parts
    ]
    broken = sum(STRICT not in row.parts for row in rows)
    return {
        "reward/strict_mean": Mean(sum(strict for _, strict in pairs), len(pairs)),
        "reward/strict_gap": Mean(sum(given - strict for given, strict in pairs), len(pairs)),
        "verifier/strict_failed_share": Mean(broken, len(rows)),
    }
