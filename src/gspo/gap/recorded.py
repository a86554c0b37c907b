"""The gap of a recorded run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gspo.errors import DataError
from gspo.recorders.reader import Run

if TYPE_CHECKING:
    from gspo.diagnostics.gap import GapTokens

COLUMNS = ("engine_logp", "old_logp", "prompt_id", "sample")


def tokens_of_run(run: Run) -> GapTokens:
    """Every recorded response that has the trainer's log-probs at the start of its step."""
    import torch

    from gspo.diagnostics.gap import GapTokens
    from gspo.segments import Segments

    engine: list[float] = []
    trainer: list[float] = []
    lengths: list[int] = []
    names: list[str] = []
    for step, table in run.responses(COLUMNS):
        for row in table.to_pylist():
            given, old = row["engine_logp"], row["old_logp"]
            if old is None or given is None:
                continue
            if len(given) != len(old):
                raise DataError(
                    f"{run.path} step {step}, prompt {row['prompt_id']} sample {row['sample']}: {len(given)} engine log-probs for {len(old)} tokens; wanted one each"
                )
            engine += [math.nan if value is None else value for value in given]
            trainer += old
            lengths.append(len(old))
            names.append(f"step {step} {row['prompt_id']} sample {row['sample']}")
    if not lengths:
        raise DataError(
            f"{run.path} has no recorded response with log-probs; train with record.steps: true"
        )
    return GapTokens(
        engine_logp=torch.tensor(engine, dtype=torch.float32),
        trainer_logp=torch.tensor(trainer, dtype=torch.float32),
        segments=Segments.from_lengths(lengths),
        names=names,
    )


def band_of_run(run: Run) -> float:
    """The narrower side of the band in force at the end of the run, in nats."""
    from gspo.diagnostics.calibration import is_provisional

    for row in reversed(run.metrics()):
        low, high = row.get("clip/low"), row.get("clip/high")
        if isinstance(low, float) and isinstance(high, float) and 0 <= low < 1:
            if is_provisional(low, high):
                raise DataError(
                    f"{run.path} has not measured its clip range yet; say which range with --clip LOW,HIGH"
                )
            return min(-math.log1p(-low), math.log1p(high))
    raise DataError(
        f"{run.path} recorded no fixed band on log s (a token objective, a length-fair clip, or lost metrics); say which range with --clip LOW,HIGH"
    )
