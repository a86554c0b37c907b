"""How a measured clip range follows the policy: the rules of `clip: auto` as one pure function.

    measuring   after warm-up, under the provisional band, until both signs of the advantage are
                seen often enough; then the range is fixed by `fit_range`
    settling    the band in force changes the drift, so the range is measured again under it;
                both sides go half way in logs, to sqrt(old x new), once
    holding     window after window the share that was cut is compared with the wanted one; only
                outside a tolerance is the range fitted again. A side narrows at once; it widens
                half way in logs, never beyond 1.5 times its first measured distance, so a policy
                that moves ever further cannot take the band with it

The clip makes a response's gradient zero, it does not hide the response: log s of what was cut is
recorded like any other, so the quantiles can be estimated under every band.

Distances hold at one learning rate, that of the first measured step. Log s is taken to it before
it counts, the band in force is taken from it: drift is proportional to the learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch

from gspo.diagnostics.calibration import (
    CEILING,
    MIN_RESPONSES,
    PROVISIONAL_CLIP,
    Calibration,
    fit_range,
    noise_floor,
)
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.settings import ClipRange

Phase = Literal["measuring", "settling", "holding"]

#: Steps after which a fit takes fewer responses of each sign, down to the number beside it.
MAX_MEASURED_STEPS, FEWEST_RESPONSES = 20, 32
MAX_WINDOW_STEPS, FEWEST_WINDOW_RESPONSES = 8, 16
MIN_WINDOW_STEPS = 2  # responses of one step share its updates: many of them still tell little
#: Responses of a sign kept while the other is waited for; the state must not grow with the run.
MAX_EVIDENCE = 4096
#: A window holds so many responses of each sign that this many of them should be cut: the share
#: then has a relative standard error of 1/sqrt(10) a sign.
WINDOW_CUTS = 10
TOLERANCE = 1 / 3  # of the wanted share, either way: 0.10 to 0.20 for 0.15
#: Steps of measuring without enough responses of a sign, after which that is said once.
GIVE_NOTICE_STEPS = 3 * MAX_MEASURED_STEPS
MAX_WIDENING = 1.5  # of a side's first measured distance, over the whole run
RESCALE_EVENT = 2.0  # the learning rate moves the band every step; said when it halved or doubled


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRules:
    """cut_share: the wanted one. warmup_steps: steps at the start that are not measured. floor:
    smallest distance from ratio 1; with the engine's log-probs as the old ones give
    `noise_floor(engine_gap_mean=...)`."""

    cut_share: float
    warmup_steps: int = 0
    floor: float = noise_floor()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipMemory:
    """All that the next decision depends on; plain numbers, so that a resume keeps it.

    low, high: distances from ratio 1, at `learning_rate` (0 until a step is measured). widest_low,
    widest_high: what refits may widen to; None while that side was never measured above the floor.
    positive, negative: log s of the open window by sign of the advantage, nats, at
    `learning_rate`. num_cut, num_signal: its responses that were cut, and that could have been.
    told_scale: learning rate over `learning_rate` when an event last named the band.
    """

    phase: Phase = "measuring"
    low: float = PROVISIONAL_CLIP.low
    high: float = PROVISIONAL_CLIP.high
    learning_rate: float = 0.0
    widest_low: float | None = None
    widest_high: float | None = None
    positive: tuple[float, ...] = ()
    negative: tuple[float, ...] = ()
    num_cut: int = 0
    num_signal: int = 0
    window_steps: int = 0
    told_scale: float = 1.0

    def in_force(self, learning_rate: float, rules: ClipRules) -> ClipRange:
        """The range for a step at this learning rate."""
        if self.phase == "measuring":
            return PROVISIONAL_CLIP
        scale = learning_rate / self.learning_rate
        low, high = (min(max(d * scale, rules.floor), CEILING) for d in (self.low, self.high))
        return ClipRange(low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipEvent:
    """A change of the clip range: one line for people, and the evidence. low_held, high_held: a
    "ceiling" or a quantile against the advantage is for the alarms to tell."""

    kind: Literal["clip_fixed", "refit", "clip_rescaled", "clip_unmeasured"]
    text: str
    evidence: Mapping[str, Any]


def next_clip(
    memory: ClipMemory,
    rules: ClipRules,
    step: int,
    responses: UpdatedResponses,
    learning_rate: float,
) -> tuple[ClipMemory, ClipEvent | None]:
    """What a finished step, run under `memory.in_force(learning_rate, rules)`, teaches.

    step: counted from 1. learning_rate: mean over the step's updates; a step at 0 moves nothing
    and is not measured.
    """
    if step <= rules.warmup_steps or learning_rate <= 0:
        return memory, None
    memory = _with_step(memory, responses, learning_rate)
    scale = learning_rate / memory.learning_rate
    fitted = _fit(memory, rules)
    if fitted is None and memory.phase == "measuring" and memory.window_steps == GIVE_NOTICE_STEPS:
        return memory, _unmeasured_event(memory)
    if fitted is None:
        return _tell_scale(memory, scale, rules)
    share = memory.num_cut / max(memory.num_signal, 1)
    within = abs(share - rules.cut_share) <= TOLERANCE * rules.cut_share
    if memory.phase == "holding" and within:
        return _tell_scale(_new_window(memory), scale, rules)
    changed, event = _refit(memory, rules, step, fitted, scale, share)
    if (changed.low, changed.high) == (memory.low, memory.high):
        return changed, None  # held where it was, by a bound: nothing to tell
    return changed, event


def _with_step(memory: ClipMemory, responses: UpdatedResponses, learning_rate: float) -> ClipMemory:
    """With the step's off-policy responses in the window."""
    reference = memory.learning_rate or learning_rate
    seen = responses.signal & responses.off_policy & responses.log_s.isfinite()
    log_s = responses.log_s[seen].double() * (reference / learning_rate)
    advantage = responses.advantage[seen]
    cut = (responses.cut_low + responses.cut_high)[seen]
    return replace(
        memory,
        learning_rate=reference,
        positive=(*memory.positive, *log_s[advantage > 0].tolist())[-MAX_EVIDENCE:],
        negative=(*memory.negative, *log_s[advantage < 0].tolist())[-MAX_EVIDENCE:],
        num_cut=memory.num_cut + int(cut.count_nonzero()),
        num_signal=memory.num_signal + int(seen.sum()),
        window_steps=memory.window_steps + 1,
    )


def _fit(memory: ClipMemory, rules: ClipRules) -> Calibration | None:
    """The range of the open window; None while it has too few responses."""
    if memory.phase == "measuring":
        wanted, fewest, steps = MIN_RESPONSES, FEWEST_RESPONSES, MAX_MEASURED_STEPS
    elif memory.window_steps < MIN_WINDOW_STEPS:
        return None
    else:
        wanted = math.ceil(WINDOW_CUTS / rules.cut_share)
        fewest, steps = FEWEST_WINDOW_RESPONSES, MAX_WINDOW_STEPS
    signs = [1.0] * len(memory.positive) + [-1.0] * len(memory.negative)
    return fit_range(
        torch.tensor([*memory.positive, *memory.negative], dtype=torch.float64),
        torch.tensor(signs),
        floor=rules.floor,
        cut_share=rules.cut_share,
        min_responses=wanted if memory.window_steps < steps else fewest,
    )


def _refit(
    memory: ClipMemory,
    rules: ClipRules,
    step: int,
    fitted: Calibration,
    scale: float,
    share: float,
) -> tuple[ClipMemory, ClipEvent]:
    widest_low = _widest(memory.widest_low, fitted.low, fitted.low_held)
    widest_high = _widest(memory.widest_high, fitted.high, fitted.high_held)
    changed = replace(
        _new_window(memory),
        phase="settling" if memory.phase == "measuring" else "holding",
        low=_next_distance(memory.phase, memory.low, fitted.low, widest_low),
        high=_next_distance(memory.phase, memory.high, fitted.high, widest_high),
        widest_low=widest_low,
        widest_high=widest_high,
        told_scale=scale,
    )
    return changed, _refit_event(memory, changed, fitted, rules, share)


def _next_distance(phase: Phase, old: float, fitted: float, widest: float | None) -> float:
    if phase == "measuring" or (phase == "holding" and fitted < old):
        return fitted
    half_way = math.sqrt(old * fitted)
    return half_way if widest is None else min(half_way, widest)


def _widest(known: float | None, fitted: float, held: str) -> float | None:
    """A floor is no measurement: 1.5 times it would hold a side at noise for the whole run."""
    if known is not None or held == "floor":
        return known
    return MAX_WIDENING * fitted


def _new_window(memory: ClipMemory) -> ClipMemory:
    return replace(memory, positive=(), negative=(), num_cut=0, num_signal=0, window_steps=0)


def _refit_event(
    before: ClipMemory,
    after: ClipMemory,
    fitted: Calibration,
    rules: ClipRules,
    share: float,
) -> ClipEvent:
    first = before.phase == "measuring"
    band = after.in_force(after.learning_rate * after.told_scale, rules)
    evidence = asdict(fitted) | {
        "low": band.low,
        "high": band.high,
        "fitted_low": fitted.low,
        "fitted_high": fitted.high,
        "previous_low": before.low,
        "previous_high": before.high,
        "phase": before.phase,
        "measured_share": share,
        "num_cut": before.num_cut,
        "num_signal": before.num_signal,
        "measured_steps": before.window_steps,
        "learning_rate": after.learning_rate,
        "learning_rate_scale": after.told_scale,
        "widest_low": after.widest_low,
        "widest_high": after.widest_high,
    }
    what = "fixed" if first else f"refitted ({share:.2f} were cut, {rules.cut_share:g} wanted)"
    text = f"clip range {what}: low {band.low:.3g}, high {band.high:.3g}"
    return ClipEvent(kind="clip_fixed" if first else "refit", text=text, evidence=evidence)


def _tell_scale(
    memory: ClipMemory, scale: float, rules: ClipRules
) -> tuple[ClipMemory, ClipEvent | None]:
    """An event when the learning rate has halved or doubled the band since one named it."""
    change = scale / memory.told_scale
    if memory.phase == "measuring" or 1 / RESCALE_EVENT < change < RESCALE_EVENT:
        return memory, None
    band = memory.in_force(memory.learning_rate * scale, rules)
    evidence = {
        "low": band.low,
        "high": band.high,
        "learning_rate": memory.learning_rate,
        "learning_rate_scale": scale,
        "previous_scale": memory.told_scale,
    }
    text = f"clip range follows the learning rate: low {band.low:.3g}, high {band.high:.3g}"
    event = ClipEvent(kind="clip_rescaled", text=text, evidence=evidence)
    return replace(memory, told_scale=scale), event


def _unmeasured_event(memory: ClipMemory) -> ClipEvent:
    found = len(memory.positive), len(memory.negative)
    text = (
        f"clip range not measured after {memory.window_steps} steps: {found[0]} off-policy responses "
        f"with a positive and {found[1]} with a negative advantage, {FEWEST_RESPONSES} of each wanted; "
        "the provisional range stays. Choose prompts that are solved sometimes, or set objective.clip"
    )
    evidence = {
        "low": PROVISIONAL_CLIP.low,
        "high": PROVISIONAL_CLIP.high,
        "num_positive": found[0],
        "num_negative": found[1],
    }
    return ClipEvent(kind="clip_unmeasured", text=text, evidence=evidence)
