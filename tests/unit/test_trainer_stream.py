"""The stream: which prompts are sampled, how often, with which limit; and that a run resumed from
its state goes on with the very same ones."""

from dataclasses import replace

import pytest

from gspo.engines.base import Sampling
from gspo.engines.scripted import ScriptedEngine
from gspo.errors import GspoError
from gspo.trainer.interrupt import StopRequest
from gspo.trainer.length_schedule import LengthSchedule
from gspo.trainer.query_set import Refresh
from gspo.trainer.state import TrainState
from gspo.trainer.stream import RolloutStream
from gspo.types import Group, Prompt, Verdict

PROMPTS = [Prompt(id=f"p{k}", text=f"p{k}", ids=[k, 9]) for k in range(10)]


class Asked:
    """A scripted engine that writes down what it was asked for."""

    def __init__(self):
        self.inner = ScriptedEngine(lambda prompt, sample: f"{prompt.id.split('#')[0]} {sample}")
        self.requests = []

    def generate(self, prompts, sampling):
        self.requests.append(([p.id for p in prompts], sampling))
        return reversed(list(self.inner.generate(prompts, sampling)))  # in any order

    def load(self, weights):
        self.inner.load(weights)

    def close(self):
        self.inner.close()


def judge_by_number(groups):
    """p0, p3, p6, p9 are solved by all, p1, p4, p7 by none, the others by one of two."""
    judged = []
    for group in groups:
        kind = int(group.prompt.id[1]) % 3
        rewards = {0: (1.0, 1.0), 1: (0.0, 0.0), 2: (0.0, 1.0)}[kind]
        rollouts = [r.judged(Verdict(x)) for r, x in zip(group.rollouts, rewards, strict=True)]
        judged.append(Group(group.prompt, rollouts))
    return judged


def stream_of(engine, **settings):
    return RolloutStream(
        engine, PROMPTS, Sampling(num_samples=2, max_tokens=20), prompts_per_step=3, **settings
    )


def steps(stream, state, count):
    """Takes `count` steps as the loop does; what each took, and the state reached."""
    taken = []
    for _ in range(count):
        found = stream.take(state, judge_by_number, StopRequest())
        taken.append(found)
        state = replace(
            state,
            step=state.step + 1,
            cursor=state.cursor + len(found.sampled),
            queries=found.queries,
        )
    return taken, state


def names(groups):
    return [group.prompt.id for group in groups]


def test_without_settings_a_step_takes_the_next_prompts_once():
    engine = Asked()
    (first, second), state = steps(stream_of(engine), TrainState(seed=0), 2)
    assert [len(ids) for ids, _ in engine.requests] == [3, 3]
    assert names(first.groups) == names(first.sampled) == engine.requests[0][0]
    assert (state.cursor, state.queries, first.stats) == (6, {}, {})
    assert not set(names(first.groups)) & set(names(second.groups))
    assert [sampling.step for _, sampling in engine.requests] == [1, 2]


def test_dynamic_sampling_replaces_idle_groups_by_the_next_prompts():
    engine = Asked()
    (taken,), state = steps(stream_of(engine, max_factor=4), TrainState(seed=0), 1)
    assert all(int(name[1]) % 3 == 2 for name in names(taken.groups))
    asked = [name for ids, _ in engine.requests for name in ids]
    plain = Asked()
    steps(stream_of(plain), TrainState(seed=0), 4)
    assert asked == [name for ids, _ in plain.requests for name in ids][: len(asked)]
    assert state.cursor == len(asked) == len(taken.sampled)
    assert taken.stats["dynamic/replaced_groups"].value() == len(asked) - 3
    assert taken.stats["dynamic/rounds"].value() == len(engine.requests)


def test_a_prompt_that_comes_again_in_a_later_round_has_random_numbers_of_its_own():
    """12 prompts of 10: the second round reaches into the next epoch."""
    engine = Asked()
    judge = lambda groups: [  # noqa: E731 - nothing but the very first group ever has a signal
        Group(
            g.prompt,
            [
                r.judged(Verdict(float(k * (g.prompt.id == first))))
                for k, r in enumerate(g.rollouts)
            ],
        )
        for g in groups
    ]
    plain = Asked()
    steps(stream_of(plain), TrainState(seed=0), 1)
    first = plain.requests[0][0][0]
    stream_of(engine, max_factor=4).take(TrainState(seed=0), judge, StopRequest())
    asked = [name for ids, _ in engine.requests for name in ids]
    assert len(asked) == len(set(asked)) == 12
    assert sum(name.endswith("#2") for name in asked) == 2


def test_the_limit_grows():
    engine = Asked()
    lengths = LengthSchedule(start=10, end=20, steps=3)
    taken, _ = steps(stream_of(engine, lengths=lengths), TrainState(seed=0), 4)
    assert [sampling.max_tokens for _, sampling in engine.requests] == [10, 15, 20, 20]
    assert [t.stats["rollout/max_tokens"].value() for t in taken] == [10, 15, 20, 20]


def test_a_refresh_rests_what_teaches_nothing():
    engine = Asked()
    stream = stream_of(engine, refresh=Refresh(every=4))
    taken, _ = steps(stream, TrainState(seed=0), 8)
    after = {int(name[1]) for t in taken[4:] for name in names(t.sampled)}
    assert after == {2, 5, 8}
    assert taken[3].stats["queries/active"].value() == 10
    assert taken[4].stats["queries/active"].value() == 3
    assert taken[4].stats["queries/resting_solved"].value() == 4
    assert taken[4].stats["queries/resting_failed"].value() == 3


@pytest.mark.parametrize("stopped_after", range(1, 12))
def test_a_resumed_run_samples_the_same(stopped_after):
    settings = {
        "lengths": LengthSchedule(start=10, end=20, steps=7),
        "max_factor": 3,
        "refresh": Refresh(every=5),
    }
    straight = Asked()
    steps(stream_of(straight, **settings), TrainState(seed=3), 12)
    resumed = Asked()
    _, state = steps(stream_of(resumed, **settings), TrainState(seed=3), stopped_after)
    state = TrainState.from_json(state.to_json(), "state.json")
    steps(stream_of(resumed, **settings), state, 12 - stopped_after)
    assert resumed.requests == straight.requests


def test_a_stop_in_the_middle_takes_nothing():
    stop = StopRequest()
    stop.requested = True
    assert stream_of(Asked()).take(TrainState(seed=0), judge_by_number, stop) is None


def test_an_engine_that_continues_other_ids_is_an_error():
    class Reencoded(Asked):
        def generate(self, prompts, sampling):
            return super().generate([replace(p, ids=[2, *p.ids]) for p in prompts], sampling)

    with pytest.raises(GspoError, match=r"other ids than those of prompt 'p\d': \[2, \d, 9\]"):
        stream_of(Reencoded()).take(TrainState(seed=0), judge_by_number, StopRequest())


def test_an_engine_that_loses_a_group_is_an_error():
    class Short(Asked):
        def generate(self, prompts, sampling):
            return super().generate(prompts[:-1], sampling)

    with pytest.raises(GspoError, match="no group for 1 of 3 prompts"):
        stream_of(Short()).take(TrainState(seed=0), judge_by_number, StopRequest())
