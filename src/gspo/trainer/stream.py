"""Prompts in data order, sampled into judged groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gspo.data.stream_order import prompts_at
from gspo.engines.base import Engine, Sampling
from gspo.errors import GspoError
from gspo.stats import Mean, Stats
from gspo.trainer.dynamic_sampling import Harvest
from gspo.trainer.interrupt import StopRequest
from gspo.trainer.length_schedule import LengthSchedule
from gspo.trainer.query_set import QuerySet, Refresh
from gspo.trainer.state import TrainState
from gspo.trainer.taken import Judge, Taken
from gspo.types import Group, Prompt


class RolloutStream:
    """The next P groups of a run. Which prompts, and every random number of their responses,
    follow from the state alone, so a resumed run samples the same.

    lengths: a limit that grows; None is that of `sampling`. max_factor: of dynamic sampling; None
    trains on every group. refresh: of the query set; None draws from all prompts.
    """

    def __init__(
        self,
        engine: Engine,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        prompts_per_step: int,
        *,
        lengths: LengthSchedule | None = None,
        max_factor: float | None = None,
        refresh: Refresh | None = None,
    ) -> None:
        self._engine = engine
        self._prompts = prompts
        self._sampling = sampling
        self._prompts_per_step = prompts_per_step
        self._lengths = lengths
        self._max_factor = max_factor
        self._refresh = refresh

    def take(self, state: TrainState, judge: Judge, stop: StopRequest) -> Taken | None:
        """Judged groups of step `state.step + 1`, in data order; None when asked to stop
        meanwhile."""
        step, wanted = state.step + 1, self._prompts_per_step
        queries = QuerySet.of(state.queries, len(self._prompts))
        at_most = wanted if self._max_factor is None else int(wanted * self._max_factor)
        harvest = Harvest(wanted, at_most)
        numbers: list[int] = []
        while (more := harvest.next_round() if numbers else wanted) > 0:
            # Counted from the step's first prompt, so that one that comes again has another name.
            places = queries.places(state.seed, state.cursor, len(numbers) + more)[-more:]
            groups = self._sampled(prompts_at(self._prompts, places), state, stop)
            if groups is None:
                return None
            numbers += [number for number, _ in places]
            harvest.add(judge(groups))
        chosen = harvest.groups if self._max_factor is None else harvest.chosen(step)
        stats = self._stats(step, harvest, queries)
        memory: Mapping[str, Any] = {}
        if self._refresh is not None:
            queries = queries.measured(numbers, harvest.groups)
            if step % self._refresh.every == 0:
                cursor = state.cursor + len(numbers)
                queries = queries.refreshed(self._refresh, cursor, wanted)
            memory = queries.memory()
        return Taken(groups=chosen, sampled=harvest.groups, queries=memory, stats=stats)

    def _sampled(
        self, chosen: Sequence[Prompt], state: TrainState, stop: StopRequest
    ) -> list[Group] | None:
        step = state.step + 1
        sampling = replace(self._sampling, seed=state.seed, step=step)
        if self._lengths is not None:
            sampling = replace(sampling, max_tokens=self._lengths.at(step))
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
        for prompt in chosen:
            _check_ids(prompt, groups[prompt.id])
        return [groups[p.id] for p in chosen]

    def _stats(self, step: int, harvest: Harvest, queries: QuerySet) -> Stats:
        stats: Stats = {}
        if self._lengths is not None:
            stats["rollout/max_tokens"] = Mean(self._lengths.at(step), 1)
        if self._max_factor is not None:
            stats |= harvest.stats()
        return stats if self._refresh is None else stats | queries.stats()


def _check_ids(prompt: Prompt, group: Group) -> None:
    """What the engine continued is what the trainer will score."""
    for rollout in group.rollouts:
        if tuple(rollout.prompt_ids) != tuple(prompt.ids):
            raise GspoError(
                f"the engine continued other ids than those of prompt {prompt.id!r}: {list(rollout.prompt_ids)[:8]} … ({len(rollout.prompt_ids)} tokens), wanted {list(prompt.ids)[:8]} … ({len(prompt.ids)}); an engine must take `Prompt.ids` as they are"
            )
