"""The watch hands each alarm to every recorder, once."""

import torch

from gspo.stats import Histogram, Mean, Statistic
from gspo.trainer.clip_control import ClipEvent
from gspo.trainer.watch import Watch
from tests.alarm_streams import FIXED, evaluation, stream


class Alarms:
    """A recorder of alarms alone."""

    def __init__(self):
        self.rung = []

    def step(self, step, stats, responses): ...

    def alarm(self, alarm):
        self.rung.append((alarm.step, alarm.rule))

    def close(self): ...


def stats_of(row) -> dict[str, Statistic]:
    values = {name: Mean(v, 1) for name, v in row.items() if isinstance(v, float)}
    return values | {"log_s/histogram": Histogram.of(torch.tensor([0.0])), "gap/none": Mean(0, 0)}


TRUNCATED = stream(
    20, {"length/truncated_share": 0.5, "reward/pass_rate": lambda step: 0.3 + 0.02 * step}
)


def test_every_recorder_hears_of_it_once():
    first, second = Alarms(), Alarms()
    watch = Watch([first, second])
    for row in TRUNCATED:
        watch.step(row["step"], stats_of(row), None)
    assert first.rung == second.rung == [(5, "truncation")]


def test_what_happened_before_a_resume_is_known_and_not_said_again():
    heard = Alarms()
    watch = Watch([heard])
    watch.catch_up(TRUNCATED[:3], [evaluation(0, 0.996)])
    for row in TRUNCATED[3:10]:
        watch.step(row["step"], stats_of(row), None)
    assert heard.rung == [(5, "truncation")]
    again = Alarms()
    watch = Watch([again])
    watch.catch_up(TRUNCATED[:10], [evaluation(0, 0.996)])
    for row in TRUNCATED[10:]:
        watch.step(row["step"], stats_of(row), None)
    watch.evaluated(20, {"num_prompts": 256, "eval/greedy": 0.5})
    assert again.rung == [(20, "greedy_falls")]


def test_a_change_of_the_clip_range_is_looked_at():
    heard = Alarms()
    evidence = {name: value for name, value in FIXED.items() if name not in ("step", "kind")}
    event = ClipEvent(
        kind="clip_fixed",
        text="clip range fixed",
        evidence=evidence | {"high_held": "ceiling", "high_quantile": 0.5},
    )
    Watch([heard]).step(4, stats_of(TRUNCATED[0]), event)
    assert heard.rung == [(4, "clip_at_ceiling")]
