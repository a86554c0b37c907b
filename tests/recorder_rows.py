"""Rows for the recorder tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gspo.recorders.base import ResponseRow
from gspo.types import Group, Prompt, Rollout, Verdict

ROW = ResponseRow(
    prompt_id="p1",
    source="add4",
    group=0,
    sample=0,
    prompt="1+1=",
    text="2",
    tokens=[5, 2],
    reward=1.0,
    parts={"format": 0.5, "answer": 1.0},
    failure=None,
    advantage=0.5,
    length=2,
    finish="stop",
    version=3,
    minibatch=1,
    engine_logp=[-0.5, -0.25],
    old_logp=[-0.5, -0.25],
    logp=[-0.375, -0.25],
    log_s=0.0625,
    cut_low=0,
    cut_high=1,
    loss=-0.5,
    skipped=None,
)

GROUP = Group(
    prompt=Prompt(id="p1", text="1+1=", ids=[1, 3, 1, 4], answer=2, source="add4"),
    rollouts=[
        Rollout(
            prompt_ids=[1, 3, 1, 4],
            response_ids=[6, 2],
            trained=[True, True],
            engine_logp=[-0.5, -0.25],
            text="3",
            finish="stop",
            version=3,
            verdict=Verdict(reward=0.0, parts={"answer": 0.0}),
        )
    ],
)


def row(**changes: Any) -> ResponseRow:
    return replace(ROW, **changes)
