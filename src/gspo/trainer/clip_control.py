"""Which clip range is in force: the recipe's, or one that is measured and followed.

The rules of `clip: auto` are `gspo.diagnostics.refit`; here they meet the objective, the learning
rate's schedule and the training state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.refit import ClipEvent, ClipMemory, ClipRules, next_clip
from gspo.errors import DataError
from gspo.settings import GSPO, GSPOToken, ObjectiveSettings

__all__ = ["ClipControl", "ClipEvent"]


def _constant(step: int) -> float:
    """A learning rate that no schedule changes: only its changes matter to the range."""
    return 1.0


class ClipControl:
    """The objective in force. Without `cut_share` it never changes."""

    def __init__(
        self,
        objective: ObjectiveSettings,
        *,
        cut_share: float | None = None,
        warmup_steps: int = 0,
        learning_rate: Callable[[int], float] = _constant,
        memory: Mapping[str, Any] | None = None,
    ) -> None:
        """cut_share: measure for this share; None keeps the objective's own clip. warmup_steps:
        steps at the start that are not measured. learning_rate: of a step, counted from 1, mean
        over its updates. memory: what `memory()` gave before a resume; DataError if it is not
        that."""
        self._objective = objective
        self._rules = (
            None if cut_share is None else ClipRules(cut_share=cut_share, warmup_steps=warmup_steps)
        )
        self._learning_rate = learning_rate
        self._step, self._memory = _restore(memory) if memory else (0, ClipMemory())

    @property
    def objective(self) -> ObjectiveSettings:
        """The objective with the range in force in the step after the last one observed."""
        if self._rules is None or not isinstance(self._objective, GSPO | GSPOToken):
            return self._objective
        learning_rate = self._learning_rate(self._step + 1)
        return replace(self._objective, clip=self._memory.in_force(learning_rate, self._rules))

    def memory(self) -> dict[str, Any]:
        """JSON for the training state; empty when the range is the recipe's own."""
        return {} if self._rules is None else {"step": self._step, **asdict(self._memory)}

    def observe(self, step: int, responses: UpdatedResponses) -> ClipEvent | None:
        """Learn from a finished step; an event when that changes the range."""
        if self._rules is None:
            return None
        self._step = step
        self._memory, event = next_clip(
            self._memory, self._rules, step, responses, self._learning_rate(step)
        )
        return event


def _restore(memory: Mapping[str, Any]) -> tuple[int, ClipMemory]:
    try:
        lists = {name: tuple(memory[name]) for name in ("positive", "negative")}
        fields: dict[str, Any] = {name: memory[name] for name in memory if name != "step"}
        fields |= lists
        return int(memory["step"]), ClipMemory(**fields)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"the clip range's memory in the checkpoint cannot be read ({type(error).__name__}: {error}); it was written by another version: resume with that one, or train anew"
        ) from error
