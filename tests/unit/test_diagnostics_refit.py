"""`clip: auto` as a transition function: when it fits, how far it goes, what it remembers."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch

from gspo.diagnostics.calibration import CEILING, PROVISIONAL_CLIP, noise_floor
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.refit import (
    GIVE_NOTICE_STEPS,
    MAX_EVIDENCE,
    MAX_MEASURED_STEPS,
    MAX_WINDOW_STEPS,
    ClipMemory,
    ClipRules,
    next_clip,
)

RULES = ClipRules(cut_share=0.15)


def step_of(scale, num=300, cut=0, *, negative=None, minibatch=2):
    """log s of `num` responses of each sign: 0 .. scale, and 0 .. -negative (-scale if None); the
    first `cut` of each sign are cut."""
    ramp = torch.linspace(0, 1, num, dtype=torch.float64)
    log_s = torch.cat([scale * ramp, -(scale if negative is None else negative) * ramp])
    flag = (torch.arange(num) < cut).long()
    none = torch.zeros(2 * num, dtype=torch.int64)
    return UpdatedResponses(
        log_s=log_s,
        advantage=torch.cat([torch.ones(num), -torch.ones(num)]),
        lengths=none + 1,
        minibatch=none + minibatch,
        off_policy=(none + minibatch) > 1,
        cut_low=torch.cat([none[:num], flag]),
        cut_high=torch.cat([flag, none[:num]]),
        unit="sequence",
    )


def run(memory, *steps, rules=RULES, first=1, learning_rate=1.0):
    """Through these steps; the memory and every event."""
    events = []
    for number, responses in enumerate(steps, start=first):
        memory, event = next_clip(memory, rules, number, responses, learning_rate)
        events.append(event)
    return memory, events


def fixed(scale=0.01):
    """Just fixed on 0 .. scale of both signs."""
    return run(ClipMemory(), step_of(scale))[0]


def holding(scale=0.01):
    """Settled at the same scale."""
    return run(fixed(scale), *[step_of(scale, cut=45)] * 2)[0]


def distance(scale):
    return math.expm1(0.85 * scale)


def test_measuring_runs_under_the_provisional_band_until_both_signs_are_seen():
    assert ClipMemory().in_force(1.0, RULES) == PROVISIONAL_CLIP
    memory, events = run(ClipMemory(), step_of(0.01, num=128), step_of(0.01, num=127))
    assert events == [None, None]
    memory, (event,) = run(memory, step_of(0.01, num=1), first=3)
    assert event.kind == "clip_fixed"
    assert event.evidence["measured_steps"] == 3
    assert memory.phase == "settling"
    assert (memory.positive, memory.num_signal) == ((), 0)


def test_the_first_fit_is_the_quantile_itself():
    memory, (event,) = run(ClipMemory(), step_of(0.01, negative=0.02))
    band = memory.in_force(1.0, RULES)
    assert band.high == pytest.approx(math.expm1(0.0085))
    assert band.low == pytest.approx(-math.expm1(-0.017))
    assert (event.evidence["low"], event.evidence["high"]) == (band.low, band.high)
    assert event.text == "clip range fixed: low 0.0169, high 0.00854"


def test_warm_up_steps_and_a_learning_rate_of_zero_are_not_measured():
    rules = ClipRules(cut_share=0.15, warmup_steps=2)
    _, events = run(ClipMemory(), *[step_of(0.01)] * 3, rules=rules)
    assert [event is not None for event in events] == [False, False, True]
    assert run(ClipMemory(), step_of(0.01), learning_rate=0.0) == (ClipMemory(), [None])


def test_on_policy_zero_advantage_and_unmeasured_responses_are_no_evidence():
    first = step_of(0.01, num=10, minibatch=1)
    assert run(ClipMemory(), first)[0].positive == ()
    responses = step_of(0.01, num=2)
    responses.log_s[0] = math.nan
    responses.advantage[1] = 0
    memory, _ = run(ClipMemory(), responses)
    assert (len(memory.positive), len(memory.negative), memory.num_signal) == (0, 2, 2)


def test_little_evidence_is_enough_after_twenty_steps():
    steps = [step_of(0.01, num=2)] * MAX_MEASURED_STEPS
    _, events = run(ClipMemory(), *steps)
    assert [event is not None for event in events] == [False] * (MAX_MEASURED_STEPS - 1) + [True]
    _, events = run(ClipMemory(), *[step_of(0.01, num=1)] * (MAX_MEASURED_STEPS + 5))
    assert events == [None] * (MAX_MEASURED_STEPS + 5)  # fewer than 32 of each sign


def test_settling_goes_half_way_in_logs_to_what_is_measured_under_the_new_band():
    memory, events = run(fixed(0.01), *[step_of(0.0025, cut=45)] * 2)
    assert [event is not None for event in events] == [False, True]
    assert events[1].kind == "refit"
    assert events[1].evidence["phase"] == "settling"
    assert memory.high == pytest.approx(math.sqrt(distance(0.01) * distance(0.0025)))
    assert memory.phase == "holding"


def test_within_the_tolerance_nothing_changes_and_the_window_starts_anew():
    before = holding()
    for cut in (31, 59):  # 0.103 and 0.197 of 300
        after, events = run(before, *[step_of(0.001, cut=cut)] * 2)
        assert events == [None] * 2
        assert after == before


def test_holding_narrows_at_once():
    memory, events = run(holding(), *[step_of(0.001, cut=10)] * 2)
    assert events[1].evidence["measured_share"] == pytest.approx(10 / 300)
    assert events[1].evidence["previous_high"] == pytest.approx(distance(0.01))
    assert memory.high == pytest.approx(distance(0.001))
    assert events[1].text.startswith("clip range refitted (0.03 were cut, 0.15 wanted)")


def test_holding_widens_half_way_and_never_beyond_one_and_a_half_times_the_first():
    memory, _ = run(holding(), *[step_of(0.012, cut=100)] * 2)
    assert memory.high == pytest.approx(math.sqrt(distance(0.01) * distance(0.012)))
    last = None
    for _ in range(5):
        memory, events = run(memory, *[step_of(0.1, cut=250)] * 2)
        last = events[1] or last
    assert memory.high == pytest.approx(1.5 * distance(0.01))
    assert memory.low == pytest.approx(-1.5 * math.expm1(-0.0085))
    assert last.evidence["widest_high"] == pytest.approx(memory.high)
    assert events == [None, None]  # held by the bound: nothing changed, nothing is told


def test_a_band_that_narrowed_may_widen_back():
    memory, _ = run(holding(), *[step_of(0.001, cut=10)] * 2)
    for _ in range(12):
        memory, _ = run(memory, *[step_of(0.01, cut=250)] * 2)
    assert memory.high == pytest.approx(distance(0.01), rel=0.01)


def test_a_side_held_at_the_floor_is_no_measure_of_what_it_may_widen_to():
    against, (event,) = run(ClipMemory(), step_of(-0.01, negative=0.01))
    assert (against.high, against.widest_high) == (noise_floor(), None)
    assert event.evidence["high_against_advantage"]
    memory, _ = run(against, *[step_of(0.01, cut=200)] * 2)
    assert memory.high == pytest.approx(math.sqrt(noise_floor() * distance(0.01)))
    assert memory.widest_high == pytest.approx(1.5 * distance(0.01))


def test_the_ceiling_holds_and_is_in_the_evidence():
    memory, (event,) = run(ClipMemory(), step_of(0.5))
    assert memory.in_force(1.0, RULES).high == CEILING
    assert (event.evidence["high_held"], event.evidence["low_held"]) == ("ceiling", "ceiling")


def test_a_window_takes_two_steps_or_eight_where_responses_are_few():
    needed = 67  # ten of each sign should be cut: 10 / 0.15
    _, events = run(fixed(), *[step_of(0.01, num=needed)] * 2)
    assert [event is not None for event in events] == [False, True]
    _, events = run(fixed(), *[step_of(0.01, num=2)] * MAX_WINDOW_STEPS)
    assert [event is not None for event in events] == [False] * (MAX_WINDOW_STEPS - 1) + [True]
    _, events = run(fixed(), *[step_of(0.01, num=1)] * MAX_WINDOW_STEPS)
    assert events == [None] * MAX_WINDOW_STEPS


def test_the_band_follows_the_learning_rate_and_says_so_when_it_halved():
    memory, _ = run(holding(), step_of(0.01, cut=45), learning_rate=0.6)
    assert memory.in_force(0.6, RULES).high == pytest.approx(0.6 * distance(0.01))
    assert memory.in_force(0.0, RULES).high == noise_floor()
    assert memory.in_force(1e9, RULES).high == CEILING
    memory, (event,) = run(memory, step_of(0.01, cut=45), learning_rate=0.5)
    assert event.kind == "clip_rescaled"
    assert event.evidence["high"] == pytest.approx(0.5 * distance(0.01))
    assert event.text == "clip range follows the learning rate: low 0.00423, high 0.00427"
    _, events = run(memory, step_of(0.01, cut=45), learning_rate=0.4)
    assert events == [None]


def test_drift_is_measured_at_the_learning_rate_of_the_first_step():
    # Half the rate, half the drift: the same range, once taken to one rate.
    memory, (event,) = run(fixed(0.01), step_of(0.005), learning_rate=0.5)
    assert event.kind == "clip_rescaled"
    memory, _ = run(memory, *[step_of(0.005)] * 2, learning_rate=0.5)
    assert memory.phase == "holding"
    assert memory.high == pytest.approx(distance(0.01))
    assert memory.in_force(0.5, RULES).high == pytest.approx(0.5 * distance(0.01))


def test_the_memory_and_the_evidence_are_json():
    memory, (event,) = run(ClipMemory(), step_of(0.01))
    json.dumps([asdict(memory), dict(event.evidence)], allow_nan=False)


def test_new_draws_end_near_the_wanted_share_while_the_drift_shrinks():
    generator = torch.Generator().manual_seed(3)
    memory, shares = ClipMemory(), []
    for step in range(1, 41):
        spread = 4e-3 * 0.95**step
        responses = step_of(0.0, num=80)
        sign = responses.advantage
        log_s = spread * (torch.randn(160, generator=generator) + 0.2 * sign)
        low, high = memory.in_force(1.0, RULES).band(torch.ones(0))
        cut_high = ((log_s > high) & (sign > 0)).long()
        cut_low = ((log_s < low) & (sign < 0)).long()
        shares.append(float((cut_high + cut_low).double().mean()))
        seen = UpdatedResponses(
            log_s=log_s,
            advantage=sign,
            lengths=responses.lengths,
            minibatch=responses.minibatch,
            off_policy=responses.off_policy,
            cut_low=cut_low,
            cut_high=cut_high,
            unit="sequence",
        )
        memory, _ = next_clip(memory, RULES, step, seen, 1.0)
    assert sum(shares[5:25]) / 20 == pytest.approx(0.15, abs=0.07)
    assert sum(shares[25:]) / 15 == pytest.approx(0.15, abs=0.07)


def test_a_sign_that_never_comes_is_said_once_and_the_state_does_not_grow():
    positive_only = step_of(0.01)
    rows = positive_only.advantage > 0
    missing = replace(positive_only, advantage=torch.where(rows, 1.0, 0.0))
    memory, events = run(ClipMemory(), *[missing] * (GIVE_NOTICE_STEPS + 20))
    (told,) = [event for event in events if event is not None]
    assert events.index(told) == GIVE_NOTICE_STEPS - 1
    assert told.kind == "clip_unmeasured"
    assert told.evidence["num_negative"] == 0
    assert "0 with a negative advantage" in told.text
    assert memory.in_force(1.0, RULES) == PROVISIONAL_CLIP
    assert len(memory.positive) == MAX_EVIDENCE
