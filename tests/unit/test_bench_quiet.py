"""Other processes' CPU: read from /proc, and what is done when it is too much."""

from __future__ import annotations

import os
import time

import pytest

from bench.versus.memory import field_mb
from bench.versus.quiet import (
    Sample,
    busy_ticks,
    foreign_cores,
    process_ticks,
    quietly,
    sample,
)

#      user nice system idle iowait irq softirq steal guest guest_nice
STAT = "cpu  100 20 30 9000 50 4 5 6 70 80\ncpu0 1 1 1 1 1 1 1 1 1 1\n"


def test_busy_is_all_but_idle_and_waiting_and_guests_count_once():
    assert busy_ticks(STAT) == 100 + 20 + 30 + 4 + 5 + 6


def test_a_process_name_may_hold_spaces_and_brackets():
    before_times = "S 1 2 3 4 5 6 7 8 9 10"  # state, then ten numbers up to cmajflt
    assert process_ticks(f"12 (a (b) c) {before_times} 40 2 7 1 20 0") == 50


def test_foreign_is_busy_less_own_over_the_time():
    before = Sample(time_s=10.0, busy_s=100.0, own_s=30.0)
    after = Sample(time_s=12.0, busy_s=104.0, own_s=33.5)
    assert foreign_cores(before, after) == pytest.approx(0.25)


def test_foreign_is_never_negative():
    before, after = Sample(0.0, 0.0, 0.0), Sample(1.0, 0.5, 0.6)  # ticks are read one by one
    assert foreign_cores(before, after) == 0.0


def test_own_work_is_seen_as_own():
    before = sample([os.getpid()])
    ends_s = time.process_time() + 0.1
    while time.process_time() < ends_s:
        pass
    after = sample([os.getpid()])
    assert after.own_s - before.own_s == pytest.approx(0.1, abs=0.03)
    assert after.busy_s - before.busy_s >= 0.05


def watching(*foreign: float):
    """A clock of one second a measurement, with this much other work in each."""
    moments = []
    busy = 0.0
    for number, cores in enumerate(foreign):
        moments += [
            Sample(2.0 * number, busy, 0.0),
            Sample(2.0 * number + 1.0, busy + cores, 0.0),
        ]
        busy += cores
    return iter(moments).__next__


def test_a_disturbed_measurement_is_repeated():
    answers = iter(["disturbed", "quiet", "never"])
    done = quietly(lambda: next(answers), watching(0.5, 0.05, 0.0), limit=0.1)
    assert done[0] == "quiet"
    assert done[1] == pytest.approx(0.05)


def test_after_so_many_tries_the_quietest_is_given_and_its_disturbance_told():
    answers = iter("abc")
    told: list[float] = []
    answer, foreign = quietly(
        lambda: next(answers), watching(0.5, 0.2, 0.4), limit=0.1, tries=3, disturbed=told.append
    )
    assert answer == "b"
    assert foreign == pytest.approx(0.2)
    assert told == pytest.approx([0.5, 0.2, 0.4])


def test_no_try_is_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        quietly(lambda: 1, watching(0.0), tries=0)


def test_memory_is_in_megabytes_of_a_million_bytes():
    status = "Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n"
    assert field_mb(status, "VmRSS") == pytest.approx(1.024)
    with pytest.raises(ValueError, match="no VmPeak"):
        field_mb(status, "VmPeak")
