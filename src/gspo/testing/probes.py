"""One function a trap: tries the loss, and says what came where it should not have.

Nearly all compare the loss with itself on a batch that should make no difference, so that a wrong
formula is told once, by `formula`, and not again by every other trap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gspo.testing import reference
from gspo.testing.batches import BEYOND, WIDTH, Padded, edges, padded
from gspo.testing.formula import trained
from gspo.testing.trial import Outcome, Trial
from gspo.testing.wanted import Wanted

#: Relative to the largest entry: float32 sums in another order differ by less.
SAME = 1e-5
#: A row of the ordinary batch that is not cut.
SINGLE = 1
ONE_AND_REST = [[SINGLE], [row for row in range(WIDTH) if row != SINGLE]]
#: What may stand in padded places.
ALIEN = (1e6, -1e6, math.inf, -math.inf, math.nan)
#: Of an edge, and in nats: how near to it a clip decides right, with room for float32.
NEAR, LEAST_NEAR = 0.01, 1e-6
#: nats: no float32 holds e^100.
FAR = 100.0
#: nats: distance of neighbouring float32 numbers from 64 to 128.
STEP = 2.0**-17
#: Relative: what float32 makes of exp() and a division, with room.
ROUNDING = 8e-7


@dataclass(frozen=True)
class Subject:
    """The loss, what it means to be, the ordinary batch and what came of it.

    gradient: (N, T), on the ordinary batch. rule_holds: ratio, clip and advantages are the
    objective's, so that probes which rest on them can judge.
    """

    trial: Trial
    wanted: Wanted
    batch: Padded
    outcome: Outcome
    gradient: Tensor
    rule_holds: bool = True


@dataclass(frozen=True)
class Told:
    """What was expected and what came instead. note: no fault of the loss itself."""

    expected: str
    got: str
    recognised: str | None = None
    note: bool = False


Probe = Callable[[Subject], Told | None]


def clip(subject: Subject) -> Told | None:
    """Log-ratios a hundredth inside and outside each edge, where the advantage pushes outwards."""
    if not subject.rule_holds or not subject.wanted.cuts:
        return None
    tried = list(_beside_the_edges(subject.wanted))
    rows, advantages = [[value] * 4 for value, _ in tried], [sign for _, sign in tried]
    batch = padded(subject.wanted, rows, advantages)
    outcome = subject.trial(batch)
    if outcome.error or outcome.gradient is None or not outcome.finite:
        return None  # the other probes tell
    right = reference.gradient(subject.wanted, batch.case())
    found = trained(outcome.gradient, batch.mask)
    for (value, _), wishes, values in zip(tried, right, found, strict=True):
        if bool(wishes[0]) != bool(values[0]):
            is_cut = "cut" if wishes[0] else "kept"
            return Told(
                f"a range of {subject.wanted.low_edge:.4g} to {subject.wanted.high_edge:.4g} on the log-ratio",
                f"a log-ratio of {value:.4g} is {is_cut}: the range is another",
                "other numbers than were given here, or a distance from 1 that was put on the log-ratio",
            )
    return None


def _beside_the_edges(wanted: Wanted) -> Iterator[tuple[float, float]]:
    """Log-ratio and the sign of the advantage that it is cut for."""
    near = edges(wanted)
    pairs = [
        (wanted.high_edge, 1.0, near[1] == wanted.high_edge),
        (wanted.low_edge, -1.0, near[0] == wanted.low_edge),
    ]
    if wanted.log_dual_clip is not None:
        pairs.append((wanted.log_dual_clip, -1.0, True))
    for edge, sign, is_reached in pairs:
        step = max(NEAR * abs(edge), LEAST_NEAR)
        if is_reached and abs(edge) > 2 * step:
            yield edge - math.copysign(step, edge), sign
        if is_reached:
            yield edge + math.copysign(step, edge), sign


def broadcast(subject: Subject) -> Told | None:
    """Rows and tokens were equally many so far; now they are not."""
    wider = subject.trial(subject.batch.widened(3))
    if wider.error is None:
        return None
    return Told(
        "any number of rows and tokens",
        f"fine with {WIDTH} rows of {WIDTH} tokens, with {WIDTH + 3} tokens {wider.error}",
    )


def row_order(subject: Subject) -> Told | None:
    """Rows in an order that leaves no two of them beside one another."""
    order = [3, 0, 6, 1, 7, 4, 2, 5]
    batch = subject.batch.rows(order)
    expected = "the same gradient with the rows in another order"
    return _unequal(subject.trial(batch), batch, subject.gradient[order], expected)


def token_positions(subject: Subject) -> Told | None:
    """Padding on the left, then in between."""
    left = list(range(WIDTH))[::-1]
    mixed = [7, 0, 6, 1, 2, 5, 3, 4]
    for what, order in (("padding on the left", left), ("untrained tokens in between", mixed)):
        batch = subject.batch.columns(order)
        expected = f"the same gradient with {what}"
        told = _unequal(subject.trial(batch), batch, subject.gradient[:, order], expected)
        if told:
            return told
    return None


def pad_width(subject: Subject) -> Told | None:
    """Three more columns of padding."""
    batch = subject.batch.widened(3)
    wanted = torch.nn.functional.pad(subject.gradient, (0, 3))
    expected = "the same gradient with three more columns of padding"
    return _unequal(subject.trial(batch), batch, wanted, expected)


def padding(subject: Subject) -> Told | None:
    """Other numbers in padded places, in either set of log-probs."""
    empty = ~subject.batch.mask
    leaking = {value: names for value in ALIEN if (names := _leaks(subject, value))}
    has_gradient = bool(subject.gradient[empty].any())
    if not leaking and not has_gradient:
        return None
    came = [f"{value:g} in {' and '.join(names)} changes it" for value, names in leaking.items()]
    if has_gradient:
        came.insert(0, "padded places have a gradient")
    return Told("no change, and a gradient of 0 in padded places", "; ".join(came))


def _leaks(subject: Subject, value: float) -> list[str]:
    """Which log-probs change the gradient when they hold this value in padded places."""
    batch, empty = subject.batch, ~subject.batch.mask
    changed = {
        "logp": replace(batch, logp=batch.logp.masked_fill(empty, value)),
        "logp_old": replace(batch, old_logp=batch.old_logp.masked_fill(empty, value)),
    }
    return [
        name
        for name, other in changed.items()
        if _unequal(subject.trial(other), batch, subject.gradient, "")
    ]


def empty_rows(subject: Subject) -> Told | None:
    """Two rows without a trained token; then a batch of nothing else."""
    batch = subject.batch.with_empty_rows(2)
    wanted = torch.nn.functional.pad(subject.gradient, (0, 0, 0, 2))
    expected = "the same gradient with two rows more that have no token"
    told = _unequal(subject.trial(batch), batch, wanted, expected)
    if told:
        return told
    nothing = subject.trial(batch.rows([WIDTH, WIDTH + 1]))
    return _not_zero(nothing, "loss and gradient of 0 where no row has a token")


def single_row(subject: Subject) -> Told | None:
    """A row that is not cut, alone."""
    outcome = subject.trial(subject.batch.rows([SINGLE]))
    if outcome.error or not outcome.finite:
        return Told("a finite loss and gradient", _came(outcome))
    bad = [
        name
        for name, value in _numbers(outcome.stats).items()
        if not math.isfinite(float(value.detach() if isinstance(value, Tensor) else value))
    ]
    if bad:
        return Told("numbers, or None", f"{', '.join(bad)} is not finite for one row", note=True)
    return None


def token_clamp(subject: Subject) -> Told | None:
    """Log-ratios that are huge and cancel, against log-ratios of 0."""
    logp = [[-1.0] * 3] * 2
    wild, calm = (
        padded(subject.wanted, [first, [0.0] * 3], [1.0, -0.5], logp=logp)
        for first in ([FAR, -FAR / 2, -FAR / 2], [0.0] * 3)
    )
    wanted = subject.trial(calm).gradient
    if wanted is None:
        return None
    expected = "the gradient of ratio 1 for log-ratios [100, -50, -50]"
    return _unequal(subject.trial(wild), wild, wanted, expected)


def unbounded_exp(subject: Subject) -> Told | None:
    """Every token 100 nats up, and 200 down, for both signs of the advantage."""
    for ratio in (FAR, -2 * FAR):
        for advantage in (1.0, -1.0):
            rows, advantages = [[ratio] * 3, [0.0] * 3], [advantage, -advantage / 2]
            outcome = subject.trial(padded(subject.wanted, rows, advantages))
            if outcome.error or not outcome.finite:
                return Told(
                    "a finite loss and gradient",
                    f"{_came(outcome)} for log-ratios of {ratio:g} and A = {advantage:g}",
                )
    return None


def order_of_addition(subject: Subject) -> Told | None:
    """The same log-ratios at log-probs of -1.5 and of -100, where float32 has steps of 7.6e-6."""
    ratios = [[STEP * count for count in (0, 3, -5, 9, -8, 2, -4, 6)]] * 2  # mean: 3/8 of a step
    found = [
        subject.trial(padded(subject.wanted, ratios, [-1.0, -0.5], logp=[[start] * 8] * 2))
        for start in (-1.5, -100.0)
    ]
    near, far = found
    if near.gradient is None or far.error or far.gradient is None:
        return None
    moved = float(((far.gradient - near.gradient) / near.gradient).abs().max())
    if moved <= ROUNDING:
        return None
    return Told(
        "the same ratio for the same log-ratios, at log-probs of -1.5 and of -100",
        f"it moved by {moved:.1e}, where the range reaches {subject.wanted.high_edge:.1e} above 1",
    )


def low_precision(subject: Subject) -> Told | None:
    """Log-ratios that bfloat16 holds exactly, a tenth beyond the range; a refusal is fine."""
    wanted = subject.wanted
    batch = _beyond_by_a_tenth(wanted)
    for dtype in (torch.bfloat16, torch.float16):
        rounded = batch.to(dtype)
        outcome = subject.trial(rounded)
        if outcome.error or outcome.gradient is None:
            continue
        expected = reference.gradient(wanted, rounded.case())
        found = trained(outcome.gradient, rounded.mask)
        wrong = [
            (row, value != 0)
            for row, (right, values) in enumerate(zip(expected, found, strict=True))
            for wish, value in zip(right, values, strict=True)
            if (wish != 0) != (value != 0)
        ]
        if wrong:
            row, kept = wrong[0]
            name = str(dtype).removeprefix("torch.")
            came = "kept" if kept else "cut"
            ratio = sum(rounded.case().log_ratios(row)) / len(expected[row])
            return Told(
                f"a log-ratio of {ratio:.2e} is {'cut' if kept else 'kept'}",
                f"with {name} log-probs it is {came}",
            )
    return None


def dead_rows(subject: Subject) -> Told | None:
    """All advantages 0; then all tokens cut."""
    still = subject.trial(
        Padded(
            *subject.batch.tensors[:2],
            torch.zeros_like(subject.batch.advantage),
            subject.batch.mask,
        )
    )
    told = _not_zero(still, "a gradient of exactly 0 where all advantages are 0", loss=False)
    if told or not subject.rule_holds or not subject.wanted.cuts:
        return told
    high = edges(subject.wanted)[1] + BEYOND
    batch = padded(subject.wanted, [[high] * 4, [high] * 2], [1.0, 0.5])
    if any(value for row in reference.gradient(subject.wanted, batch.case()) for value in row):
        return None  # the range is so wide that nothing lies beyond it
    return _not_zero(subject.trial(batch), "a gradient of exactly 0 where all is cut", loss=False)


def micro_batches(subject: Subject) -> Told | None:
    """One row and the other seven, added up."""
    batch = subject.batch
    if subject.trial.denominators:
        off = _apart(subject, ONE_AND_REST, batch.counts)
        expected = "the gradient of the whole batch from parts that know its counts"
        return None if off <= SAME else Told(expected, f"{off:.0%} off with parts of 1 and 7 rows")
    halves = [list(range(WIDTH // 2)), list(range(WIDTH // 2, WIDTH))]
    equal = _apart(subject, halves, None)
    unequal = _apart(subject, ONE_AND_REST, None)
    return Told(
        "num_responses and num_tokens of the whole optimizer step, as parameters of these names",
        f"it counts its own call: the mean of two micro-batches is {equal:.0%} off with 4 and 4 "
        f"rows, {unequal:.0%} with 1 and 7",
        note=True,
    )


def statistics(subject: Subject) -> Told | None:
    """No tensor beside the loss carries a graph."""
    attached = [
        name
        for name, value in _numbers(subject.outcome.stats).items()
        if isinstance(value, Tensor) and value.requires_grad
    ]
    if not attached:
        return None
    return Told("numbers or detached tensors", f"{', '.join(attached)} requires a gradient")


def _apart(subject: Subject, parts: list[list[int]], counts: Mapping[str, int] | None) -> float:
    """How far the gradient from parts is off, relative to the whole one's norm. With counts the
    parts are added, without they are averaged."""
    found = torch.zeros_like(subject.gradient)
    for rows in parts:
        outcome = subject.trial(subject.batch.rows(rows), counts)
        if outcome.gradient is None:
            return math.inf
        found[rows] = outcome.gradient / (1 if counts else len(parts))
    return float((found - subject.gradient).norm() / subject.gradient.norm())


def _beyond_by_a_tenth(wanted: Wanted) -> Padded:
    low, high = edges(wanted)
    length = 16 if wanted.level == "sequence" else 2
    rows: list[list[float]] = []
    for edge in (high, high, low, low):
        steps = math.ceil(1.1 * abs(edge) * length * 128)
        if wanted.level != "sequence":
            steps = math.ceil(1.1 * abs(edge) * 128) * length
        each = [steps // length + (token < steps % length) for token in range(length)]
        rows.append([math.copysign(count / 128, edge) for count in each])
    top = [[-1.0 - max(0.0, -value) for value in row] for row in rows]
    return padded(wanted, rows, [1.0, -1.0, -1.0, 1.0], logp=top)


def _unequal(outcome: Outcome, batch: Padded, wanted: Tensor, expected: str) -> Told | None:
    """The gradient on the trained tokens of batch is not that of wanted, (N, T)."""
    if outcome.error or outcome.gradient is None or not outcome.finite:
        return Told(expected, _came(outcome))
    found, right = outcome.gradient[batch.mask], wanted[batch.mask]
    off = (found - right).abs().max() / right.abs().max().clamp(min=1e-30)
    if bool(off <= SAME):
        return None
    return Told(expected, f"the gradient is off by up to {float(off):.1%} of its largest entry")


def _not_zero(outcome: Outcome, expected: str, *, loss: bool = True) -> Told | None:
    if outcome.error or outcome.gradient is None or not outcome.finite:
        return Told(expected, _came(outcome))
    largest = float(outcome.gradient.abs().max())
    if largest == 0 and (not loss or outcome.loss == 0):
        return None
    return Told(expected, f"loss {outcome.loss:.3g}, largest entry of the gradient {largest:.3g}")


def _came(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error
    if outcome.gradient is None:
        return f"loss {outcome.loss:.3g} and no gradient"
    kind = "finite" if bool(outcome.gradient.isfinite().all()) else "not finite"
    return f"loss {outcome.loss:.3g}, gradient {kind}"


def _numbers(stats: Any) -> dict[str, Any]:
    """Numbers and tensors of one entry among the statistics, by name."""
    named = stats.items() if isinstance(stats, Mapping) else [("the second value", stats)]
    return {
        str(name): value
        for name, value in named
        if (isinstance(value, Tensor) and value.numel() == 1) or isinstance(value, float | int)
    }
