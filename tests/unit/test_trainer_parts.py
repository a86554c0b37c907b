"""The small parts of the loop, by hand."""

import os
import signal
from collections import Counter

import pytest
import torch

from gspo.errors import VerifierError
from gspo.segments import Segments
from gspo.stats import merge
from gspo.trainer.clock import Clock
from gspo.trainer.interrupt import stop_on_signals
from gspo.trainer.judge import check_failures, failures, judge_groups, latest_verdicts
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
    check_failures([(60, 0), (40, 2)], Counter(broke=2), 0.02)
    with pytest.raises(VerifierError, match=r"3 of the last 100 responses.*2 x broke"):
        check_failures([(60, 1), (40, 2)], Counter(broke=2), 0.02)


def test_verdicts_are_looked_back_on_for_500_responses():
    window: tuple[tuple[int, int], ...] = ()
    for step in range(10):
        window = latest_verdicts(window, 200, 1 if step == 9 else 0)
    assert window == ((200, 0), (200, 0), (200, 1))
    # A verifier that breaks late is noticed, however long it worked.
    with pytest.raises(VerifierError, match="100 of the last 600"):
        check_failures(latest_verdicts(window[:2], 200, 100), Counter(broke=100), 0.02)


def test_a_verifier_that_loses_a_verdict_is_an_error():
    class Short(Half):
        def judge(self, prompt, rollouts):
            return [Verdict(1.0)]

    with pytest.raises(VerifierError, match="1 verdicts for 2 responses"):
        judge_groups(Short(), [Group(Prompt("p", "", [1]), rollouts(2))])


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
