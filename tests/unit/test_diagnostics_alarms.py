"""Each rule: a stream that must raise it and no other, and one just on the other side."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from gspo.diagnostics.alarms.bell import RULES, Bell, alarms_over
from gspo.diagnostics.calibration import PROVISIONAL_CLIP
from tests.alarm_streams import FIXED, Value, after, evaluation, stream

EVENTS = [FIXED, evaluation(0, 0.6), evaluation(60, 0.8)]


@dataclass(frozen=True)
class Case:
    """Changes to the healthy stream that raise the rule, and near misses that do not."""

    raised: dict[str, Value]
    missed: list[dict[str, Value]]
    events: list[dict[str, Any]] = field(default_factory=lambda: EVENTS)
    missed_events: list[dict[str, Any]] = field(default_factory=lambda: EVENTS)


def rising(slope: float) -> Value:
    """Level for 20 steps, then up by `slope` a step."""
    return lambda step: 0.3 + slope * max(step - 20, 0)


def short(share: float, **more: Value) -> dict[str, Value]:
    return {"clip/cut_share/len_16-31": share, "clip/cut_share/len_32-63": 0.1, **more}


#: 0.45 x sqrt(4 / 256) = 0.056 is the standard error of one step's reward.
CASES = {
    "reward_collapse": Case(
        {"reward/mean": after(30, 0.39, before=0.8)},
        [
            {"reward/mean": after(30, 0.41, before=0.8)},
            {"reward/mean": after(30, 0.39, before=0.8), "step/responses": 16.0},
            # Slower than ten steps: by 0.03 a step it takes 14 to half of 0.8.
            {"reward/mean": lambda step: max(0.8 - 0.03 * max(step - 20, 0), 0.1)},
            # Half of the way down to -1 is -0.1.
            {"reward/mean": after(30, -0.09, before=0.8), "reward/min": -1.0},
        ],
    ),
    "reward_hacking": Case(
        {"reward/mean": rising(0.015), "reward/strict_mean": rising(0.003)},
        [
            {"reward/mean": rising(0.015), "reward/strict_mean": rising(0.0045)},
            {"reward/mean": rising(0.002), "reward/strict_mean": 0.2},
            {"reward/mean": rising(0.015), "reward/strict_mean": None},
        ],
    ),
    "greedy_falls": Case(
        {},
        [{}, {"reward/pass_rate": 0.5}],
        events=[FIXED, evaluation(0, 0.996), evaluation(60, 0.93)],
        missed_events=[FIXED, evaluation(0, 0.996), evaluation(60, 0.97)],
    ),
    "no_answer": Case(
        {"reward/part/maths/no_answer": 0.96, "reward/part/other/no_answer": 0.1},
        [{"reward/part/no_answer": 0.94}, {"reward/part/unread": 1.0}],
    ),
    "zero_variance_groups": Case({"groups/zero_variance": 0.81}, [{"groups/zero_variance": 0.79}]),
    "entropy_collapse": Case(
        {"policy/entropy": after(30, 0.0149, before=0.15), "reward/mean": 0.5},
        [
            {"policy/entropy": after(30, 0.0151, before=0.15), "reward/mean": 0.5},
            {"policy/entropy": after(30, 0.0149, before=0.15), "reward/mean": 0.91},
            {"policy/entropy": after(30, 0.0149, before=0.15), "reward/mean": rising(0.014)},
        ],
    ),
    "length_drift": Case(
        {"length/mean": after(30, 53.0, before=35.0), "reward/mean": 0.5},
        [
            {"length/mean": after(30, 52.0, before=35.0), "reward/mean": 0.5},
            {"length/mean": after(30, 24.0, before=35.0), "reward/mean": 0.5},
            {
                "length/mean": after(30, 53.0, before=35.0),
                "reward/mean": after(28, 0.8, before=0.5),
                "reward/strict_mean": None,
            },
        ],
    ),
    "truncation": Case({"length/truncated_share": 0.21}, [{"length/truncated_share": 0.19}]),
    "everything_cut": Case({"clip/cut_share_positive": 0.51}, [{"clip/cut_share_positive": 0.5}]),
    "nothing_cut": Case(
        {"clip/cut_share": 0.0009},
        [
            {"clip/cut_share": 0.0011},
            # 20 steps of 7 responses are fewer than 150.
            {
                "clip/cut_share": 0.0,
                "log_s/count/len_16-31": 3.0,
                "log_s/count/len_32-63": 4.0,
            },
            {"clip/cut_share": 0.0, "clip/high": PROVISIONAL_CLIP.high},
            {"clip/cut_share": 0.0, "clip/outside_share": None},
            # Measured until step 45: not yet 20 steps under the fixed range.
            {"clip/cut_share": 0.0, "clip/high": after(46, 0.003, before=PROVISIONAL_CLIP.high)},
        ],
    ),
    "short_responses_cut": Case(
        short(0.31),
        [
            short(0.29),
            # 5 a step are 50 in ten steps, which count as 12: 0.31 +- 0.13 is no news.
            short(0.31, **{"log_s/count/len_16-31": 5.0}),
            short(0.31, **{"log_s/count/len_16-31": 4.0}),
            short(0.31, **{"log_s/count/len_32-63": None}),
            short(0.31) | {"clip/cut_share/len_32-63": None},
        ],
    ),
    "few_tokens": Case(
        {"attribution/top1_share": 0.91},
        [
            {"attribution/top1_share": 0.89},
            {"attribution/top1_share": 1.0, "length/mean": 9.0},
        ],
    ),
    # The band's narrower side is log(1.003) = 2.996e-3, a third of it 9.985e-4.
    "engine_bias": Case(
        {"gap/log_s_mean": -1.0e-3, "gap/log_s_std": 1e-3},
        [
            {"gap/log_s_mean": -9.9e-4, "gap/log_s_std": 1e-3},
            {"gap/log_s_mean": -1.0e-3, "gap/log_s_std": 1e-2},
            {"gap/log_s_mean": -1.0e-3, "gap/log_s_std": 1e-3, "clip/high": None},
        ],
    ),
    "ratio_explosion": Case({"log_s/std": 0.101}, [{"log_s/std": 0.099}, {"log_s/std": None}]),
    "clip_at_ceiling": Case(
        {},
        [{}],
        events=[FIXED | {"high_held": "ceiling", "high_quantile": math.log1p(0.101)}],
        missed_events=[FIXED | {"high_quantile": math.log1p(0.099)}],
    ),
    "clip_against_advantage": Case(
        {},
        [{}],
        events=[FIXED | {"low_held": "floor", "low_quantile": 1.1e-5}],
        missed_events=[FIXED | {"low_held": "floor", "low_quantile": 0.9e-5}],
    ),
}


def test_every_rule_has_a_case():
    assert list(CASES) == [rule.name for rule in RULES]


def test_a_healthy_run_raises_nothing():
    assert alarms_over(stream(130), [*EVENTS, evaluation(130, 0.9)]) == []


@pytest.mark.parametrize("name", CASES)
def test_it_is_raised_once_and_no_other(name):
    case = CASES[name]
    alarms = alarms_over(stream(60, case.raised), case.events)
    assert [alarm.rule for alarm in alarms] == [name]
    (rule,) = (rule for rule in RULES if rule.name == name)
    assert alarms[0].cause.endswith(rule.cause)
    assert alarms[0].advice == rule.advice
    assert math.isfinite(alarms[0].value)


@pytest.mark.parametrize(
    ("name", "changes"),
    [(name, changes) for name, case in CASES.items() for changes in case.missed],
)
def test_a_near_miss_raises_nothing(name, changes):
    assert alarms_over(stream(60, changes), CASES[name].missed_events) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_reads_what_it_names_and_is_silent_without(rule):
    """What the watch keeps of a step is what the rules name."""
    case = CASES[rule.name]
    rows = stream(60, case.raised)
    named = [{n: v for n, v in row.items() if n == "step" or rule.reads(n)} for row in rows]
    assert len(alarms_over(named, case.events, Bell([rule]))) == 1
    bare = [{n: v for n, v in row.items() if n == "step" or not rule.reads(n)} for row in rows]
    events = case.events if rule.metrics else []
    assert alarms_over(bare, events, Bell([rule])) == []


def test_a_collapse_names_the_update_that_did_it():
    """0.8 up to step 30; its updates make step 31 earn 0.1. Minibatch 2 moved log s most: rms of
    the third minibatch is 0.5, of the second 0.002."""
    blow = {
        "reward/mean": after(31, 0.1, before=0.8),
        "log_s/mean_mb3": after(30, -0.3, before=0.0),
        "log_s/std_mb3": after(30, 0.4, before=0.003),
        "grad/norm_max": after(30, 12.5, before=1.0),
    }
    (alarm,) = alarms_over(stream(60, blow), [FIXED])
    assert (alarm.rule, alarm.step, alarm.value, alarm.threshold) == (
        "reward_collapse",
        31,
        0.1,
        0.4,
    )
    assert "Best was 0.8 at step 21" in alarm.cause
    assert "The updates of step 30 did it (grad norm up to 12.5; minibatch 2 moved" in alarm.cause
    assert "to rms 0.5)" in alarm.cause


def test_a_collapse_without_minibatches_names_the_step_alone():
    bare = dict.fromkeys(("grad/norm_max", "log_s/mean_mb2"))
    (alarm,) = alarms_over(stream(40, {"reward/mean": after(31, 0.1, 0.8), **bare}), [])
    assert "The updates of step 30 did it." in alarm.cause


def test_hacking_is_found_at_every_speed():
    slow = {"reward/mean": rising(0.004), "reward/strict_mean": 0.3}
    (alarm,) = alarms_over(stream(80, slow), [])
    assert alarm.rule == "reward_hacking"
    assert "In 40 steps" in alarm.cause
    fast = {"reward/mean": after(30, 0.9, before=0.3), "reward/strict_mean": 0.3}
    (alarm,) = alarms_over(stream(60, fast), [])
    assert (alarm.step, alarm.value, "In 10 steps" in alarm.cause) == (30, 0.0, True)


def test_greedy_accuracy_with_room_must_rise():
    """The pass rate rises from 0.315 to 0.59 (means of five steps): greedy has to reach 0.5 +
    0.275 / 4 = 0.569, and from 0.9 nothing."""

    def found(before, now):
        return alarms_over(stream(60), [evaluation(0, before), evaluation(60, now)])

    (alarm,) = found(0.5, 0.56)
    assert alarm.threshold == pytest.approx(0.5 + 0.275 / 4)
    assert alarm.rule == "greedy_falls"
    assert found(0.5, 0.58) == []
    assert found(0.9, 0.9) == []
    unknown = stream(60, {"step/responses": None})
    assert alarms_over(unknown, [evaluation(0, 0.9), evaluation(60, 0.1)]) == []


def test_the_best_earlier_evaluation_counts_however_long_ago():
    events = [evaluation(0, 0.996), evaluation(40, 0.96), evaluation(60, 0.93)]
    (alarm,) = alarms_over(stream(60), events)
    assert (alarm.step, "Since step 0" in alarm.cause) == (60, True)
    assert alarms_over(stream(9), [evaluation(0, 0.996), evaluation(9, 0.5)]) == []
    assert alarms_over([], [evaluation(0, 0.9)]) == []


def test_bounded_units_come_before_the_spread():
    (alarm,) = alarms_over(stream(20, {"ratio/bounded": after(7, 3.0, before=0.0)}), [])
    assert (alarm.step, alarm.value, alarm.threshold) == (7, 3.0, 0.0)


def test_a_lower_bound_of_one_is_none():
    """low 1: the ratio may fall to 0, and the narrower side is the upper one."""
    changes = {"clip/low": 1.0, "gap/log_s_mean": 9.99e-4, "gap/log_s_std": 1e-5}
    (alarm,) = alarms_over(stream(20, changes), [])
    assert alarm.threshold == pytest.approx(math.log(1.003) / 3)


def test_a_fit_names_its_side():
    low = FIXED | {"low_held": "ceiling", "low_quantile": math.log1p(-0.2)}
    (alarm,) = alarms_over(stream(10), [low])
    assert (alarm.value, alarm.threshold) == (pytest.approx(0.2), 0.1)
    assert "On the low side" in alarm.cause
    high = FIXED | {"high_held": "floor", "high_quantile": -0.01}
    (alarm,) = alarms_over(stream(10), [high])
    assert alarm.value == pytest.approx(math.expm1(-0.01))
    assert "high side, of responses with A > 0" in alarm.cause
