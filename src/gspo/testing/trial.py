"""Calls the loss under test, and turns whatever happens into an outcome."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gspo.testing.batches import Padded

#: `(logp, logp_old, adv, mask, ...) -> loss` or `(loss, stats)`.
LossFunction = Callable[..., Any]

#: Keyword parameters that a loss may have: counts of the whole optimizer step.
DENOMINATORS = ("num_responses", "num_tokens")

#: Some losses index with their mask, some multiply by it, some subtract it from 1.
MASK_DTYPES = (torch.bool, torch.int64, torch.float32)


@dataclass(frozen=True)
class Outcome:
    """loss: a number, NaN where error says why there is none. gradient: (N, T) float64, or None
    where the loss does not depend on logp. stats: what came beside the loss."""

    loss: float
    gradient: Tensor | None
    stats: Any
    error: str | None = None

    @property
    def finite(self) -> bool:
        """Loss and gradient are numbers."""
        gradient = self.gradient
        return math.isfinite(self.loss) and (gradient is None or bool(gradient.isfinite().all()))


class Trial:
    """The loss under test. mask_dtype: the first kind of mask that it takes."""

    def __init__(self, function: LossFunction) -> None:
        self.function = function
        self.denominators = _denominators(function)
        self.mask_dtype = torch.bool

    def first(self, batch: Padded) -> Outcome:
        """The outcome of the first batch; settles on a kind of mask."""
        for dtype in MASK_DTYPES[:-1]:
            self.mask_dtype = dtype
            outcome = self(batch)
            if outcome.error is None:
                return outcome
        self.mask_dtype = MASK_DTYPES[-1]
        return self(batch)

    def __call__(self, batch: Padded, counts: Mapping[str, int] | None = None) -> Outcome:
        """counts: of the whole optimizer step, where batch is a part of it."""
        logp = batch.logp.clone().requires_grad_()
        counts = batch.counts if counts is None else counts
        given = {name: counts[name] for name in self.denominators}
        arguments = (logp, batch.old_logp.clone(), batch.advantage.clone())
        try:
            with warnings.catch_warnings(), torch.enable_grad():
                warnings.simplefilter("ignore")
                returned = self.function(*arguments, batch.mask.to(self.mask_dtype), **given)
                return _outcome(returned, logp)
        except Exception as error:  # noqa: BLE001 - whatever the loss raises is the finding
            first_line = (str(error).strip().splitlines() or ["no message"])[0]
            return Outcome(math.nan, None, None, f"{type(error).__name__}: {first_line}")


def _outcome(returned: Any, logp: Tensor) -> Outcome:
    loss, stats = (
        returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    )
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        return Outcome(math.nan, None, None, f"it returned {got:.80}; wanted a scalar tensor")
    if not loss.requires_grad:
        return Outcome(float(loss), None, stats)
    (gradient,) = torch.autograd.grad(loss.reshape(()), logp, allow_unused=True)
    value = float(loss.detach())
    return Outcome(value, None if gradient is None else gradient.double(), stats)


def _denominators(function: LossFunction) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in without a signature
        return ()
    return tuple(name for name in DENOMINATORS if name in parameters)
