"""When a finding becomes an alarm: once, again when it had cleared, and every REPEAT_STEPS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gspo.diagnostics.alarms import behaviour, reward, trust
from gspo.diagnostics.alarms.history import History, is_finite
from gspo.diagnostics.alarms.rule import Finding, Rule
from gspo.types import Alarm

#: Every rule, in the order of docs/alarms.md.
RULES: tuple[Rule, ...] = (*reward.RULES, *behaviour.RULES, *trust.RULES)

#: What an evaluation must say to be one.
EVALUATED = ("num_prompts", "eval/greedy")

#: Steps after which an alarm that never cleared is raised again: whoever looks in later sees it,
#: and a run of thousands of steps is not flooded.
REPEAT_STEPS = 100


@dataclass(slots=True)
class _Ringing:
    """A raised rule. since: step of its last alarm. clear: measured steps without a finding."""

    since: int
    clear: int = 0


class Bell:
    """Takes a run's steps and events in order, and says which alarms each raises."""

    def __init__(self, rules: Iterable[Rule] = RULES) -> None:
        self._rules = tuple(rules)
        self._history = History()
        self._ringing: dict[str, _Ringing] = {}

    def reads(self, metric: str) -> bool:
        """Whether any rule looks at this metric."""
        return any(rule.reads(metric) for rule in self._rules)

    def step(
        self, step: int, values: Mapping[str, Any], events: Iterable[Mapping[str, Any]] = ()
    ) -> list[Alarm]:
        """A finished step, with what happened in it."""
        self._history.add(step, values)
        self._history.events.extend(events)
        return self._check("step", step)

    def evaluated(self, event: Mapping[str, Any]) -> list[Alarm]:
        """An evaluation, after its step: an "evaluated" event of the run folder. One without
        numbers is not measured."""
        if not all(is_finite(event.get(name)) for name in EVALUATED) or event["num_prompts"] < 1:
            return []
        self._history.events.append(event)
        return self._check("evaluation", event["step"])

    def _check(self, after: str, step: int) -> list[Alarm]:
        asked = (rule for rule in self._rules if rule.after == after)
        found = ((rule, rule.find(self._history)) for rule in asked)
        return [
            _alarm(step, rule, finding)
            for rule, finding in found
            if finding is not None and self._rings(step, rule, finding)
        ]

    def _rings(self, step: int, rule: Rule, finding: Finding) -> bool:
        ringing = self._ringing.get(rule.name)
        if not finding.raised:
            if ringing is not None:
                ringing.clear += 1
                if ringing.clear >= rule.clear_steps:
                    del self._ringing[rule.name]
            return False
        if ringing is not None:
            ringing.clear = 0
            if step - ringing.since < REPEAT_STEPS:
                return False
        self._ringing[rule.name] = _Ringing(since=step)
        return True


def _alarm(step: int, rule: Rule, finding: Finding) -> Alarm:
    return Alarm(
        step=step,
        rule=rule.name,
        value=finding.value,
        threshold=finding.threshold,
        cause=f"{finding.detail} {rule.cause}",
        advice=rule.advice,
    )


def alarms_over(
    metrics: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    bell: Bell | None = None,
) -> list[Alarm]:
    """The alarms of a recorded run: metrics and events as the run folder's reader gives them.

    bell: takes them, and knows the run afterwards; a new one without.
    """
    bell = bell or Bell()
    rows = {row["step"]: row for row in metrics}
    whole = sorted(filter(_is_whole, events), key=_step)
    happened = {step: list(group) for step, group in groupby(whole, key=_step)}
    alarms: list[Alarm] = []
    for step in sorted({*rows, *happened}):
        evaluations = [e for e in happened.get(step, []) if e["kind"] == "evaluated"]
        others = [e for e in happened.get(step, []) if e["kind"] != "evaluated"]
        if step > 0 and step in rows:
            alarms += bell.step(step, rows[step], others)
        for event in evaluations:
            alarms += bell.evaluated(event)
    return alarms


def _is_whole(event: Mapping[str, Any]) -> bool:
    """It says when and what, and a change of the clip range says from which quantiles."""
    if not isinstance(event.get("step"), int) or not isinstance(event.get("kind"), str):
        return False
    measured = event["kind"] not in ("clip_fixed", "refit")
    return measured or all(is_finite(event.get(f"{side}_quantile")) for side in ("low", "high"))


def _step(event: Mapping[str, Any]) -> int:
    return event["step"]
