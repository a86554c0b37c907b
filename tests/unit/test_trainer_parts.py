"""The small parts of the loop, by hand."""

import os
import signal
from collections import Counter

import pytest
import torch

from gspo.diagnostics.calibration import PROVISIONAL_CLIP
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.errors import VerifierError
from gspo.segments import Segments
from gspo.settings import GRPO, GSPO, ClipRange
from gspo.stats import merge
from gspo.trainer.clip_control import ClipControl
from gspo.trainer.clock import Clock
from gspo.trainer.interrupt import stop_on_signals
from gspo.trainer.judge import check_failures, failures, judge_groups
from gspo.trainer.minibatches import minibatch_rows
from gspo.types import Group, Prompt, Rollout, RolloutBatch, Verdict


def batch_of(groups: list[int]) -> RolloutBatch:
    """One prompt token and one trained token a response."""
    size = len(groups)
    zeros = torch.zeros(size)
    return RolloutBatch(
        input_ids=torch.arange(2 * size),
        positions=torch.tensor([0, 1] * size),
        sequence_lengths=torch.full((size,), 2),
        target=torch.arange(1, 2 * size, 2),
        segments=Segments.from_lengths([1] * size),
        engine_logp=zeros,
        advantage=zeros,
        reward=zeros,
        group=torch.tensor(groups),
        version=torch.zeros(size, dtype=torch.int64),
        truncated=torch.zeros(size, dtype=torch.bool),
        temperature=1.0,
    )


def test_group_minibatches_hold_whole_groups_and_every_row_once():
    batch = batch_of([0, 0, 0, 1, 1, 2, 2, 2, 3, 3])  # groups 1 and 3 lost a response
    parts = minibatch_rows(batch, 2, "group", seed=5, step=1)
    assert sorted(torch.cat(parts).tolist()) == list(range(10))
    groups = [set(batch.group[part].tolist()) for part in parts]
    assert [len(g) for g in groups] == [2, 2]
    assert not groups[0] & groups[1]


def test_response_minibatches_mix_groups_evenly_and_depend_on_seed_and_step_alone():
    batch = batch_of([0] * 8 + [1] * 8)
    parts = minibatch_rows(batch, 4, "response", seed=5, step=1)
    assert [len(part) for part in parts] == [4, 4, 4, 4]
    again = minibatch_rows(batch, 4, "response", seed=5, step=1)
    assert [p.tolist() for p in parts] == [p.tolist() for p in again]
    other = minibatch_rows(batch, 4, "response", seed=5, step=2)
    assert [p.tolist() for p in parts] != [p.tolist() for p in other]


def test_a_minibatch_without_responses_is_left_out():
    assert len(minibatch_rows(batch_of([0, 0, 1, 1]), 4, "group", seed=0, step=1)) == 2


def test_selected_rows_keep_their_own_tokens():
    batch = batch_of([0, 1, 2])
    part = batch.select(torch.tensor([2, 0]))
    assert part.input_ids.tolist() == [4, 5, 0, 1]
    assert part.input_ids[part.target].tolist() == [5, 1]
    assert batch.tokens_of(torch.tensor([2, 0])).tolist() == [2, 0]


class Half:
    """Fails on every second response."""

    def judge(self, prompt, rollouts):
        return [Verdict(1.0) if k % 2 else Verdict.failed("broke") for k, _ in enumerate(rollouts)]

    def probe(self, prompt):
        return None


def rollouts(count: int) -> list[Rollout]:
    return [Rollout([1], [2], [True], [0.0], "", "stop", 0) for _ in range(count)]


def test_failures_are_counted_by_reason_and_are_no_zeros():
    (group,) = judge_groups(Half(), [Group(Prompt("p", "", [1]), rollouts(4))])
    assert group.rewards == [1.0, 1.0]
    assert failures([group]) == Counter({"broke": 2})


def test_more_than_two_percent_failed_stops_and_two_percent_do_not():
    check_failures(100, 2, Counter(broke=2), 0.02)
    with pytest.raises(VerifierError, match=r"3 of 100 responses.*3 x broke"):
        check_failures(100, 3, Counter(broke=3), 0.02)


def test_a_verifier_that_loses_a_verdict_is_an_error():
    class Short(Half):
        def judge(self, prompt, rollouts):
            return [Verdict(1.0)]

    with pytest.raises(VerifierError, match="1 verdicts for 2 responses"):
        judge_groups(Short(), [Group(Prompt("p", "", [1]), rollouts(2))])


def measured(log_s: torch.Tensor, advantage: torch.Tensor) -> UpdatedResponses:
    size = log_s.numel()
    none = torch.zeros(size, dtype=torch.int64)
    return UpdatedResponses(
        log_s=log_s,
        advantage=advantage,
        lengths=torch.ones_like(none),
        minibatch=torch.full_like(none, 2),
        off_policy=torch.ones(size, dtype=torch.bool),
        cut_low=none,
        cut_high=none,
        unit="sequence",
    )


def test_auto_measures_then_fixes_the_range_and_remembers_it():
    positive = torch.linspace(0, 0.01, 300)
    log_s = torch.cat([positive, -2 * positive])
    advantage = torch.cat([torch.ones(300), -torch.ones(300)])
    control = ClipControl(GSPO(), cut_share=0.15, warmup_steps=1)
    assert control.objective.clip == PROVISIONAL_CLIP
    assert control.observe(1, measured(log_s, advantage)) is None  # warm-up
    half = torch.arange(600) % 2 == 0
    assert control.observe(2, measured(log_s[half], advantage[half])) is None
    resumed = ClipControl(GSPO(), cut_share=0.15, memory=control.memory())
    for each in (control, resumed):
        event = each.observe(3, measured(log_s[~half], advantage[~half]))
        assert event is not None
        # 85 % quantile of 0 .. 0.01 is 0.0085; of the negative side -0.017.
        assert each.objective.clip.high == pytest.approx(0.008536, rel=1e-3)
        assert each.objective.clip.low == pytest.approx(0.016856, rel=1e-3)
        assert event.evidence["measured_steps"] == 2
        assert each.observe(4, measured(log_s, advantage)) is None
    assert (
        ClipControl(GSPO(), cut_share=0.15, memory=control.memory()).objective == control.objective
    )


def test_little_evidence_is_enough_after_twenty_steps():
    log_s = torch.tensor([0.001, -0.001] * 2)
    advantage = torch.tensor([1.0, -1.0] * 2)
    control = ClipControl(GSPO(), cut_share=0.15)
    events = [control.observe(step, measured(log_s, advantage)) for step in range(1, 21)]
    assert [event is not None for event in events] == [False] * 19 + [True]


def test_without_a_wanted_share_nothing_changes():
    for objective in (GRPO(), GSPO(clip=ClipRange(0.01, 0.02))):
        control = ClipControl(objective)
        assert control.observe(1, measured(torch.ones(900), torch.ones(900))) is None
        assert (control.objective, control.memory()) == (objective, {})


def test_times_add_up():
    clock = Clock()
    with clock.part("rollout"), clock.part("inner"):
        pass
    values = {k: v.value() for k, v in merge([clock.stats(num_tokens=8)]).items()}
    parts = values["time/rollout_s"] + values["time/inner_s"] + values["time/other_s"]
    assert parts == pytest.approx(values["time/step_s"])
    assert values["speed/tokens_per_s"] == pytest.approx(8 / values["time/step_s"])


def test_first_signal_asks_second_insists():
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
