"""Runs a loss through every trap and writes the report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gspo.testing import probes, reference
from gspo.testing.batches import ordinary
from gspo.testing.formula import Match, identify, own_style, trained
from gspo.testing.probes import Probe, Subject, Told
from gspo.testing.report import Finding, Report, Verdict
from gspo.testing.traps import TRAPS
from gspo.testing.trial import LossFunction, Trial
from gspo.testing.wanted import Wanted, wanted_objective
from gspo.testing.words import deviations

#: Told by the formula of the ordinary batch, in the order of TRAPS.
FORMULA = ("ratio", "own_anchor", "clip", "advantage", "aggregation", "scale")
PROBES: dict[str, Probe] = {
    "clip": probes.clip,
    "broadcast": probes.broadcast,
    "row_order": probes.row_order,
    "token_positions": probes.token_positions,
    "pad_width": probes.pad_width,
    "padding": probes.padding,
    "empty_rows": probes.empty_rows,
    "single_row": probes.single_row,
    "token_clamp": probes.token_clamp,
    "unbounded_exp": probes.unbounded_exp,
    "order_of_addition": probes.order_of_addition,
    "low_precision": probes.low_precision,
    "dead_rows": probes.dead_rows,
    "micro_batches": probes.micro_batches,
    "statistics": probes.statistics,
}
#: They only mean something where one ratio belongs to a response.
SEQUENCE_ONLY = ("token_clamp", "order_of_addition")
#: They rest on ratio and clip being the objective's.
NEED_THE_RULE = ("token_clamp", "low_precision")
#: They change a batch so that advantages normalised over it would change too.
NEED_GIVEN_ADVANTAGES = ("empty_rows", "micro_batches")
#: After one of these, what the other batches give has no meaning.
ENDS = ("exception", "no_gradient", "broadcast")


def check_objective(loss_fn: LossFunction, objective: str = "gspo", **settings: Any) -> Report:
    """Try a padded loss function on the objective's numbers and on every known trap.

    loss_fn: `(logp, logp_old, adv, mask) -> loss` or `(loss, stats)`, with the tensors of
    `gspo.objective_loss`. It gets no settings: those of its own must be those given here. The
    mask is bool, or int64 or float32 where bool raises. A loss for micro-batches may have the
    parameters num_responses and num_tokens; it gets the counts of the whole optimizer step.
    settings: as for `gspo.objective_loss`; the objective's defaults where left out.

    What the loss raises or returns is a finding, never an exception. Raises RecipeError for an
    unknown objective or setting.

    >>> import gspo
    >>> check_objective(gspo.gspo_loss).passed
    True
    >>> def token_mean(*tensors):
    ...     return gspo.objective_loss("dapo", *tensors)
    >>> check_objective(token_mean, "grpo", low=0.2, high=0.28).traps
    ['aggregation']
    """
    wanted = wanted_objective(objective, settings)
    trial, batch = Trial(loss_fn), ordinary(wanted)
    outcome = trial.first(batch)
    told: dict[str, Told | None] = {}
    unjudged: dict[str, str] = {}

    if outcome.error or not outcome.finite:
        told["exception"] = Told(
            "a finite scalar for eight ordinary responses",
            outcome.error or f"loss {outcome.loss}, or a gradient that is not finite",
        )
    elif outcome.gradient is None or not bool(outcome.gradient.any()):
        came = (
            "the loss does not depend on logp" if outcome.gradient is None else "it is 0 everywhere"
        )
        told |= {"exception": None, "no_gradient": Told("a gradient", came)}
    else:
        told |= {"exception": None, "no_gradient": None}
        subject = Subject(trial, wanted, batch, outcome, outcome.gradient)
        match = _formula(subject, told)
        _probe(replace(subject, rule_holds=_rule_holds(wanted, match)), told, unjudged)
    _leave_out(wanted, told, unjudged)
    return _report(wanted, told, unjudged)


def _formula(subject: Subject, told: dict[str, Told | None]) -> Match | None:
    """Compare with the reference; where it differs, say in what."""
    wanted, case = subject.wanted, subject.batch.case()
    found, right = trained(subject.gradient, subject.batch.mask), reference.gradient(wanted, case)
    match = identify(wanted, case, found)
    if match is None:
        told["formula"] = Told("the gradient of the reference", _worst(found, right))
        return None
    differ = deviations(wanted, match)
    told["formula"] = None if differ else _value(subject, reference.loss(wanted, case))
    told |= {trap: differ.get(trap) for trap in FORMULA}
    told |= differ
    return match


def _rule_holds(wanted: Wanted, match: Match | None) -> bool:
    if match is None or match.advantage != "given":
        return False
    return match.level == wanted.level and match.style == own_style(wanted)


def _worst(found: reference.Rows, right: reference.Rows) -> str:
    """The token whose gradient is furthest from the reference."""
    off, row, token = max(
        (abs(value - wish), row, token)
        for row, (values, wishes) in enumerate(zip(found, right, strict=True))
        for token, (value, wish) in enumerate(zip(values, wishes, strict=True))
    )
    return (
        f"none of the known forms; furthest off is token {token} of response {row}, "
        f"{found[row][token]:.5g} instead of {right[row][token]:.5g}, by {off:.2g}"
    )


def _value(subject: Subject, right: float) -> Told | None:
    """The gradient is right; is the loss's value too?"""
    loss = subject.outcome.loss
    if math.isclose(loss, right, rel_tol=1e-4, abs_tol=1e-5):
        return None
    return Told(
        f"a loss of {right:.5g}",
        f"{loss:.5g}; its gradient is right, so only the number shown is another",
        note=True,
    )


def _probe(subject: Subject, told: dict[str, Told | None], unjudged: dict[str, str]) -> None:
    for trap, probe in PROBES.items():
        if any(told.get(name) for name in ENDS):
            return
        if told.get(trap) or not _applies(trap, subject.wanted):
            continue
        if trap in NEED_THE_RULE and not subject.rule_holds:
            unjudged[trap] = "it rests on the objective's ratio and clip"
        elif trap in NEED_GIVEN_ADVANTAGES and told.get("advantage"):
            unjudged[trap] = "it rests on advantages used as given"
        else:
            told[trap] = probe(subject)
        if trap == "clip" and told.get(trap):
            subject = replace(subject, rule_holds=False)


def _leave_out(wanted: Wanted, told: dict[str, Told | None], unjudged: dict[str, str]) -> None:
    """What nothing was said about, because something else came first."""
    for trap in TRAPS:
        if trap in told or trap in unjudged or not _applies(trap, wanted):
            continue
        ended = next((name for name in ENDS if told.get(name)), None)
        unjudged[trap] = (
            f"it means nothing before {ended} is mended"
            if ended
            else "the formula is none of the known forms"
        )


def _applies(trap: str, wanted: Wanted) -> bool:
    return trap not in SEQUENCE_ONLY or wanted.level == "sequence"


def _report(wanted: Wanted, told: dict[str, Told | None], unjudged: dict[str, str]) -> Report:
    verdicts: list[Verdict] = []
    findings: list[Finding] = []
    notes: list[Finding] = []
    for name, trap in TRAPS.items():
        if name in unjudged:
            verdicts.append(Verdict(name, trap.checks, "not judged", unjudged[name]))
        if name not in told:
            continue
        found = told[name]
        if found is None:
            verdicts.append(Verdict(name, trap.checks, "passes"))
            continue
        made = Finding(name, found.expected, found.got, trap.why, trap.advice, found.recognised)
        (notes if found.note else findings).append(made)
        verdicts.append(Verdict(name, trap.checks, "note" if found.note else "falls in", found.got))
    return Report(str(wanted), tuple(verdicts), tuple(findings), tuple(notes))
