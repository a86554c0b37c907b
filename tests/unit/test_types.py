"""What the parts hand to one another."""

from dataclasses import replace

import pytest
import torch

from gspo.errors import GspoError, NumericsError, RecipeError, nearest
from gspo.segments import Segments
from gspo.types import Group, Prompt, Rollout, RolloutBatch, Verdict, rewards_differ


def rollout(reward=None):
    made = Rollout([1], [2, 3], [True, True], [-0.1, -0.2], "x", "stop", version=0)
    return made if reward is None else made.judged(Verdict(reward))


def batch(logp=True):
    """Three responses: prompt and response lengths (1, 2), (2, 0), (1, 1)."""
    lengths = torch.tensor([3, 2, 2])
    return RolloutBatch(
        input_ids=torch.arange(7),
        positions=torch.tensor([0, 1, 2, 0, 1, 0, 1]),
        sequence_lengths=lengths,
        target=torch.tensor([1, 2, 6]),
        segments=Segments.from_lengths([2, 0, 1]),
        engine_logp=torch.tensor([-0.1, -0.2, -0.3]),
        advantage=torch.tensor([1.0, 2.0, 3.0]),
        reward=torch.tensor([1.0, 0.0, 0.5]),
        group=torch.tensor([0, 0, 1]),
        version=torch.tensor([5, 5, 6]),
        truncated=torch.tensor([False, True, False]),
        temperature=1.0,
        old_logp=torch.tensor([-0.4, -0.5, -0.6]) if logp else None,
        ref_logp=torch.tensor([-0.7, -0.8, -0.9]) if logp else None,
    )


def test_a_broken_verifier_is_no_reward_of_zero():
    """Field failure 7."""
    failed = rollout().judged(Verdict.failed("worker killed after 2 s"))
    assert failed.reward is None
    assert failed.verdict == Verdict(None, failure="worker killed after 2 s")
    assert rollout().reward is None
    assert rollout(0.0).reward == 0.0


@pytest.mark.parametrize(
    ("rewards", "informative"),
    [
        ([0.5] * 4, False),
        ([0.0] + [0.95] * 7, True),
        ([1.0, 1.0, 1.0, 1.0 + 1e-9], False),
        ([0.0, None], False),
        ([0.0, None, 1.0], True),
        ([None], False),
        ([0.0, 0.0], False),
        ([-1.0, 1.0], True),
    ],
)
def test_a_group_without_spread_is_not_informative(rewards, informative):
    """Field failure 14: decided on the whole group, within rounding."""
    group = Group(Prompt("p", "?", [1]), [rollout(reward) for reward in rewards])
    assert group.informative == informative
    assert rewards_differ(group.rewards) == informative


def test_select_keeps_tokens_with_their_response():
    whole = batch()
    picked = whole.select(torch.tensor([2, 0]))
    assert picked.input_ids.tolist() == [5, 6, 0, 1, 2]
    assert picked.sequence_lengths.tolist() == [2, 3]
    assert picked.segments.lengths.tolist() == [1, 2]
    assert picked.target.tolist() == [1, 3, 4]
    assert picked.input_ids[picked.target].tolist() == [6, 1, 2]
    assert picked.advantage.tolist() == [3.0, 1.0]
    assert picked.version.tolist() == [6, 5]
    assert picked.truncated.tolist() == [False, False]
    logps = {"engine_logp": [-3, -1, -2], "old_logp": [-6, -4, -5], "ref_logp": [-9, -7, -8]}
    for name, values in logps.items():
        assert getattr(picked, name).tolist() == pytest.approx([v / 10 for v in values])
    assert (whole.num_responses, whole.num_tokens) == (3, 3)


def test_select_keeps_what_is_missing_missing():
    picked = batch(logp=False).select(torch.tensor([1]))
    assert picked.num_tokens == 0
    assert picked.old_logp is None
    assert picked.ref_logp is None
    scored = torch.zeros(0)
    assert picked.with_old_logp(scored).old_logp is scored


def test_select_takes_per_token_advantages_by_token():
    longer = replace(
        batch(logp=False),
        input_ids=torch.arange(8),
        positions=torch.arange(8),
        sequence_lengths=torch.tensor([3, 2, 3]),
        target=torch.tensor([1, 2, 6, 7]),
        segments=Segments.from_lengths([2, 0, 2]),
        engine_logp=torch.zeros(4),
        advantage=torch.tensor([1.0, 2.0, 3.0, 4.0]),
    )
    assert longer.select(torch.tensor([2, 0])).advantage.tolist() == [3.0, 4.0, 1.0, 2.0]


def test_errors_have_one_root_and_their_exit_codes():
    assert (GspoError.exit_code, RecipeError.exit_code, NumericsError.exit_code) == (1, 2, 4)
    assert issubclass(NumericsError, GspoError)
    assert nearest("gpso", ["gspo", "grpo"]) == "did you mean 'gspo'?"
    assert nearest("xyz", ["b", "a"]) == "known are a, b"
