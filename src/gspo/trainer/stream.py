"""Prompts in data order, sampled into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gspo.data.stream_order import next_prompts
from gspo.engines.base import Engine, Sampling
from gspo.errors import GspoError
from gspo.trainer.interrupt import StopRequest
from gspo.trainer.state import TrainState
from gspo.types import Group, Prompt


class RolloutStream:
    """The next P groups of a run. Which prompts, and every random number of their responses,
    follow from the state alone, so a resumed run samples the same."""

    def __init__(
        self, engine: Engine, prompts: Sequence[Prompt], sampling: Sampling, prompts_per_step: int
    ) -> None:
        self._engine = engine
        self._prompts = prompts
        self._sampling = sampling
        self._prompts_per_step = prompts_per_step

    def take(self, state: TrainState, stop: StopRequest) -> list[Group] | None:
        """Groups of step `state.step + 1`, in prompt order; None when asked to stop meanwhile."""
        chosen = next_prompts(self._prompts, state.seed, state.cursor, self._prompts_per_step)
        sampling = replace(self._sampling, seed=state.seed, step=state.step + 1)
        groups: dict[str, Group] = {}
        for group in self._engine.generate(chosen, sampling):
            if stop.requested:
                return None
            groups[group.prompt.id] = group
        missing = [p.id for p in chosen if p.id not in groups]
        if missing:
            raise GspoError(
                f"the engine returned no group for {len(missing)} of {len(chosen)} prompts, first {missing[0]!r}; every prompt needs one"
            )
        return [groups[p.id] for p in chosen]
