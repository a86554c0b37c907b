"""The recorder seam: what a step leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gspo.stats import Statistic
from gspo.types import Alarm


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRow:
    """One response of a step, as it lies in steps/NNNNNN.parquet. Lists have one entry a trained
    token; log-probs are nats. minibatch counts from 1. cut_low, cut_high: units cut (0 or 1 for
    sequence objectives, tokens for token objectives). logp and log_s are None where the update
    did not run the response; `skipped` then says why."""

    prompt_id: str
    source: str
    group: int
    sample: int
    prompt: str
    text: str
    tokens: list[int]
    reward: float | None
    parts: Mapping[str, float]
    failure: str | None
    advantage: float
    length: int
    finish: str
    version: int
    minibatch: int | None
    engine_logp: list[float | None]
    old_logp: list[float] | None
    logp: list[float] | None
    log_s: float | None
    cut_low: int
    cut_high: int
    loss: float | None
    skipped: str | None


@runtime_checkable
class Recorder(Protocol):
    """Takes finished steps. A recorder never changes what it is given."""

    def step(
        self, step: int, stats: Mapping[str, Statistic], responses: Sequence[ResponseRow]
    ) -> None:
        """One finished step: statistics by their name in docs/metrics.md, one row a response."""
        ...

    def alarm(self, alarm: Alarm) -> None:
        """Something to look at."""
        ...

    def close(self) -> None:
        """Everything recorded is on disk when this returns."""
        ...
