"""The loop against fakes: what it does when parts of it fail."""

import math
from dataclasses import replace

import pytest
import torch

from gspo.engines.base import Sampling
from gspo.engines.scripted import ScriptedEngine, ScriptedResponse
from gspo.errors import DataError, NumericsError, VerifierError
from gspo.policy.base import ResponseUpdate, UpdateResult
from gspo.settings import GSPO
from gspo.stats import Sum
from gspo.trainer.clip_control import ClipControl
from gspo.trainer.interrupt import StopRequest
from gspo.trainer.loop import run_loop
from gspo.trainer.parts import Parts, Plan
from gspo.trainer.state import TrainState
from gspo.trainer.stream import RolloutStream
from gspo.types import Prompt, Verdict, Weights

PROMPTS = [Prompt(id=name, text=name, ids=[1, 2]) for name in "abcd"]


class FakePolicy:
    """Log-probs of -1; skips the updates whose number is in `bad`."""

    def __init__(self, bad=()):
        self.bad = set(bad)
        self.num_updates = 0
        self.old_logp_given = []
        self.events = []

    def score(self, batch):
        self.events.append(f"score {batch.num_responses}")
        return torch.full((batch.num_tokens,), -1.0)

    def update(self, batch, objective, before_step=None):
        self.num_updates += 1
        self.old_logp_given.append(batch.old_logp)
        skipped = "loss of response 0 is nan" if self.num_updates in self.bad else None
        size = batch.num_responses
        value = math.nan if skipped else 0.0
        responses = ResponseUpdate(
            logp=torch.full((batch.num_tokens,), value - 1.0),
            old_logp=torch.full((batch.num_tokens,), value - 1.0),
            log_s=torch.full((size,), value),
            cut_low=torch.zeros(size, dtype=torch.int64),
            cut_high=torch.zeros(size, dtype=torch.int64),
            loss=torch.full((size,), value),
        )
        if before_step and not skipped:
            before_step(responses)
        self.events.append("step")
        return UpdateResult({"update/skipped_steps": Sum(int(bool(skipped)))}, responses, skipped)

    def weights(self, version):
        return Weights(version, {})


class ByText:
    """Reward by the response's text; "broken" has no verdict."""

    def judge(self, prompt, rollouts):
        return [
            Verdict.failed("ValueError: no") if r.text == "broken" else Verdict(float(len(r.text)))
            for r in rollouts
        ]

    def probe(self, prompt):
        return None


class Recorded:
    def __init__(self):
        self.steps, self.saved, self.evaluated = {}, [], []

    def record(self, step, stats, rows, event):
        self.steps[step] = ({name: stat.value() for name, stat in stats.items()}, rows)


def parts_of(recorded, policy, answers, **plan) -> Parts:
    engine = ScriptedEngine(answers)
    settings = Plan(
        steps=3,
        minibatches=2,
        minibatch_by="group",
        baseline="mean",
        scale="std",
        temperature=1.0,
        max_failed_share=0.02,
        evaluate_every=0,
    )
    sampling = Sampling(num_samples=2, max_tokens=8)
    return Parts(
        plan=replace(settings, **plan),
        stream=RolloutStream(engine, PROMPTS, sampling, prompts_per_step=4),
        verifier=ByText(),
        policy=policy,
        reference=None,
        engine=engine,
        clip=ClipControl(GSPO()),
        record=recorded.record,
        evaluate=recorded.evaluated.append,
        save=recorded.saved.append,
        save_due=lambda step: False,
    )


def good(prompt, sample):
    return "x" * (sample + 1)


def test_a_step_in_order():
    recorded, policy = Recorded(), FakePolicy()
    state = run_loop(parts_of(recorded, policy, good), TrainState(seed=0), StopRequest())
    assert (state.step, state.version, state.cursor) == (3, 3, 12)
    assert state.verdicts == ((8, 0), (8, 0), (8, 0))
    assert sorted(recorded.steps) == [1, 2, 3]
    assert recorded.saved == [state]
    # The first minibatch of each step compares with itself, the second with scored log-probs.
    assert [given is not None for given in policy.old_logp_given] == [False, True] * 3
    assert policy.events == ["score 4", "step", "step"] * 3
    _, rows = recorded.steps[2]
    assert [row.version for row in rows] == [1] * 8
    assert [row.prompt_id for row in rows[::2]] != ["a", "b", "c", "d"] or rows[0].group == 0


def answers_with(logp):
    """Rewarded as `good`, with these engine log-probs; the policy's are -1."""

    def answer(prompt, sample):
        ids = (65,) * (sample + 1) + (256,)
        return ScriptedResponse(ids=ids, logp=(logp,) * len(ids), text="x" * (sample + 1))

    return answer


def test_engine_log_probs_are_the_old_ones_where_the_gate_opens():
    recorded, policy = Recorded(), FakePolicy()
    parts = parts_of(recorded, policy, answers_with(-1.0), steps=1, engine_old_logp=True)
    run_loop(parts, TrainState(seed=0), StopRequest())
    assert policy.events == ["step", "step"]  # nothing was scored
    assert policy.old_logp_given[0] is None
    assert set(policy.old_logp_given[1].tolist()) == {-1.0}
    values, _ = recorded.steps[1]
    assert (values["gate/open"], values["gate/bias"], values["gate/noise"]) == (1.0, 0.0, 0.0)
    # Only the 4 responses that the trainer compared for itself say anything of the gap.
    assert (values["gap/log_s_mean"], values["gap/missing"]) == (0.0, 0)


def test_engine_log_probs_that_differ_are_scored_before_the_first_step():
    recorded, policy = Recorded(), FakePolicy()
    parts = parts_of(recorded, policy, answers_with(-1.5), steps=1, engine_old_logp=True)
    run_loop(parts, TrainState(seed=0), StopRequest())
    assert policy.events == ["score 4", "step", "step"]
    values, _ = recorded.steps[1]
    assert values["gate/open"] == 0.0
    assert values["gate/bias"] == pytest.approx(0.5 / -math.log1p(-3e-4))
    assert values["gap/log_s_mean"] == pytest.approx(0.5)


def test_responses_without_signal_are_not_scored():
    """Prompts whose two answers earn the same have advantage 0: theirs stay unknown."""
    recorded, policy = Recorded(), FakePolicy()

    def answers(prompt, sample):
        return "x" if prompt.id in "ab" else good(prompt, sample)

    run_loop(parts_of(recorded, policy, answers, steps=1), TrainState(seed=0), StopRequest())
    scored = [int(event.split()[1]) for event in policy.events if event.startswith("score")]
    old_logp = policy.old_logp_given[1]
    assert sum(scored) < 4
    assert int(old_logp.isfinite().sum()) == (5 * scored[0] // 2 if scored else 0)


def test_one_skipped_update_is_recorded_and_training_goes_on():
    recorded, policy = Recorded(), FakePolicy(bad={3, 4})
    state = run_loop(parts_of(recorded, policy, good), TrainState(seed=0), StopRequest())
    assert state.step == 3
    values, rows = recorded.steps[2]
    assert values["update/skipped_steps"] == 2
    assert {row.skipped for row in rows} == {"update skipped: loss of response 0 is nan"}
    assert {row.logp for row in rows} == {None}
    assert all(
        value is None or math.isfinite(value)
        for value in values.values()
        if not isinstance(value, dict)
    )


def test_three_skipped_updates_in_a_row_stop_the_run():
    recorded, policy = Recorded(), FakePolicy(bad={2, 3, 4})
    with pytest.raises(NumericsError, match="3 updates in a row were skipped, the last at step 2"):
        run_loop(parts_of(recorded, policy, good), TrainState(seed=0), StopRequest())
    assert sorted(recorded.steps) == [1]


def test_a_verifier_that_fails_too_often_stops_before_any_update():
    recorded, policy = Recorded(), FakePolicy()
    answers = lambda prompt, sample: "broken" if prompt.id == "a" else good(prompt, sample)  # noqa: E731
    with pytest.raises(VerifierError, match="failed on 2 of the last 8 responses"):
        run_loop(parts_of(recorded, policy, answers), TrainState(seed=0), StopRequest())
    assert policy.num_updates == 0


def test_failed_verdicts_within_the_limit_leave_baseline_and_batch():
    recorded, policy = Recorded(), FakePolicy()

    def answers(prompt, sample):
        return "broken" if (prompt.id, sample) == ("a", 0) else good(prompt, sample)

    parts = parts_of(recorded, policy, answers, max_failed_share=0.5, steps=1)
    run_loop(parts, TrainState(seed=0), StopRequest())
    values, rows = recorded.steps[1]
    (broken,) = [row for row in rows if row.failure]
    assert (broken.reward, broken.minibatch, broken.skipped) == (
        None,
        None,
        "left out before packing",
    )
    assert values["step/responses"] == 7
    assert values["verifier/failed_share"] == 1 / 8
    # Its sibling is alone in its group: no baseline, advantage 0.
    assert [r.advantage for r in rows if r.prompt_id == "a"] == [0.0, 0.0]


def test_a_step_without_anything_to_train_on_says_why():
    recorded, policy = Recorded(), FakePolicy()
    parts = parts_of(recorded, policy, lambda prompt, sample: "broken", max_failed_share=1.0)
    with pytest.raises(DataError, match="no response to train on: 8 were left out.*ValueError: no"):
        run_loop(parts, TrainState(seed=0), StopRequest())


def test_a_request_to_stop_ends_after_the_step_in_hand():
    recorded, policy, stop = Recorded(), FakePolicy(), StopRequest()
    parts = parts_of(recorded, policy, good)

    def record(step, stats, rows, event):
        recorded.record(step, stats, rows, event)
        stop.requested = step == 2

    state = run_loop(replace(parts, record=record), TrainState(seed=0), stop)
    assert state.step == 2
    assert recorded.saved == [state]


def test_a_request_during_sampling_drops_the_unfinished_step():
    recorded, policy, stop = Recorded(), FakePolicy(), StopRequest()

    def answers(prompt, sample):
        stop.requested = True
        return good(prompt, sample)

    start = TrainState(seed=0)
    assert run_loop(parts_of(recorded, policy, answers), start, stop) == start
    assert policy.num_updates == 0
    assert recorded.steps == {}


def test_evaluation_comes_every_so_many_steps_but_not_at_the_end():
    recorded, policy = Recorded(), FakePolicy()
    parts = parts_of(recorded, policy, good, evaluate_every=1)
    run_loop(parts, TrainState(seed=0), StopRequest())
    assert recorded.evaluated == [1, 2]


def test_a_run_without_any_signal_ends_with_its_progress_kept():
    """Every reward is the same from step 2 on: sampled up to the bound, then an end that says so."""
    recorded, policy = Recorded(), FakePolicy()
    sampled = []

    def answers(prompt, sample):
        sampled.append(prompt.id)
        return "same" if len(sampled) > 8 else good(prompt, sample)

    parts = parts_of(recorded, policy, answers)
    sampling = Sampling(num_samples=2, max_tokens=8)
    stream = RolloutStream(
        ScriptedEngine(answers), PROMPTS, sampling, prompts_per_step=4, max_factor=3
    )
    with pytest.raises(DataError, match="step 2 sampled 12 prompts and the rewards of each were"):
        run_loop(replace(parts, stream=stream), TrainState(seed=0), StopRequest())
    assert len(sampled) == 8 + 2 * 12
    assert [state.step for state in recorded.saved] == [1]
    assert recorded.steps[1][0]["dynamic/sampled_groups"] == 4


def test_a_broken_verifier_is_told_as_such_under_dynamic_sampling():
    recorded, policy = Recorded(), FakePolicy()
    parts = parts_of(recorded, policy, lambda prompt, sample: "broken")
    sampling = Sampling(num_samples=2, max_tokens=8)
    engine = ScriptedEngine(lambda prompt, sample: "broken")
    stream = RolloutStream(engine, PROMPTS, sampling, prompts_per_step=4, max_factor=3)
    with pytest.raises(VerifierError, match="failed on 8 of the last 8"):
        run_loop(replace(parts, stream=stream), TrainState(seed=0), StopRequest())
