"""Tells which formula a gradient came from: the ratio, what was cut, and the denominator.

The gradient of every loss of this family is -weight_t / (share x D) on kept tokens and 0 on cut
ones. So each known form of the weight is divided into the gradient: where one number 1 / D comes
out for all kept tokens, that form is the one, and the tokens without a gradient show the clip.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from gspo.testing import reference
from gspo.testing.reference import Case, Rows, Terms, cut_by_sign
from gspo.testing.wanted import NO_RANGE, Shape, Wanted

#: Relative: float32 losses reach 1e-6, and two formulas differ by 1e-3 on the ordinary batch.
TOLERANCE = 3e-5
#: Relative to the largest: below it a gradient counts as none.
NOTHING = 1e-7
#: With fewer kept tokens than these, one number for all of them says little.
FEWEST_KEPT = 4

#: Forms of the weight that stand for a fault in any objective, after the five of `reference`.
MORE_LEVELS = ("held", "product", "width", "arithmetic", "one", "column", "pairs", "trained_pairs")
STYLES = ("by_sign", "both_sides", "never", "wrong_sign", "exchanged")


@dataclass(frozen=True)
class Match:
    """level: form of the weight, of `reference` or of MORE_LEVELS. advantage: "given",
    "centred" or "averaged" first. style: what the clip stops, or None for something else.
    divisor: D, negative for a gradient of the wrong sign."""

    level: str
    advantage: str
    style: str | None
    shape: Shape
    divisor: float


def identify(wanted: Wanted, case: Case, gradient: Rows) -> Match | None:
    """The first known form that explains the gradient, the wanted one first; None if none does."""
    largest = max(abs(value) for row in gradient for value in row)
    kept = [[abs(value) > NOTHING * largest for value in row] for row in gradient]
    if sum(map(sum, kept)) < FEWEST_KEPT:
        return None
    for changed, changed_case in _advantages(wanted, case):
        for level in _levels(wanted):
            made = [_terms(wanted, level, changed_case, row) for row in range(len(case.logp))]
            for shape in _own_first(wanted):
                divisor = _one_divisor(made, gradient, kept, shape)
                if divisor is not None:
                    style = _style(wanted, level, changed_case, made, kept)
                    return Match(level, changed, style, shape, divisor)
    return None


def trained(gradient: Tensor, mask: Tensor) -> Rows:
    """The entries of a padded gradient on trained tokens, one list a response."""
    return [
        [value for value, is_trained in zip(row, trained_row, strict=True) if is_trained]
        for row, trained_row in zip(gradient.tolist(), mask.tolist(), strict=True)
    ]


def _own_first(wanted: Wanted) -> tuple[Shape, Shape]:
    return ("mean", "uniform") if wanted.shape == "mean" else ("uniform", "mean")


def _levels(wanted: Wanted) -> list[str]:
    known = [wanted.level, "sequence", "token", "geometric", "weight", "gate"]
    return list(dict.fromkeys([*known, *MORE_LEVELS]))


def _advantages(wanted: Wanted, case: Case) -> Iterator[tuple[str, Case]]:
    yield "given", case
    firsts = [row[0] for row in case.advantage]
    if wanted.per_token:
        means = [sum(row) / len(row) for row in case.advantage]
        yield "averaged", _with_advantage(case, means)
    else:
        centre = sum(firsts) / len(firsts)
        yield "centred", _with_advantage(case, [value - centre for value in firsts])


def _with_advantage(case: Case, values: Sequence[float]) -> Case:
    rows = [[value] * length for value, length in zip(values, case.lengths, strict=True)]
    return replace(case, advantage=rows)


def _terms(wanted: Wanted, level: str, case: Case, row: int) -> Terms:
    if level in reference.LEVELS:
        other = replace(wanted, level=level)
        if not wanted.cuts:
            other = replace(other, low_edge=NO_RANGE[0], high_edge=NO_RANGE[1])
        return reference.terms(wanted if level == wanted.level else other, case, row)
    ratios, advantage = case.log_ratios(row), case.advantage[row]
    mean, length = sum(ratios) / len(ratios), len(ratios)
    if level == "held":
        held = min(max(mean, wanted.low_edge), wanted.high_edge)
        return Terms([mean] * length, [math.exp(held) * a for a in advantage])
    if level in ("product", "width", "one"):
        unit = {"product": sum(ratios), "width": sum(ratios) / case.width, "one": 0.0}[level]
        return Terms([unit] * length, [math.exp(unit) * a for a in advantage])
    if level == "arithmetic":
        unit = math.log(sum(map(math.exp, ratios)) / length)
        weights = [math.exp(d) * a for d, a in zip(ratios, advantage, strict=True)]
        return Terms([unit] * length, weights)
    if level == "column":
        units = [mean] * length if wanted.level == "sequence" else ratios
        firsts = [values[0] for values in case.advantage[:length]]
        kept = _without_cut(wanted, units, firsts)
        return Terms(units, [math.exp(u) * a for u, a in zip(units, kept, strict=True)])
    firsts = [values[0] for values in case.advantage]
    firsts = firsts if level == "pairs" else firsts[:length]
    kept = _without_cut(wanted, [mean] * len(firsts), firsts)
    return Terms([mean] * length, [math.exp(mean) * sum(kept) / len(kept)] * length)


def _without_cut(wanted: Wanted, units: Sequence[float], advantage: Sequence[float]) -> list[float]:
    return [
        0.0 if cut_by_sign(unit, a, wanted.low_edge, wanted.high_edge) else a
        for unit, a in zip(units, advantage, strict=True)
    ]


def _one_divisor(
    made: list[Terms], gradient: Rows, kept: list[list[bool]], shape: Shape
) -> float | None:
    """D, if it is the same on every kept token."""
    found: list[float] = []
    for response, row, kept_row in zip(made, gradient, kept, strict=True):
        share = len(row) if shape == "mean" else 1
        for weight, value, is_kept in zip(response.weight, row, kept_row, strict=True):
            if is_kept and not weight:
                return None
            if is_kept:
                found.append(-weight / (share * value))
    middle = sorted(found)[len(found) // 2]
    same = all(math.isclose(value, middle, rel_tol=TOLERANCE) for value in found)
    return middle if same else None


def _style(
    wanted: Wanted, level: str, case: Case, made: list[Terms], kept: list[list[bool]]
) -> str | None:
    """Which known rule stops exactly the tokens without a gradient; the objective's own first."""
    own = (
        own_style(wanted) if level == wanted.level else "never" if level in NEVER_CUT else "by_sign"
    )
    for style in dict.fromkeys([own, *STYLES]):
        if all(
            is_kept == (bool(weight) and not _stops(wanted, style, unit, a))
            for response, advantage, row in zip(made, case.advantage, kept, strict=True)
            for unit, weight, a, is_kept in zip(
                response.unit, response.weight, advantage, row, strict=True
            )
        ):
            return style
    return None


#: Levels whose weights already hold what was cut, or that have nothing to cut.
NEVER_CUT = ("weight", "held", "gate", "one", "column", "pairs", "trained_pairs")


def own_style(wanted: Wanted) -> str:
    """The rule by which this objective's clip stops a token."""
    return "by_sign" if wanted.cuts else "never"


def _stops(wanted: Wanted, style: str, unit: float, advantage: float) -> bool:
    low, high = wanted.low_edge, wanted.high_edge
    dual = wanted.log_dual_clip
    if style != "never" and dual is not None and advantage < 0 and unit > dual:
        return True
    if style == "both_sides":
        return not low <= unit <= high
    if style == "wrong_sign":
        return cut_by_sign(unit, -advantage, low, high)
    if style == "exchanged":
        return cut_by_sign(unit, advantage, *_exchanged(wanted))
    return style == "by_sign" and cut_by_sign(unit, advantage, low, high)


def _exchanged(wanted: Wanted) -> tuple[float, float]:
    """The band whose distances below and above have changed places, in nats."""
    if wanted.level == "geometric":
        return -wanted.high_edge, -wanted.low_edge
    below, above = -math.expm1(wanted.low_edge), math.expm1(wanted.high_edge)
    return (math.log1p(-above) if above < 1 else -math.inf), math.log1p(below)
