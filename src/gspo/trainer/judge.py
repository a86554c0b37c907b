"""Verdicts for groups, and the rule that stops a run whose verifier is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gspo.errors import VerifierError
from gspo.trainer.clock import Clock
from gspo.types import Group
from gspo.verifiers.base import Verifier


def judge_groups(verifier: Verifier, groups: Iterable[Group]) -> list[Group]:
    """Every rollout with its verdict. An aborted request is unscorable and is not judged."""
    return [_judge(verifier, group) for group in groups]


def _judge(verifier: Verifier, group: Group) -> Group:
    verdicts = verifier.judge(group.prompt, group.rollouts)
    if len(verdicts) != len(group.rollouts):
        raise VerifierError(
            f"{type(verifier).__name__} gave {len(verdicts)} verdicts for {len(group.rollouts)} responses to prompt {group.prompt.id!r}; wanted one each, in order"
        )
    judged = [r.judged(v) for r, v in zip(group.rollouts, verdicts, strict=True)]
    return replace(group, rollouts=judged)


def failures(groups: Sequence[Group]) -> Counter[str]:
    """How often each reason for having no verdict occurred."""
    return Counter(
        rollout.verdict.failure or "no reason given"
        for group in groups
        for rollout in group.rollouts
        if rollout.verdict is not None and rollout.verdict.reward is None
    )


#: Verdicts looked back on: enough that one failure among them is less than 1 in 50 ten times over.
WINDOW = 500


def latest_verdicts(
    before: Sequence[Sequence[int]], judged: int, failed: int
) -> tuple[tuple[int, int], ...]:
    """(judged, failed) of this step and of the steps before it, back to WINDOW verdicts."""
    window = [(judged, failed)]
    for step_judged, step_failed in reversed(before):
        if sum(count for count, _ in window) >= WINDOW:
            break
        window.insert(0, (step_judged, step_failed))
    return tuple(window)


def check_failures(
    verdicts: Sequence[Sequence[int]], reasons: Counter[str], max_share: float
) -> None:
    """Stop when more than `max_share` of these verdicts failed: the reward would be a lie."""
    judged, failed = (sum(column) for column in zip(*verdicts, strict=True))
    if judged and failed / judged > max_share:
        worst = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3))
        raise VerifierError(
            f"the verifier failed on {failed} of the last {judged} responses, more than verifier.max_failed_share {max_share:g} allows. This step: {worst}. Try it by hand with 'gspo verify'"
        )


class StepJudge:
    """Judges the groups of one step, on its clock. More failures than `max_share` allows, among
    these and the verdicts of the steps before, stop the run, whatever the rewards say."""

    def __init__(
        self,
        verifier: Verifier,
        clock: Clock,
        before: Sequence[Sequence[int]],
        max_share: float,
    ) -> None:
        self._verifier = verifier
        self._clock = clock
        self._before = before
        self._max_share = max_share
        self._judged = 0
        self._reasons: Counter[str] = Counter()

    def __call__(self, groups: Sequence[Group]) -> list[Group]:
        """The same groups with verdicts."""
        with self._clock.part("judge"):
            judged = judge_groups(self._verifier, groups)
            self._judged += sum(len(group.rollouts) for group in judged)
            self._reasons += failures(judged)
            check_failures(self.verdicts, self._reasons, self._max_share)
        return judged

    @property
    def verdicts(self) -> tuple[tuple[int, int], ...]:
        """(judged, failed) of this step so far and of the latest before it."""
        return latest_verdicts(self._before, self._judged, self._reasons.total())
