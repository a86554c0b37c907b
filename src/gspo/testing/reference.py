"""Every objective once more, written out in plain Python numbers (float64), token by token.

A kit that compared with this library's own losses would excuse their faults, and vectors from a
file would hold for their own settings only. So this file shares no line with `gspo.objectives`,
not even tensors, and the tests hold it to the golden vectors, which neither of the two made.

With d_t = logp_t - old_logp_t, a unit's log-ratio u_t, and A_t the advantage of token t:

    level       u_t                  weight of a kept token
    sequence    mean_t d_t           e^u A_t
    token       d_t                  e^u A_t
    geometric   d_t                  e^(mean_t k_t) A_t, k_t = d_t clipped on the side of A
    weight      d_t                  clip(e^u) A_t
    gate        d_t                  4 sigmoid(x) sigmoid(-x) e^u A_t,  x = tau (e^u - 1)

d loss / d logp_t = -weight_t / (L_i D) for the shape "mean", -weight_t / D for "uniform".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gspo.testing.wanted import Wanted

Rows = list[list[float]]


@dataclass(frozen=True)
class Case:
    """Ragged: one list of tokens a response; width: of the padded form, in tokens."""

    logp: Rows
    old_logp: Rows
    advantage: Rows
    width: int

    @property
    def lengths(self) -> list[int]:
        """Trained tokens of each response."""
        return [len(row) for row in self.logp]

    def log_ratios(self, row: int) -> list[float]:
        """d_t of one response."""
        return [new - old for new, old in zip(self.logp[row], self.old_logp[row], strict=True)]


@dataclass(frozen=True)
class Terms:
    """One response: log-ratio on which each token's clip is decided, weight where it is kept."""

    unit: list[float]
    weight: list[float]


def cut_by_sign(unit: float, advantage: float, low_edge: float, high_edge: float) -> bool:
    """PPO's rule: the ratio has already moved past the band to where the advantage pushes."""
    return (advantage > 0 and unit > high_edge) or (advantage < 0 and unit < low_edge)


def terms(wanted: Wanted, case: Case, row: int) -> Terms:
    """What this objective makes of one response, before anything is cut."""
    ratios, advantage = case.log_ratios(row), case.advantage[row]
    if wanted.level == "sequence":
        mean = sum(ratios) / len(ratios)
        return Terms([mean] * len(ratios), [math.exp(mean) * a for a in advantage])
    return Terms(ratios, TOKEN_WEIGHTS[wanted.level](wanted, ratios, advantage))


def is_cut(wanted: Wanted, unit: float, advantage: float) -> bool:
    """The clip stops this token."""
    if not wanted.cuts:
        return False
    dual = wanted.log_dual_clip
    if dual is not None and advantage < 0 and unit > dual:
        return True
    return cut_by_sign(unit, advantage, wanted.low_edge, wanted.high_edge)


def gradient(wanted: Wanted, case: Case) -> Rows:
    """d loss / d logp of every trained token; responses without one leave every denominator."""
    divisor = _divisor(wanted, case)
    rows: Rows = []
    for row, length in enumerate(case.lengths):
        if not length:
            rows.append([])
            continue
        made = terms(wanted, case, row)
        share = divisor * (length if wanted.shape == "mean" else 1)
        rows.append(
            [
                0.0 if is_cut(wanted, unit, advantage) else -weight / share
                for unit, weight, advantage in zip(
                    made.unit, made.weight, case.advantage[row], strict=True
                )
            ]
        )
    return rows


def loss(wanted: Wanted, case: Case) -> float:
    """The objective's value, to be minimised."""
    total = 0.0
    for row, length in enumerate(case.lengths):
        if length:
            gains = _gains(wanted, case, row)
            total -= sum(gains) / (length if wanted.shape == "mean" else 1)
    return total / _divisor(wanted, case)


def _divisor(wanted: Wanted, case: Case) -> int:
    lengths = [length for length in case.lengths if length]
    return max(wanted.divisor(len(lengths), sum(lengths)), 1)


def _gains(wanted: Wanted, case: Case, row: int) -> list[float]:
    made, advantage = terms(wanted, case, row), case.advantage[row]
    if wanted.level == "weight":
        return [w * logp for w, logp in zip(made.weight, case.logp[row], strict=True)]
    if wanted.level == "gate":
        taus = [_tau(wanted, a) for a in advantage]
        return [
            _sigmoid(tau * (math.exp(unit) - 1)) * 4 / tau * a
            for unit, tau, a in zip(made.unit, taus, advantage, strict=True)
        ]
    if wanted.level == "geometric":
        return made.weight
    return [
        math.exp(_held(wanted, unit, a)) * a for unit, a in zip(made.unit, advantage, strict=True)
    ]


def _held(wanted: Wanted, unit: float, advantage: float) -> float:
    """The log-ratio after the clip: a token that is cut stands at the edge it passed."""
    if not is_cut(wanted, unit, advantage):
        return unit
    if advantage < 0 and unit > wanted.high_edge:
        return wanted.log_dual_clip or unit
    return wanted.high_edge if advantage > 0 else wanted.low_edge


def _token(wanted: Wanted, ratios: Sequence[float], advantage: Sequence[float]) -> list[float]:
    return [math.exp(d) * a for d, a in zip(ratios, advantage, strict=True)]


def _geometric(wanted: Wanted, ratios: Sequence[float], advantage: Sequence[float]) -> list[float]:
    clipped = [
        min(d, wanted.high_edge) if a > 0 else max(d, wanted.low_edge) if a < 0 else d
        for d, a in zip(ratios, advantage, strict=True)
    ]
    mean = sum(clipped) / len(clipped)
    return [math.exp(mean) * a for a in advantage]


def _weight(wanted: Wanted, ratios: Sequence[float], advantage: Sequence[float]) -> list[float]:
    return [
        math.exp(min(max(d, wanted.low_edge), wanted.high_edge)) * a
        for d, a in zip(ratios, advantage, strict=True)
    ]


def _gate(wanted: Wanted, ratios: Sequence[float], advantage: Sequence[float]) -> list[float]:
    weights: list[float] = []
    for d, a in zip(ratios, advantage, strict=True):
        gate = _tau(wanted, a) * (math.exp(d) - 1)
        weights.append(4 * _sigmoid(gate) * _sigmoid(-gate) * math.exp(d) * a)
    return weights


def _tau(wanted: Wanted, advantage: float) -> float:
    return wanted.tau_pos if advantage > 0 else wanted.tau_neg


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


TOKEN_WEIGHTS: dict[str, Callable[[Wanted, Sequence[float], Sequence[float]], list[float]]] = {
    "token": _token,
    "geometric": _geometric,
    "weight": _weight,
    "gate": _gate,
}

LEVELS = ("sequence", *TOKEN_WEIGHTS)
