"""The kit's own formulas: against vectors that neither they nor the library made, and by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from gspo.objectives import OBJECTIVES
from gspo.settings import GMPO, ClipRange
from gspo.testing import reference
from gspo.testing.batches import ordinary
from gspo.testing.reference import Case
from gspo.testing.wanted import FORMS, wanted_objective

CASES = json.loads((Path(__file__).parents[1] / "golden" / "objectives.json").read_text())["cases"]


def case_of(golden) -> Case:
    advantage = golden["advantage"]
    if golden["objective"] != "gspo_token":
        advantage = [[a] * n for a, n in zip(advantage, golden["lengths"], strict=True)]
    return Case(golden["logp"], golden["old_logp"], advantage, width=9)


@pytest.mark.parametrize("golden", CASES, ids=[case["objective"] for case in CASES])
def test_the_golden_vectors(golden):
    wanted, case = wanted_objective(golden["objective"], golden["settings"]), case_of(golden)
    assert reference.loss(wanted, case) == pytest.approx(golden["loss"], rel=1e-12, abs=1e-14)
    for row, right in zip(reference.gradient(wanted, case), golden["grad"], strict=True):
        assert row == pytest.approx(right, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("name", FORMS)
def test_the_gradient_is_the_slope_of_the_loss(name):
    """Central differences. In cispo and gspo_token the ratio is a constant: left out."""
    wanted = wanted_objective(name, {"max_tokens": 9} if name == "dr_grpo" else {})
    if name in ("cispo", "gspo_token"):
        return
    case = ordinary(wanted).case()
    slopes = reference.gradient(wanted, case)
    step = 1e-6
    for row in (1, 3, 5):
        values = []
        for sign in (1, -1):
            logp = [list(tokens) for tokens in case.logp]
            logp[row][0] += sign * step
            values.append(reference.loss(wanted, replace(case, logp=logp)))
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(slopes[row][0], abs=1e-8)


def test_ppo_with_a_dual_clip_by_hand():
    """Tokens at ratio 4 and 1.1, A = -1: the first stands at 3, the second is kept."""
    wanted = wanted_objective("ppo", {"dual_clip": 3.0})
    case = Case([[math.log(4.0), math.log(1.1)]], [[0.0, 0.0]], [[-1.0, -1.0]], width=2)
    assert reference.loss(wanted, case) == pytest.approx((3.0 + 1.1) / 2, rel=1e-12)
    assert reference.gradient(wanted, case)[0] == pytest.approx([0.0, 1.1 / 2], rel=1e-12)


def test_every_objective_has_a_form():
    assert set(FORMS) == set(OBJECTIVES)
    for name, (_, shape) in FORMS.items():
        assert (OBJECTIVES[name].denominator == "responses") == (shape == "mean"), name


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("sides", [(3e-4, 4e-4), (0.03, 0.0225), (0.2, 0.2)])
def test_the_ordinary_batch_has_cut_and_kept_on_both_sides_of_every_sign(name, sides):
    """Otherwise two rules that differ would give the same gradient."""
    if name in ("cispo", "sapo"):
        return
    kind = GMPO().clip if name == "gmpo" else ClipRange(low=0.2, high=0.2)
    assert kind
    settings = {"low": sides[0], "high": sides[1]}
    wanted = wanted_objective(name, settings | ({"max_tokens": 9} if name == "dr_grpo" else {}))
    case = ordinary(wanted).case()
    places = set()
    for row in range(len(case.logp)):
        units = reference.terms(wanted, case, row).unit
        for unit, advantage in zip(units, case.advantage[row], strict=True):
            side = (unit > wanted.high_edge) - (unit < wanted.low_edge)
            places.add((side, (advantage > 0) - (advantage < 0)))
    assert {(side, sign) for side in (-1, 0, 1) for sign in (-1, 1)} <= places
