"""The kit: what passes, what the article's loss falls into, and that it never raises for a loss."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
import torch

import gspo
from gspo.errors import RecipeError
from gspo.objectives import OBJECTIVES
from gspo.testing import check_objective
from gspo.testing.check import PROBES
from gspo.testing.traps import TRAPS

LOW, HIGH = 3e-4, 4e-4
RANGES = [{}, {"low": 0.3, "high": 0.1}]
NEEDED = {"dr_grpo": {"max_tokens": 16}}
MORE = {"sapo": [{"tau_pos": 2.0, "tau_neg": 0.5}], "ppo": [{"dual_clip": 3.0}]}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_our_own_losses_pass(name):
    ranges = [{}] if name == "sapo" else RANGES
    for settings in itertools.chain(ranges, MORE.get(name, [])):
        settings = NEEDED.get(name, {}) | settings  # noqa: PLW2901

        def loss(*tensors, given=settings):
            return gspo.objective_loss(name, *tensors, **given)

        report = check_objective(loss, name, **settings)
        assert report.passed, report
        assert [note.trap for note in report.notes] == ["micro_batches"]


def test_gspo_loss_passes_and_every_trap_was_judged():
    report = check_objective(gspo.gspo_loss)
    report.assert_ok()
    assert {verdict.trap for verdict in report.verdicts} == set(TRAPS)
    assert {verdict.outcome for verdict in report.verdicts} == {"passes", "note"}


def test_every_probe_has_its_words_and_its_line_on_the_page():
    assert set(PROBES) <= set(TRAPS)
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.M)
    assert rows == [(name, trap.checks) for name, trap in TRAPS.items()]


@pytest.mark.parametrize("sides", [(0.0, 0.0), (1e-6, 1e-6), (0.9, 1e6), (0.5, 0.0)])
def test_extreme_ranges_raise_no_false_alarm(sides):
    settings = {"low": sides[0], "high": sides[1]}
    for name in ("gspo", "grpo"):

        def loss(*tensors, name=name):
            return gspo.objective_loss(name, *tensors, **settings)

        assert check_objective(loss, name, **settings).traps == []


@pytest.mark.parametrize("name", ["gspo", "dapo", "dr_grpo"])
def test_a_loss_that_is_given_its_denominator_may_be_cut(name):
    """The ragged functions, with D counted over the whole step."""
    settings = NEEDED.get(name, {})
    objective = OBJECTIVES[name](**settings)

    def loss(logp, logp_old, adv, mask, num_responses, num_tokens):
        segments = gspo.Segments.from_mask(mask)
        new, old = segments.take(logp), segments.take(logp_old)
        surrogate = objective(new, old, adv, segments)
        return surrogate.loss.sum() / objective.divisor(num_responses, num_tokens)

    report = check_objective(loss, name, **settings)
    assert report.traps == []
    assert report.notes == ()


def article_loss(logp, logp_old, adv, mask, eps_low=3e-4, eps_high=4e-4):
    """The article's minimal implementation."""
    lengths = mask.sum(1).clamp(min=1)
    log_s = ((logp - logp_old) * mask).sum(1) / lengths
    log_s_tok = log_s.detach().unsqueeze(1) + logp - logp.detach()
    s = torch.exp(log_s_tok.clamp(max=10.0))
    a = adv.unsqueeze(1)
    surr = torch.minimum(s * a, torch.clamp(s, 1 - eps_low, 1 + eps_high) * a)
    per_seq = (surr * mask).sum(1) / lengths
    clipped = ((s.detach() > 1 + eps_high) & (a > 0)) | ((s.detach() < 1 - eps_low) & (a < 0))
    stats = {
        "clip_frac_seq": clipped[:, 0].float().mean().item(),
        "log_s_mean": log_s.mean().item(),
        "log_s_std": log_s.std().item(),
    }
    return -per_seq.mean(), stats


def test_what_the_articles_loss_falls_into():
    """0 x NaN in padding; the mean over all rows; (s + logp) - logp; no upcast. Its std of one row
    is NaN. That it bounds the ratio above only does no harm: e^-200 is 0."""
    report = check_objective(article_loss)
    assert report.traps == ["padding", "empty_rows", "order_of_addition", "low_precision"]
    assert [note.trap for note in report.notes] == ["single_row", "micro_batches"]
    assert "1e+06" not in report.findings[0].got
    assert "nan in logp" in report.findings[0].got
    assert "log_s_std" in report.notes[0].got


def test_the_token_mean_is_recognised_by_its_name_elsewhere():
    def loss(*tensors):
        return gspo.objective_loss("dapo", *tensors)

    report = check_objective(loss, "grpo", low=0.2, high=0.28)
    assert report.traps == ["aggregation"]
    assert "TRL's default" in (report.findings[0].recognised or "")


NAMES = list(OBJECTIVES)
PAIRS = [(wanted, given) for k, wanted in enumerate(NAMES) for given in (NAMES + NAMES)[k : k + 3]]


@pytest.mark.parametrize(("wanted", "given"), [*PAIRS, ("gspo", "grpo"), ("dapo", "ppo")])
def test_one_objective_under_the_name_of_another_is_told(wanted, given):
    """Except where two are the same, with one advantage a response and the same range."""
    settings = {} if "sapo" in (wanted, given) else {"low": 0.2, "high": 0.28}

    def loss(logp, logp_old, adv, mask):
        if adv.ndim == 2 and given != "gspo_token":
            adv = adv.sum(1) / mask.sum(1).clamp(min=1)
        mine = settings if given != "sapo" else {}
        return gspo.objective_loss(
            given, logp, logp_old, adv, mask, **NEEDED.get(given, {}), **mine
        )

    theirs = settings if wanted != "sapo" else {}
    report = check_objective(loss, wanted, **NEEDED.get(wanted, {}), **theirs)
    same = (
        wanted == given
        or {wanted, given} == {"dapo", "ppo"}
        or (wanted, given) == (("gspo", "gspo_token"))
    )
    assert report.passed == same, report
    formula = {"formula", "ratio", "clip", "advantage", "aggregation", "scale"}
    assert set(report.traps) <= formula, report


def test_a_mask_is_given_in_the_kind_that_the_loss_takes():
    """1 - mask raises for bool; indexing raises for everything else."""

    def subtracts(logp, logp_old, adv, mask):
        new, old = (values.masked_fill((1 - mask).bool(), 0) for values in (logp, logp_old))
        return gspo.gspo_loss(new, old, adv, mask)

    def indexes(logp, logp_old, adv, mask):
        assert logp[mask].numel() == mask.sum()
        return gspo.gspo_loss(logp, logp_old, adv, mask)

    for loss in (subtracts, indexes):
        assert check_objective(loss).passed


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "it returned None"),
        (1.0, "it returned 1.0"),
        (torch.zeros(3), "a tensor of shape \\(3,\\)"),
        (torch.tensor(float("nan"), requires_grad=True), "loss nan"),
    ],
)
def test_whatever_comes_back_is_a_finding(returned, said):
    report = check_objective(lambda logp, logp_old, adv, mask: returned)
    assert report.traps == ["exception"]
    assert report.findings[0].got
    with pytest.raises(AssertionError, match=said):
        report.assert_ok()
    assert {v.outcome for v in report.verdicts} == {"falls in", "not judged"}


def test_a_loss_that_raises_everywhere_but_at_first_is_still_reported():
    calls = itertools.count()

    def loss(*tensors):
        if next(calls):
            raise RuntimeError("once is enough\nand more lines")
        return gspo.gspo_loss(*tensors)

    report = check_objective(loss)
    assert report.traps == ["broadcast"]
    assert "RuntimeError: once is enough" in str(report)
    assert "more lines" not in str(report)


def test_the_loss_cannot_change_what_the_next_call_gets():
    def loss(logp, logp_old, adv, mask):
        value = gspo.gspo_loss(logp, logp_old.clone(), adv.clone(), mask)
        logp_old.zero_(), adv.zero_()
        return value

    assert check_objective(loss).passed


def test_the_report_can_be_read():
    text = str(check_objective(article_loss, low=3e-4, high=4e-4))
    assert text.startswith("against gspo(low=0.0003, high=0.0004): falls into 4 of 23 traps\n")
    assert "  falls in    empty_rows" in text
    assert "note: single_row" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("gpso", {}, "there is no objective 'gpso'; did you mean 'gspo'"),
        ("gspo", {"eps_low": 1e-3}, "gspo has no setting 'eps_low'"),
        ("gspo", {"low": -1.0}, "ClipRange.low is -1.0"),
        ("dr_grpo", {}, "dr_grpo needs the setting 'max_tokens'"),
        ("sapo", {"low": 0.1}, "sapo has no setting 'low'"),
    ],
)
def test_a_wrong_question_is_refused(name, settings, said):
    with pytest.raises(RecipeError, match=said):
        check_objective(gspo.gspo_loss, name, **settings)


def packed_rows(logp, logp_old, adv, mask):
    """Row by row, without padding; the gradient through a held ratio."""
    total, rows = torch.where(mask, logp, 0).sum() * 0, 0
    for new, old, a, trained in zip(logp, logp_old, adv, mask, strict=True):
        if not trained.any():
            continue
        log_s = (new[trained].float() - old[trained].float()).mean().clamp(-20, 20)
        past = log_s > math.log1p(HIGH) if a > 0 else log_s < math.log1p(-LOW)
        gain = log_s.exp() * a
        total, rows = total - (gain.detach() if past else gain), rows + 1
    return total / max(rows, 1)


def in_double(logp, logp_old, adv, mask):
    log_ratio = torch.where(mask, logp.double() - logp_old.double(), 0)
    log_s = log_ratio.sum(1) / mask.sum(1).clamp(min=1)
    s, a = log_s.clamp(max=10).exp(), adv.double()
    loss = torch.maximum(-s * a, -s.clamp(1 - LOW, 1 + HIGH) * a)
    return torch.where(mask.any(1), loss, 0).sum() / mask.any(1).sum().clamp(min=1)


def scattered(logp, logp_old, adv, mask):
    places = mask.nonzero(as_tuple=True)
    counts = torch.bincount(places[0], minlength=len(adv))
    sums = torch.zeros(len(adv)).index_add(0, places[0], (logp - logp_old)[places].float())
    s = (sums / counts.clamp(min=1)).clamp(-20, 20).exp()
    gain = torch.minimum(s * adv, s.clamp(1 - LOW, 1 + HIGH) * adv)
    return -torch.where(counts > 0, gain, 0).sum() / (counts > 0).sum().clamp(min=1)


@pytest.mark.parametrize("loss", [packed_rows, in_double, scattered])
def test_the_right_loss_in_another_style_passes(loss):
    assert check_objective(loss, low=LOW, high=HIGH).traps == []
