"""May engine log-probs be the old ones: by hand, at both sides of every limit."""

import math

import pytest
import torch

from gspo.diagnostics.gate import engine_gate
from gspo.segments import Segments
from gspo.settings import CISPO, DAPO, GMPO, GRPO, GSPO, SAPO, ClipRange, LengthFairClip, LogClip

LENGTHS = [2, 1, 4, 1]
SEGMENTS = Segments.from_lengths(LENGTHS)
NARROW = -math.log1p(-3e-4)  # the paper's lower side in nats, narrower than log1p(4e-4)


def gate_of(objective, gaps, missing=()):
    """gaps: one a response, the same at each of its tokens."""
    logp = torch.full((8,), -1.0, dtype=torch.float64)
    engine = logp - SEGMENTS.spread(torch.tensor(gaps, dtype=torch.float64))
    logp[list(missing)] = math.nan
    return engine_gate(objective, engine, logp, SEGMENTS)


def test_bias_by_hand():
    """Gaps 0.09, 0.11, 0.09, 0.11 of b: mean 0.1, spread 0.0115."""
    gaps = [0.09 * NARROW, 0.11 * NARROW] * 2
    inside = gate_of(GSPO(), [0.999 * gap for gap in gaps])
    assert inside.shut is None
    assert inside.bias == pytest.approx(0.0999, rel=1e-6)
    assert inside.noise == pytest.approx(0.999 * 0.02 / math.sqrt(3), rel=1e-6)
    outside = gate_of(GSPO(), [-1.001 * gap for gap in gaps])
    assert "bias of the engine gap is -0.1 of the band's narrower side, above 0.1" in outside.shut


def test_spread_by_hand():
    """Gaps +-c: mean 0, spread c sqrt(4/3)."""
    c = 0.3 * NARROW / math.sqrt(4 / 3)
    assert gate_of(GSPO(), [0.999 * c, -0.999 * c] * 2).shut is None
    assert "spread" in gate_of(GSPO(), [1.001 * c, -1.001 * c] * 2).shut


def test_the_narrower_side_decides():
    gaps = [0.3e-3, -0.3e-3] * 2
    assert gate_of(GSPO(clip=ClipRange(low=1e-3, high=1e-1)), gaps).shut is not None
    assert gate_of(GSPO(clip=ClipRange(low=1e-1, high=1e-3)), gaps).shut is not None
    assert gate_of(GSPO(clip=ClipRange(low=1e-1, high=1e-1)), gaps).shut is None


def test_a_length_fair_band_is_each_responses_own():
    """Band 0.01 / sqrt(L): a gap of a tenth of it at every length is bias 0.1 and no spread."""
    gaps = [0.0999 * 0.01 / math.sqrt(length) for length in LENGTHS]
    found = gate_of(GSPO(clip=LengthFairClip(low=0.01, high=0.02)), gaps)
    assert (found.shut, found.bias, found.noise) == (
        None,
        pytest.approx(0.0999),
        pytest.approx(0, abs=1e-9),
    )


def test_token_objectives_by_their_quantile():
    """8 tokens: the 0.99 quantile is the largest. Narrower side of 0.2 / 0.28 is log 1.2."""
    limit = 0.3 * math.log(1.2)
    assert gate_of(GRPO(), [0.0, 0.0, 0.999 * limit, 0.0]).shut is None
    found = gate_of(GRPO(), [0.0, 0.0, -1.001 * limit, 0.0])
    assert "0.99 quantile" in found.shut
    assert found.bias is None
    assert found.noise == pytest.approx(0.3003, rel=1e-6)
    assert gate_of(DAPO(), [0.0, 0.0, 0.999 * limit, 0.0]).shut is None
    assert gate_of(GMPO(clip=LogClip(low=0.4, high=0.2)), [0.0599, 0, 0, 0]).shut is None
    assert gate_of(GMPO(clip=LogClip(low=0.4, high=0.2)), [0.0601, 0, 0, 0]).shut is not None


@pytest.mark.parametrize("objective", [CISPO(), SAPO()], ids=lambda o: o.name)
def test_never_without_a_band(objective):
    assert "has no band" in gate_of(objective, [0.0] * 4).shut


def test_responses_that_did_not_run_are_no_evidence():
    large = [0.0, 1.0, 0.0, 0.0]  # response 1 is token 2
    assert gate_of(GSPO(), large).shut is not None
    assert gate_of(GSPO(), large, missing=[2]).shut is None
    assert "ran 1 responses" in gate_of(GSPO(), large, missing=[0, 1, 2, 7]).shut
    assert "ran no response" in gate_of(GRPO(), large, missing=range(8)).shut


def test_a_token_without_an_engine_log_prob_shuts_it():
    logp = torch.full((8,), -1.0)
    assert (
        "no log-prob"
        in engine_gate(GSPO(), logp.index_fill(0, torch.tensor(3), math.nan), logp, SEGMENTS).shut
    )


def test_its_numbers():
    open_gate = gate_of(GSPO(), [1e-6] * 4)
    assert {k: s.value() for k, s in open_gate.stats().items()} == {
        "gate/open": 1.0,
        "gate/bias": pytest.approx(1e-6 / NARROW),
        "gate/noise": pytest.approx(0.0, abs=1e-9),
    }
    assert {k: s.value() for k, s in gate_of(SAPO(), [0.0] * 4).stats().items()} == {
        "gate/open": 0.0
    }
