"""Cold start: imitation of demonstrations, so that RL has something to make reliable.

The result is cached under the digest of everything it depends on: the same settings give the
same folder, on any later run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from gspo.errors import NumericsError
from gspo.policy.forward import TokenLogp
from gspo.policy.optimizer import OptimizerSettings, build_optimizer, set_learning_rate
from gspo.policy.packing import pack_rollouts
from gspo.types import Group, Prompt, Rollout, RolloutBatch, Verdict


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Token ids of a prompt and of a response, the end token included."""

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]


def cold_start(
    model: PreTrainedModel,
    demonstrations: Callable[[int], Sequence[Demonstration]],
    optimizer_settings: OptimizerSettings,
    num_steps: int,
    on_step: Callable[[int, float], None],
) -> float:
    """Train in place on fresh demonstrations each step; returns the last loss, nats a token.

    demonstrations: the batch of a step, counted from 0. Only response tokens are trained on.
    on_step: called with the number of finished steps and the loss.
    """
    optimizer = build_optimizer(model, optimizer_settings)
    token_logp = TokenLogp(model)
    value = float("nan")
    for step in range(num_steps):
        loss = -token_logp(_pack(demonstrations(step))).mean()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise NumericsError(
                f"the cold start's loss is {value} at step {step + 1}; lower coldstart.lr (it is {optimizer_settings.learning_rate:g})"
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), optimizer_settings.max_grad_norm)
        set_learning_rate(optimizer, optimizer_settings.lr(step))
        optimizer.step()
        optimizer.zero_grad()
        on_step(step + 1, value)
    return value


def _pack(demonstrations: Sequence[Demonstration]) -> RolloutBatch:
    """Demonstrations as rollouts that earned a reward."""
    rollouts = [
        Rollout(
            prompt_ids=d.prompt_ids,
            response_ids=d.response_ids,
            trained=[True] * len(d.response_ids),
            engine_logp=[None] * len(d.response_ids),
            text="",
            finish="stop",
            version=0,
            verdict=Verdict(reward=1.0),
        )
        for d in demonstrations
    ]
    group = Group(Prompt(id="demonstrations", text="", ids=[]), rollouts)
    return pack_rollouts([group], torch.zeros(len(rollouts)), temperature=1.0).batch


def cache_folder() -> Path:
    """Where cold starts are kept: $GSPO_CACHE, else $XDG_CACHE_HOME/gspo, else ~/.cache/gspo."""
    if os.environ.get("GSPO_CACHE"):
        return Path(os.environ["GSPO_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gspo"


def content_key(content: Mapping[str, Any]) -> str:
    """Digest of the settings a cold start depends on.

    >>> content_key({"a": 1}) == content_key({"a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cached(folder: Path, make: Callable[[Path], None], *, fresh: bool = False) -> bool:
    """Make `folder` by calling `make` on a draft beside it, unless it is there. True: it was.

    fresh: make it again in any case. The draft is renamed when it is complete, so a killed cold start leaves no half model.
    """
    if folder.is_dir() and not fresh:
        return True
    draft = folder.with_name(f".tmp-{folder.name}-{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        make(draft)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return False
