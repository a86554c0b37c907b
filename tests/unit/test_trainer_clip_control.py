"""The objective in force, the schedule of the learning rate, and what a resume brings back."""

import json

import pytest
import torch

from gspo.diagnostics.calibration import PROVISIONAL_CLIP
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.errors import DataError
from gspo.settings import GRPO, GSPO, ClipRange
from gspo.trainer.clip_control import ClipControl


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


def ramp() -> UpdatedResponses:
    """300 responses of each sign: 0 .. 0.01 and 0 .. -0.02."""
    positive = torch.linspace(0, 0.01, 300)
    signs = torch.cat([torch.ones(300), -torch.ones(300)])
    return measured(torch.cat([positive, -2 * positive]), signs)


def test_auto_measures_then_fixes_the_range_and_remembers_it():
    whole = ramp()
    half = torch.arange(600) % 2 == 0
    parts = [measured(whole.log_s[rows], whole.advantage[rows]) for rows in (half, ~half)]
    control = ClipControl(GSPO(), cut_share=0.15, warmup_steps=1)
    assert control.objective.clip == PROVISIONAL_CLIP
    assert control.observe(1, whole) is None  # warm-up
    assert control.observe(2, parts[0]) is None
    resumed = ClipControl(GSPO(), cut_share=0.15, memory=json.loads(json.dumps(control.memory())))
    for each in (control, resumed):
        event = each.observe(3, parts[1])
        assert event is not None
        # 85 % quantile of 0 .. 0.01 is 0.0085; of the negative side -0.017.
        assert each.objective.clip.high == pytest.approx(0.008536, rel=1e-3)
        assert each.objective.clip.low == pytest.approx(0.016856, rel=1e-3)
        assert event.evidence["measured_steps"] == 2
        assert each.observe(4, whole) is None
    assert resumed.memory() == control.memory()


def test_the_range_of_a_step_is_that_of_its_own_learning_rate_also_after_a_resume():
    def schedule(step: int) -> float:
        return 1.0 / step

    control = ClipControl(GSPO(), cut_share=0.15, learning_rate=schedule)
    control.observe(1, ramp())
    resumed = ClipControl(GSPO(), cut_share=0.15, learning_rate=schedule, memory=control.memory())
    for each in (control, resumed):
        assert each.objective.clip.high == pytest.approx(0.008536 / 2, rel=1e-3)


def test_without_a_wanted_share_nothing_changes():
    for objective in (GRPO(), GSPO(clip=ClipRange(0.01, 0.02))):
        control = ClipControl(objective)
        assert control.observe(1, ramp()) is None
        assert (control.objective, control.memory()) == (objective, {})


def test_an_objective_without_a_sequence_clip_keeps_its_own():
    assert ClipControl(GRPO(), cut_share=0.15).objective == GRPO()


def test_a_memory_of_another_version_is_refused():
    for memory in ({"step": 1}, {**ClipControl(GSPO(), cut_share=0.15).memory(), "other": 1}):
        with pytest.raises(DataError, match="another version"):
            ClipControl(GSPO(), cut_share=0.15, memory=memory)
