"""Every objective against reference values: 81 cases in float64, value and gradient."""

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import gspo
from gspo.objectives import OBJECTIVES

CASES = json.loads(Path(__file__).with_name("objectives.json").read_text())["cases"]
NAMED = [
    pytest.param(case, id=f"{number}-{case['objective']}") for number, case in enumerate(CASES)
]
PRECISIONS = [(torch.float64, 1e-9, 0.0), (torch.float32, 1e-5, 1e-6)]
precisions = pytest.mark.parametrize(("dtype", "rtol", "atol"), PRECISIONS, ids=["fp64", "fp32"])


def settings_of(case):
    values = dict(case["settings"])
    kind = gspo.LogClip if case["objective"] == "gmpo" else gspo.ClipRange
    if "low" in values:
        values["clip"] = kind(low=values.pop("low"), high=values.pop("high"))
    return OBJECTIVES[case["objective"]](**values)


def flat(rows, dtype):
    return torch.tensor([value for row in rows for value in row], dtype=dtype)


def pad(rows, value, dtype):
    width = max(len(row) for row in rows) + 2
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=dtype)


@precisions
@pytest.mark.parametrize("case", NAMED)
def test_ragged(case, dtype, rtol, atol):
    objective = settings_of(case)
    segments = gspo.Segments.from_lengths(case["lengths"])
    logp = flat(case["logp"], dtype).requires_grad_()
    per_token = case["objective"] == "gspo_token"
    advantage = flat(case["advantage"] if per_token else [case["advantage"]], dtype)
    num_responses = sum(length > 0 for length in case["lengths"])

    out = objective(logp, flat(case["old_logp"], dtype), advantage, segments)
    loss = out.loss.sum() / objective.divisor(num_responses, segments.num_tokens)
    (gradient,) = torch.autograd.grad(loss, logp)

    assert_close(loss, torch.tensor(case["loss"], dtype=dtype), rtol=rtol, atol=atol)
    assert_close(gradient, flat(case["grad"], dtype), rtol=rtol, atol=atol)
    if "clip_low" in case:
        shares = [float(cut.sum()) / num_responses for cut in (out.cut_low, out.cut_high)]
        assert shares == pytest.approx([case["clip_low"], case["clip_high"]], rel=1e-12)


@precisions
@pytest.mark.parametrize("case", NAMED)
def test_padded(case, dtype, rtol, atol):
    per_token = case["objective"] == "gspo_token"
    logp = pad(case["logp"], float("nan"), dtype).requires_grad_()
    advantage = (
        pad(case["advantage"], 1e6, dtype)
        if per_token
        else torch.tensor(case["advantage"], dtype=dtype)
    )
    mask = pad([[True] * length for length in case["lengths"]], False, torch.bool)

    loss, stats = gspo.objective_loss(
        case["objective"],
        logp,
        pad(case["old_logp"], 1e6, dtype),
        advantage,
        mask,
        **case["settings"],
    )
    (gradient,) = torch.autograd.grad(loss, logp)

    assert_close(loss, torch.tensor(case["loss"], dtype=dtype), rtol=rtol, atol=atol)
    assert_close(gradient, pad(case["grad"], 0.0, dtype), rtol=rtol, atol=atol)
    assert (gradient[~mask] == 0).all()
    if "clip_low" in case:
        assert stats["clip_frac_seq"] == pytest.approx(case["clip_low"] + case["clip_high"])


def test_every_objective_but_ppo_has_nine_cases():
    counts = {name: sum(case["objective"] == name for case in CASES) for name in OBJECTIVES}
    assert counts == dict.fromkeys(OBJECTIVES, 9) | {"gspo": 18, "ppo": 0}
