"""The gradient of one minibatch, and what it did.

The denominator D is counted once, from the whole minibatch, before the first forward. Each
micro-batch then adds the gradient of sum(loss) / D, so how the minibatch is cut cannot matter.
Anything that is not finite stops the minibatch before the optimizer sees it.

Work whose gradient is exactly zero is not done. A response of zero advantage has none whatever its
log-probs, so it costs no forward; where the clip leaves a whole micro-batch without gradient, its
backward is left out. Both stay in D. A KL penalty has a gradient of its own: with one, all run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gspo.errors import RecipeError
from gspo.objectives.kl import kl_penalty
from gspo.policy.base import ResponseUpdate
from gspo.policy.forward import TokenLogp
from gspo.policy.packing import in_batch_order
from gspo.ratios import MAX_LOG_RATIO
from gspo.segments import Segments
from gspo.settings import KLPenalty, Objective
from gspo.stats import Max, Mean, Min, Stats, Sum, merge
from gspo.types import RolloutBatch, Surrogate


@dataclass(frozen=True, slots=True)
class Part:
    """One micro-batch after its backward: its rows in the minibatch, everything detached.

    moved: old_logp came with the batch, so that the ratio may differ from 1. penalty [R]: what KL
    adds to each response's loss, undivided, coefficient included. dead: nothing in it had a
    gradient, so there was no backward.
    """

    rows: Int[Tensor, "R"]
    advantage: Float[Tensor, "R"] | Float[Tensor, "M"]
    logp: Float[Tensor, "M"]
    old_logp: Float[Tensor, "M"]
    moved: bool
    surrogate: Surrogate
    penalty: Float[Tensor, "R"] | None
    dead: bool


@dataclass(frozen=True, slots=True)
class Accumulated:
    """A minibatch's parts, its D, and the first value that was not finite (then the rest did not
    run and the gradients are worthless). num_skipped: responses of zero advantage, not run."""

    divisor: int
    parts: list[Part]
    fault: str | None
    num_skipped: int


def accumulate(
    token_logp: TokenLogp,
    batch: RolloutBatch,
    objective: Objective,
    *,
    max_tokens: int,
    kl: KLPenalty | None,
) -> Accumulated:
    """Forward and backward of a minibatch, in micro-batches of at most max_tokens tokens.

    Leaves the gradient of (sum of losses and KL penalties) / D in `.grad`: zeros, not None, where
    nothing reached a parameter, so that the optimizer still takes its step.

    Raises:
        RecipeError: a sequence exceeds the budget, or kl is asked for without batch.ref_logp.
    """
    lengths = batch.segments.lengths
    divisor = objective.divisor(int((lengths > 0).sum()), batch.num_tokens)
    zero_gradients(token_logp.model)
    running = torch.arange(batch.num_responses) if kl else rows_with_signal(batch)
    num_skipped = int((lengths > 0).sum() - (lengths[running] > 0).sum())
    part_run = batch.select(running)
    parts: list[Part] = []
    fault = _fault_in_inputs(part_run, running)
    for cut in token_logp.microbatches(part_run, max_tokens) if fault is None else []:
        rows, piece = running[cut], part_run.select(cut)
        logp = token_logp(piece)
        fault = nonfinite("logp", logp, piece.segments, rows)
        if fault:
            break
        part, loss = _evaluate(piece, rows, logp, objective, kl)
        fault = nonfinite("loss", loss, None, rows)
        if fault:
            break
        if not part.dead:
            (loss.sum() / divisor).backward()
        parts.append(part)
    return Accumulated(divisor, parts, fault, num_skipped)


def rows_with_signal(batch: RolloutBatch) -> Int[Tensor, "R"]:
    """Responses with an advantage that is not zero (NaN is not): the others have no gradient."""
    signal = batch.advantage != 0
    if batch.advantage.numel() != batch.num_responses:
        signal = batch.segments.sum(signal.float()) > 0
    return signal.nonzero().squeeze(1)


def zero_gradients(model: nn.Module) -> None:
    """Gradients of zero, not None, for every trainable parameter."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            else:
                parameter.grad.zero_()


def _evaluate(
    piece: RolloutBatch,
    rows: Int[Tensor, "R"],
    logp: Float[Tensor, "M"],
    objective: Objective,
    kl: KLPenalty | None,
) -> tuple[Part, Float[Tensor, "R"]]:
    """The micro-batch's losses with their graph, and the detached record of them. Without old
    log-probs the policy has not moved yet: they are the current ones, and the ratio is exactly 1."""
    old_logp = logp.detach() if piece.old_logp is None else piece.old_logp
    advantage = _advantage(objective, piece)
    surrogate = objective(logp, old_logp, advantage, piece.segments)
    loss, penalty = surrogate.loss, None
    if kl is not None:
        if piece.ref_logp is None:
            raise RecipeError(
                "a KL penalty is set but the batch has no ref_logp: score it with the reference"
                " policy first, or leave kl out"
            )
        added = kl_penalty(
            logp, piece.ref_logp, piece.segments, kl=kl, denominator=objective.denominator
        )
        loss, penalty = loss + added, added.detach()
    part = Part(
        rows=rows,
        advantage=piece.advantage,
        logp=logp.detach(),
        old_logp=old_logp,
        moved=piece.old_logp is not None,
        surrogate=replace(surrogate, loss=surrogate.loss.detach()),
        penalty=penalty,
        dead=not logp.numel() or (kl is None and bool(objective.dead(surrogate).all())),
    )
    return part, loss


def _advantage(objective: Objective, piece: RolloutBatch) -> Tensor:
    """The batch's advantages in the shape the objective takes. One of a response goes to each of
    its tokens where the objective wants one a token; where all lengths are 1 the two are the same."""
    if objective.advantage_per == "response" or piece.advantage.numel() != piece.num_responses:
        return piece.advantage
    return piece.segments.spread(piece.advantage)


def nonfinite(
    name: str,
    values: Float[Tensor, "M"],
    segments: Segments | None,
    rows: Int[Tensor, "R"],
) -> str | None:
    """What is not finite, by the response's number in the minibatch and its first bad value; None
    if all is well. segments: of the values, or None where there is one value a response."""
    bad = (~values.isfinite()).nonzero().squeeze(1)
    if not bad.numel():
        return None
    first, value = int(bad[0]), float(values.detach()[bad[0]])
    if segments is None:
        return f"{name} of response {int(rows[first])} is {value}"
    row = int(segments.ids[first])
    token = first - int(segments.lengths[:row].sum())
    return f"{name} of response {int(rows[row])} is {value} at its trained token {token}"


def _fault_in_inputs(batch: RolloutBatch, rows: Int[Tensor, "R"]) -> str | None:
    per_response = batch.advantage.numel() == batch.num_responses
    checks = (
        ("advantage", batch.advantage, None if per_response else batch.segments),
        ("old_logp", batch.old_logp, batch.segments),
        ("ref_logp", batch.ref_logp, batch.segments),
    )
    for name, values, segments in checks:
        fault = None if values is None else nonfinite(name, values, segments, rows)
        if fault:
            return fault
    return None


def response_update(batch: RolloutBatch, objective: Objective, parts: list[Part]) -> ResponseUpdate:
    """The parts in the minibatch's order; NaN, and no cut, for responses that did not run. The
    loss is the objective's, without a KL penalty."""
    num = batch.num_responses
    log_s, loss = torch.full((num,), math.nan), torch.full((num,), math.nan)
    cut_low, cut_high = torch.zeros(num, dtype=torch.int64), torch.zeros(num, dtype=torch.int64)
    for part in parts:
        surrogate, segments = part.surrogate, part.surrogate.segments
        log_s[part.rows] = segments.mean(part.logp - part.old_logp)
        loss[part.rows] = surrogate.loss
        for total, cut in ((cut_low, surrogate.cut_low), (cut_high, surrogate.cut_high)):
            units = cut if objective.unit == "sequence" else segments.sum(cut.float())
            total[part.rows] = units.long()
    logp = in_batch_order(batch, ((part.rows, part.logp) for part in parts))
    old_logp = in_batch_order(batch, ((part.rows, part.old_logp) for part in parts))
    return ResponseUpdate(logp, old_logp, log_s, cut_low, cut_high, loss)


def statistics(objective: Objective, done: Accumulated) -> Stats:
    """Statistics of one minibatch by their names in docs/metrics.md; over minibatches they add."""
    stats: Stats = {}
    losses = {
        "loss/policy": [part.surrogate.loss for part in done.parts],
        "loss/kl": [part.penalty for part in done.parts if part.penalty is not None],
    }
    for name, per_response in losses.items():
        if per_response or name == "loss/policy":
            total = sum((losses.sum() for losses in per_response), torch.zeros(()))
            stats[name] = Mean(total / done.divisor, 1)
    dead = sum(len(part.rows) for part in done.parts if part.dead)
    stats["update/skipped_responses"] = Sum(done.num_skipped)
    stats["update/skipped_backward"] = Sum(dead)
    return stats | merge(_unit_statistics(objective, part) for part in done.parts)


def _unit_statistics(objective: Objective, part: Part) -> Stats:
    """Extrema over units (responses or tokens), and the share of gradient weight the clip left.

    The weight without a clip is ratio x |A|, over the response's length where the objective
    averages a response (D counts responses). Where the ratio is 1 by definition there is no share.
    """
    surrogate, segments = part.surrogate, part.surrogate.segments
    ratio = surrogate.log_ratio.double().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    stats: Stats = {
        "ratio/max": Max(ratio.max() if ratio.numel() else None),
        "ratio/min": Min(ratio.min() if ratio.numel() else None),
        "ratio/bounded": Sum(surrogate.bounded.sum()),
    }
    if part.moved:
        ratio_N = segments.spread(ratio) if objective.unit == "sequence" else ratio
        length_N = segments.spread(segments.lengths) if objective.denominator == "responses" else 1
        unclipped = ratio_N * _advantage_of_tokens(part).double().abs() / length_N
        stats["weight/kept_share"] = Mean(surrogate.weight.double().abs().sum(), unclipped.sum())
    return stats


def _advantage_of_tokens(part: Part) -> Float[Tensor, "M"]:
    segments = part.surrogate.segments
    if part.advantage.numel() == segments.num_responses:
        return segments.spread(part.advantage)
    return part.advantage
