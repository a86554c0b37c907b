"""What holds for every objective, whatever the batch."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from gspo.padded import objective_loss
from gspo.ratios import MAX_LOG_RATIO
from gspo.segments import Segments
from gspo.settings import GSPOToken

# The same examples on every machine: a law that fails here fails everywhere.
LAW = settings(deadline=None, max_examples=15, derandomize=True)

seeds = st.integers(0, 2**31)
lengths = st.lists(st.integers(0, 6), min_size=1, max_size=6)
spreads = st.sampled_from([1e-3, 0.05, 0.7])


@LAW
@given(seed=seeds, lengths=lengths, spread=spreads)
def test_weight_is_the_gradient_of_each_responses_loss(
    random_batch, objective, seed, lengths, spread
):
    batch = random_batch(seed, lengths, spread)
    leaves = [row.clone().requires_grad_() for row in batch.logp]
    surrogate = batch.run(objective, leaves)
    surrogate.loss.sum().backward()
    gradient = torch.cat([torch.zeros(0), *(row.grad for row in leaves)])
    assert_close(-gradient, surrogate.weight, rtol=1e-12, atol=0)
    assert torch.equal(gradient == 0, surrogate.weight == 0)


@LAW
@given(seed=seeds, lengths=lengths, spread=spreads)
def test_a_dead_response_is_one_without_any_gradient(
    random_batch, objective, seed, lengths, spread
):
    batch = random_batch(seed, lengths, spread)
    gradients = batch.gradient(objective)
    dead = objective.dead(batch.run(objective))
    assert dead.tolist() == [not row.any() for row in gradients]


@LAW
@given(seed=seeds, lengths=lengths, spread=spreads, data=st.data())
def test_any_order_and_any_cut_into_micro_batches_give_one_gradient(
    random_batch, objective, seed, lengths, spread, data
):
    batch = random_batch(seed, lengths, spread)
    order = data.draw(st.permutations(range(len(lengths))))
    ends = sorted(data.draw(st.sets(st.integers(1, len(lengths)))) | {len(lengths)})
    parts = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    for whole, cut in zip(batch.gradient(objective), batch.gradient(objective, parts), strict=True):
        assert_close(cut, whole, rtol=1e-12, atol=1e-15)


@LAW
@given(
    seed=seeds,
    lengths=lengths,
    spread=spreads,
    extra=st.integers(0, 3),
    left=st.booleans(),
    value=st.sampled_from([1e6, -1e6, math.nan, math.inf, -math.inf]),
)
def test_padding_of_any_width_side_and_value_changes_nothing(
    random_batch, padded_objective, seed, lengths, spread, extra, left, value
):
    objective = padded_objective
    batch = random_batch(seed, lengths, spread)
    width = max(lengths) + extra

    def pad(rows, filler):
        pads = [torch.full((width - len(row),), filler).to(row) for row in rows]
        pairs = [(p, row) if left else (row, p) for p, row in zip(pads, rows, strict=True)]
        return torch.stack([torch.cat(pair) for pair in pairs])

    mask = pad([torch.ones(length, dtype=torch.bool) for length in lengths], False)
    logp = pad(batch.logp, value).requires_grad_()
    per_token = isinstance(objective, GSPOToken)
    adv = pad(batch.token_advantage, value) if per_token else batch.advantage
    clip = getattr(objective, "clip", None)
    values = {} if clip is None else {"low": clip.low, "high": clip.high}
    for name in ("max_tokens", "tau_pos", "tau_neg", "dual_clip"):
        if hasattr(objective, name):
            values[name] = getattr(objective, name)

    loss, stats = objective_loss(
        objective.name, logp, pad(batch.old_logp, value), adv, mask, **values
    )
    (gradient,) = torch.autograd.grad(loss, logp)
    expected = batch.gradient(objective)
    assert (gradient[~mask] == 0).all()
    assert_close(gradient[mask], torch.cat(expected), rtol=1e-12, atol=1e-15)
    assert all(number is None or math.isfinite(number) for number in stats.values())


@LAW
@given(seed=seeds, lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4), spread=spreads)
def test_gradient_matches_finite_differences(random_batch, objective, seed, lengths, spread):
    """Away from kinks. Stop-gradient factors are frozen where the objective has them."""
    batch = random_batch(seed, lengths, spread)
    assume(not near_a_kink(objective, batch))
    step = 1e-6
    analytic = batch.gradient(objective)
    divisor = objective.divisor(batch.num_responses, batch.num_tokens)
    value = frozen_value(objective, batch)
    for row, length in enumerate(lengths):
        for token in range(length):
            nudge = [torch.zeros_like(r) for r in batch.logp]
            nudge[row][token] = step
            up = value([a + b for a, b in zip(batch.logp, nudge, strict=True)])
            down = value([a - b for a, b in zip(batch.logp, nudge, strict=True)])
            numeric = (up - down) / (2 * step * divisor)
            assert numeric == pytest.approx(float(analytic[row][token]), rel=2e-5, abs=1e-8)


def frozen_value(objective, batch):
    """Summed undivided loss as a function of logp, written out token by token."""
    if objective.name not in ("cispo", "gspo_token"):
        return lambda logp: float(batch.run(objective, logp).loss.sum())

    def value(logp):
        total = 0.0
        for i, row in enumerate(logp):
            length = len(row)
            log_r = [float(x) for x in batch.logp[i] - batch.old_logp[i]]
            low, high = (float(bound) for bound in objective.clip.band(torch.tensor(length)))
            for t in range(length):
                if objective.name == "cispo":
                    weight = math.exp(min(max(log_r[t], low), high))
                    total -= weight * float(batch.advantage[i]) * float(row[t])
                    continue
                advantage = float(batch.token_advantage[i][t])
                moved = math.exp(sum(log_r) / length + float(row[t] - batch.logp[i][t]))
                clipped = min(max(moved, math.exp(low)), math.exp(high))
                total -= min(moved * advantage, clipped * advantage) / length
        return total

    return value


def near_a_kink(objective, batch):
    clip = getattr(objective, "clip", None)
    if clip is None:
        return False
    segments = Segments.from_lengths([len(row) for row in batch.logp])
    edges = [torch.as_tensor(bound) for bound in clip.band(segments.lengths)]
    if getattr(objective, "dual_clip", None):
        edges.append(torch.tensor(math.log(objective.dual_clip)))
    log_ratio = batch.run(objective).log_ratio
    return any(bool(((log_ratio - edge).abs() < 1e-5).any()) for edge in edges)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("far", [1e4, -1e4, 100.0, -100.0, math.inf, -math.inf])
def test_an_enormous_log_ratio_gives_finite_numbers(objective, far, sign, dtype):
    old_logp = torch.tensor([-1.0, -2.0, -3.0], dtype=dtype)
    # An infinite log-prob of the policy itself is for `cispo` an infinite loss, and rightly so.
    logp = old_logp.clone() if math.isinf(far) else old_logp + far
    old_logp = old_logp - far if math.isinf(far) else old_logp
    logp.requires_grad_()
    segments = Segments.from_lengths([3])
    advantage = torch.full((3 if isinstance(objective, GSPOToken) else 1,), sign, dtype=dtype)

    out = objective(logp, old_logp, advantage, segments)
    (gradient,) = torch.autograd.grad(out.loss.sum(), logp)

    assert out.bounded.all() or objective.name == "gmpo"
    assert out.loss.isfinite().all()
    assert gradient.isfinite().all()
    assert_close(-gradient, out.weight, rtol=1e-6, atol=0)
    if objective.name != "cispo":
        assert not gradient.any()
    assert float(out.loss.detach().abs().max()) <= 10 * math.exp(MAX_LOG_RATIO) * 4


def test_an_empty_response_gives_zero_and_leaves_the_denominator(random_batch, objective):
    full = random_batch(3, [4, 2], 0.05)
    batch = random_batch(3, [4, 2, 0], 0.05)
    alone = random_batch(3, [0, 0], 0.05)
    out = batch.run(objective)
    assert out.loss[2] == 0
    assert objective.dead(out)[2]
    assert batch.num_responses == full.num_responses
    assert torch.equal(alone.run(objective).loss, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_a_fully_masked_micro_batch_stays_on_the_graph(objective, lengths):
    """Field failure 69: gathering only trained tokens must not detach the loss."""
    logp = torch.zeros(0, requires_grad=True)
    per_token = isinstance(objective, GSPOToken)
    advantage = torch.zeros(0 if per_token else len(lengths))
    out = objective(logp, torch.zeros(0), advantage, Segments.from_lengths(lengths))
    assert out.loss.requires_grad
    (gradient,) = torch.autograd.grad(out.loss.sum() / objective.divisor(0, 0), logp)
    assert gradient.shape == (0,)


def test_zero_advantage_is_never_cut_and_always_dead(random_batch, objective):
    """Field failure 93: a response of advantage 0 counts as not clipped."""
    batch = random_batch(1, [5, 5], 0.7)
    zeros = type(batch)(
        batch.logp,
        batch.old_logp,
        torch.zeros(2, dtype=torch.float64),
        [torch.zeros_like(row) for row in batch.token_advantage],
    )
    out = zeros.run(objective)
    assert not (out.cut_low | out.cut_high).any()
    assert objective.dead(out).all()
    assert not out.loss.any()


def test_statistics_are_detached_and_loss_is_not(random_batch, objective):
    batch = random_batch(1, [3, 2], 0.05)
    out = batch.run(objective, [row.clone().requires_grad_() for row in batch.logp])
    assert out.loss.requires_grad
    for name in ("log_ratio", "cut_low", "cut_high", "bounded", "weight"):
        assert not getattr(out, name).requires_grad


def test_old_log_probs_are_a_constant(objective):
    """Passing the same tensor on both sides is the on-policy gradient, not zero."""
    logp = torch.tensor([-1.0, -2.0], requires_grad=True)
    advantage = torch.ones(2 if isinstance(objective, GSPOToken) else 1)
    objective(logp, logp, advantage, Segments.from_lengths([2])).loss.sum().backward()
    expected = torch.full((2,), -0.5 if objective.denominator == "responses" else -1.0)
    assert_close(logp.grad, expected, rtol=1e-6, atol=0)
