"""May the engine's log-probs stand in for the trainer's old ones? A decision by numbers.

The ratio compares two policies of the trainer. With the engine's log-probs as old ones it also
holds the engine gap, so they are allowed where the gap cannot move a clip decision: measured on
the responses whose forward the first minibatch makes anyway, before its optimizer step, when both
sides have the same weights. b is the narrower side of the clip's band, in nats.

    sequence objectives   |mean of gap / b| <= MAX_BIAS and spread of gap / b <= MAX_NOISE, over
                          responses; the gap is the response's mean of logp - engine_logp
    token objectives      the 0.99 quantile of |logp - engine_logp| / b <= MAX_NOISE, over tokens

CISPO and SAPO have no band that a gap could be small against, so for them the gate stays shut.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gspo.diagnostics.gap import MAX_BIAS, MAX_NOISE
from gspo.segments import Segments
from gspo.settings import CISPO, SAPO, Objective
from gspo.stats import Mean, Stats

TOKEN_QUANTILE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """shut: why the engine's log-probs are not used; None: they are. bias, noise: as shares of the
    band's narrower side, bias None for token objectives, both None where nothing was measured."""

    shut: str | None
    bias: float | None = None
    noise: float | None = None

    def stats(self) -> Stats:
        """`gate/*` by their names in docs/metrics.md."""
        values = {"gate/bias": self.bias, "gate/noise": self.noise}
        measured: Stats = {
            name: Mean(value, 1) for name, value in values.items() if value is not None
        }
        return measured | {"gate/open": Mean(int(self.shut is None), 1)}


def engine_gate(
    objective: Objective,
    engine_logp: Float[Tensor, "N"],
    logp: Float[Tensor, "N"],
    segments: Segments,
) -> Gate:
    """The decision, from tokens whose logp is finite; the engine must have given all of theirs."""
    clip = getattr(objective, "clip", None)
    if clip is None or isinstance(objective, CISPO | SAPO):
        return Gate(shut=f"{objective.name} has no band to measure the engine gap against")
    ran = logp.isfinite()
    if bool(engine_logp.isnan().any()):
        return Gate(shut="the engine gave no log-prob of some tokens")
    low, high = (torch.as_tensor(side).double() for side in clip.band(segments.lengths))
    narrower = torch.minimum(-low, high).expand(segments.num_responses)
    gap = torch.where(ran, logp.double() - engine_logp.double(), 0.0) / segments.spread(narrower)
    if objective.unit == "token":
        return _token_gate(gap[ran].abs())
    rows = segments.sum(ran.double()) > 0
    return _sequence_gate(segments.mean(gap)[rows])


def _token_gate(gap: Float[Tensor, "M"]) -> Gate:
    if not gap.numel():
        return Gate(shut="the first minibatch ran no response")
    place = min(int(TOKEN_QUANTILE * gap.numel()), gap.numel() - 1)
    noise = float(gap.sort().values[place])
    shut = (
        None if noise <= MAX_NOISE else _too_large(f"{TOKEN_QUANTILE:g} quantile", noise, MAX_NOISE)
    )
    return Gate(shut=shut, noise=noise)


def _sequence_gate(gap: Float[Tensor, "R"]) -> Gate:
    if gap.numel() < 2:
        return Gate(shut=f"the first minibatch ran {gap.numel()} responses, which show no spread")
    bias, noise = float(gap.mean()), float(gap.std())
    shut = None
    if not abs(bias) <= MAX_BIAS:
        shut = _too_large("bias", bias, MAX_BIAS)
    elif not noise <= MAX_NOISE:
        shut = _too_large("spread", noise, MAX_NOISE)
    return Gate(shut=shut, bias=bias, noise=noise)


def _too_large(what: str, value: float, limit: float) -> str:
    return f"{what} of the engine gap is {value:.2g} of the band's narrower side, above {limit:g}"
