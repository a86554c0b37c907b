"""When a finding becomes an alarm, and what a history counts as measured."""

from __future__ import annotations

import math

import pytest

from gspo.diagnostics.alarms import behaviour
from gspo.diagnostics.alarms.bell import REPEAT_STEPS, Bell, alarms_over
from gspo.diagnostics.alarms.history import Change, History, error_of
from tests.alarm_streams import FIXED, evaluation, stream

TRUNCATED = "length/truncated_share"


def steps_of(num_steps, truncated):
    rows = stream(num_steps, {TRUNCATED: truncated})
    return [alarm.step for alarm in alarms_over(rows, [], Bell(behaviour.RULES))]


def test_what_lasts_is_repeated_every_hundred_steps():
    assert REPEAT_STEPS == 100
    assert steps_of(250, 0.5) == [5, 105, 205]


def test_what_flickers_is_one_alarm():
    """Means of five steps around 0.2, never ten times in a row below it."""
    assert steps_of(99, lambda step: 0.5 if step % 10 < 4 else 0.0) == [5]


def test_what_cleared_is_raised_again():
    """Five steps at 0.5, then none: the mean is 0.2 or less from step 8 on, and clear at 17."""
    once = [1, 2, 3, 4, 5]
    assert steps_of(60, lambda step: 0.5 if step in (*once, 20, 21, 22) else 0.0) == [5, 22]
    assert steps_of(60, lambda step: 0.5 if step in (*once, 14, 15, 16) else 0.0) == [5]


def test_a_step_without_the_metric_does_not_clear():
    gap = range(8, 40)
    assert steps_of(60, lambda step: None if step in gap else 0.5) == [5]


def test_an_evaluation_clears_at_once():
    rows = stream(80)
    greedy = [0.996, 0.9, 0.99, 0.9]
    events = [evaluation(step, share) for step, share in zip((0, 40, 60, 80), greedy, strict=True)]
    assert [alarm.step for alarm in alarms_over(rows, events)] == [40, 80]


def test_a_second_fit_at_the_ceiling_is_no_second_alarm():
    ceiling = FIXED | {"high_held": "ceiling", "high_quantile": math.log1p(0.2)}
    fits = [ceiling | {"step": 4}, ceiling | {"step": 9, "kind": "refit"}]
    assert [a.step for a in alarms_over(stream(30), fits)] == [4]
    measured = FIXED | {"step": 12, "kind": "refit"}
    again = [*fits, measured, ceiling | {"step": 15, "kind": "refit"}]
    assert [a.step for a in alarms_over(stream(30), again)] == [4, 15]


def test_live_and_afterwards_the_same_alarms():
    rows = stream(60, {TRUNCATED: 0.5, "clip/cut_share_positive": 0.9})
    events = [FIXED, evaluation(0, 0.996), evaluation(60, 0.9)]
    bell, live = Bell(), []
    live += bell.evaluated(events[1])
    for row in rows:
        live += bell.step(row["step"], row, [e for e in events[:1] if e["step"] == row["step"]])
    live += bell.evaluated(events[2])
    assert live == alarms_over(rows, events)
    assert {alarm.rule for alarm in live} == {"truncation", "everything_cut", "greedy_falls"}


def test_the_numbers_of_an_evaluation_before_the_first_step_are_no_step():
    rows = [{"step": 0, "eval/greedy": 0.5}, *stream(5, {TRUNCATED: 0.5})]
    assert [alarm.step for alarm in alarms_over(rows, [])] == [5]


def test_the_bell_names_what_it_reads():
    bell = Bell()
    assert bell.reads("log_s/count/len_16-31")
    assert bell.reads("log_s/std_mb3")
    assert bell.reads("reward/mean")
    assert not bell.reads("log_s/histogram")
    assert not bell.reads("reward/means")


def history(values):
    made = History()
    for step, value in enumerate(values, start=1):
        made.add(step, {"x": value, "h": {"counts": [1]}, "t": True})
    return made


def test_a_window_is_measured_when_half_of_its_steps_are():
    made = history([1.0, math.nan, None, 4.0])
    assert made.mean("x", 4) == 2.5
    assert made.mean("x", 3) is None
    assert made.mean("x", 2) == 4.0
    assert made.mean("x", 2, skip=2) == 1.0
    assert made.mean("x", 5) is None
    assert made.steps[0] == (1, {"x": 1.0})


def test_a_change_and_its_standard_error_by_hand():
    """Spread 0.4 and 64 responses that count as 16: 0.1 a step, 0.1 / sqrt(2) a mean of two."""
    made = History()
    for step, mean in enumerate([0.1, 0.2, 0.6, 0.7], start=1):
        made.add(step, {"reward/mean": mean, "reward/std": 0.4, "step/responses": 64})
    change = made.change("reward/mean", 2, lag=2)
    assert change is not None
    assert change.difference == pytest.approx(0.5)
    assert change.error == pytest.approx(0.1)
    assert made.change("reward/mean", 3, lag=2) is None
    made.add(5, {"reward/mean": 0.7, "step/responses": 64})
    assert made.change("reward/mean", 2, lag=2) is None


def test_a_pass_rate_needs_no_spread():
    made = History()
    for step, rate in enumerate([0.5, 1.0], start=1):
        made.add(step, {"reward/pass_rate": rate, "step/responses": 100})
    assert made.change("reward/pass_rate", 1, lag=1) == Change(0.5, 0.1)


def test_events_that_do_not_say_what_they_are_about_are_not_measured():
    odd = [
        {"step": 40},
        {"kind": "refit"},
        {"step": 40, "kind": "refit", "low_quantile": None, "high_quantile": 0.01},
        {"step": 40, "kind": "evaluated", "num_prompts": 256, "eval/greedy": None},
        {"step": 40, "kind": "evaluated", "num_prompts": 0, "eval/greedy": 0.5},
    ]
    assert alarms_over(stream(80), odd) == []


def test_a_group_counts_as_one_response_where_groups_were_recorded():
    values = {"reward/pass_rate": 0.5, "step/responses": 256.0}
    assert error_of(values, "reward/pass_rate") == pytest.approx(0.5 / 8)  # 256 / 4
    assert error_of({**values, "step/groups": 16.0}, "reward/pass_rate") == pytest.approx(0.5 / 4)
    assert error_of({"reward/pass_rate": 0.5}, "reward/pass_rate") is None
