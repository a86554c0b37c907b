"""The gradient of a minibatch: by hand, and the same however the minibatch is cut."""

import math
from dataclasses import replace

import pytest
import torch

from gspo.errors import RecipeError
from gspo.policy.forward import TokenLogp
from gspo.policy.logprob import batch_logp
from gspo.policy.model import tiny_model
from gspo.policy.step import accumulate, response_update, statistics
from gspo.segments import Segments
from gspo.settings import DAPO, GRPO, GSPO, ClipRange, DrGRPO, GSPOToken, KLPenalty
from gspo.types import RolloutBatch

torch.set_num_threads(1)  # tiny tensors: threads that wait for one another cost more than they save

VOCABULARY = 13
NO_ROWS = torch.zeros(0, dtype=torch.int64)
LENGTHS = [3, 9, 1, 5, 2, 7]
OBJECTIVES = [
    GSPO(clip=ClipRange(low=0.01, high=0.02)),
    GRPO(),
    DAPO(),
    DrGRPO(max_tokens=16),
]


@pytest.fixture
def model():
    return tiny_model(
        VOCABULARY,
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        intermediate=48,
        max_positions=64,
        seed=1,
    ).eval()


def batch_of(lengths, advantage, *, prompt=2, seed=0):
    """Random sequences with random prompts; a response of length 0 is only its prompt."""
    totals = torch.tensor([prompt + n for n in lengths])
    num, starts = int(totals.sum()), totals.cumsum(0) - totals
    is_target = torch.cat([torch.arange(prompt + n) >= prompt for n in lengths])
    num_responses = len(lengths)
    return RolloutBatch(
        input_ids=torch.randint(VOCABULARY, (num,), generator=torch.Generator().manual_seed(seed)),
        positions=torch.arange(num) - Segments.from_lengths(totals).spread(starts),
        sequence_lengths=totals,
        target=is_target.nonzero().squeeze(1),
        segments=Segments.from_lengths(lengths),
        engine_logp=torch.zeros(sum(lengths)),
        advantage=torch.as_tensor(advantage),
        reward=torch.zeros(num_responses),
        group=torch.zeros(num_responses, dtype=torch.int64),
        version=torch.zeros(num_responses, dtype=torch.int64),
        truncated=torch.zeros(num_responses, dtype=torch.bool),
        temperature=0.9,
    )


def moved(model, batch, spread=0.1):
    """The batch with old log-probs a little away from the model's own."""
    with torch.no_grad():
        logp = batch_logp(model, batch)
    noise = torch.randn(logp.shape, generator=torch.Generator().manual_seed(9))
    return batch.with_old_logp(logp + spread * noise)


def minibatch(model):
    advantage = [1.0, -1.0, 0.5, -0.25, 2.0, -0.5]
    return moved(model, batch_of(LENGTHS, advantage))


def gradient(model, batch, objective, max_tokens=1000, kl=None):
    done = accumulate(TokenLogp(model), batch, objective, max_tokens=max_tokens, kl=kl)
    assert done.fault is None
    return torch.cat([p.grad.flatten() for p in model.parameters()]), done


def value(objective, done, name="loss/policy"):
    return statistics(objective, done)[name].value()


@pytest.mark.parametrize("budget", [11, 12, 1000])
@pytest.mark.parametrize(("objective", "loss"), [(DAPO(), 1.0), (GRPO(), 5.0), (GSPO(), 5.0)])
def test_ten_tokens_by_hand(model, budget, objective, loss):
    """Token losses 10 and (all but) 0 in responses of 1 and 9 tokens: 10 / 10 per token, 10 / 2
    per response, however they are cut. (Averaging means of micro-batches would give 5 for both.)"""
    batch = batch_of([1, 9], [-10.0, 1e-30])
    _, done = gradient(model, batch, objective, budget)
    assert len(done.parts) == (2 if budget == 11 else 1)  # 2 + 10 tokens: the last predicts nothing
    assert value(objective, done) == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
@pytest.mark.parametrize("budget", [11, 16, 29])
def test_the_gradient_does_not_depend_on_the_cut_or_the_order(model, objective, budget):
    batch = minibatch(model)
    whole, _ = gradient(model, batch, objective)
    cut, done = gradient(model, batch, objective, budget)
    assert len(done.parts) > 1
    shuffled, _ = gradient(model, batch.select(torch.tensor([4, 2, 0, 5, 1, 3])), objective, budget)
    assert whole.abs().max() > 1e-3
    torch.testing.assert_close(cut, whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(shuffled, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_equal_to_one_padded_pass_by_plain_autograd(model, objective):
    """The objective on logits of a plain forward, response by response, divided once."""
    batch = minibatch(model)
    ours, _ = gradient(model, batch, objective, 16)
    model.zero_grad()
    logp = []
    for row in range(len(LENGTHS)):
        one = batch.select(torch.tensor([row]))
        logits = model(input_ids=one.input_ids[None]).logits[0] / batch.temperature
        logp.append(logits.log_softmax(-1)[one.target - 1, one.input_ids[one.target]])
    surrogate = objective(torch.cat(logp), batch.old_logp, batch.advantage, batch.segments)
    divisor = {"responses": 6, "tokens": 27, "constant": 6 * 16}[objective.denominator]
    (surrogate.loss.sum() / divisor).backward()
    plain = torch.cat([p.grad.flatten() for p in model.parameters()])
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-6)


def test_the_denominator_is_the_minibatch_not_the_step(model):
    batch = batch_of([2, 2, 2, 2], [-4.0, 0.0, 0.0, 0.0])
    for objective in (GSPO(), DAPO()):
        _, whole = gradient(model, batch, objective)
        _, half = gradient(model, batch.select(torch.tensor([0, 1])), objective)
        assert (value(objective, whole), value(objective, half)) == pytest.approx((1.0, 2.0))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_an_empty_response_first_in_the_middle_or_last_changes_nothing(model, empty):
    batch = batch_of([3, 4], [1.0, -1.0])
    wanted, _ = gradient(model, batch, GSPO())
    lengths = [3, 4]
    lengths.insert(empty, 0)
    with_empty = batch_of(lengths, [1.0, 1.0, 1.0])
    rows = [row for row in range(3) if row != empty]
    advantage, target_ids = torch.ones(3), with_empty.input_ids.clone()
    advantage[rows] = batch.advantage
    real = torch.ones(3, dtype=torch.bool).index_fill(0, torch.tensor(empty), False)
    target_ids[real.repeat_interleave(with_empty.sequence_lengths)] = batch.input_ids
    with_empty = replace(with_empty, input_ids=target_ids, advantage=advantage)
    got, done = gradient(model, with_empty, GSPO(), max_tokens=6)
    assert done.divisor == 2
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
@pytest.mark.parametrize(
    "batch",
    [
        batch_of([0, 0], [1.0, 1.0]),
        batch_of([3, 5], [0.0, 0.0]),
        batch_of([3], [1.0]).select(NO_ROWS),
    ],
)
def test_without_signal_gradients_are_zeros_not_none(model, objective, batch):
    got, done = gradient(model, batch, objective)
    assert torch.count_nonzero(got) == 0
    assert value(objective, done) in (0.0, None) if done.parts else not done.parts


def test_without_old_log_probs_the_ratio_is_exactly_one(model):
    batch = replace(minibatch(model), old_logp=None)
    on_policy, done = gradient(model, batch, GSPO(), 16)
    stats = statistics(GSPO(), done)
    assert (stats["ratio/max"].value(), stats["ratio/min"].value()) == (1.0, 1.0)
    assert "weight/kept_share" not in stats
    row = response_update(batch, GSPO(), done.parts)
    assert torch.equal(row.logp, row.old_logp)
    with torch.no_grad():
        scored = batch.with_old_logp(batch_logp(model, batch))
    compared, done = gradient(model, scored, GSPO(), 16)
    assert statistics(GSPO(), done)["ratio/max"].value() == pytest.approx(1.0, abs=1e-6)
    torch.testing.assert_close(on_policy, compared, rtol=0, atol=1e-6)


def test_statistics_by_hand(model):
    """Log-ratios +0.1, -0.1 and 0 a token; A = +1, -2, +1; the clip cuts the first two."""
    batch = batch_of([2, 4, 3], [1.0, -2.0, 1.0])
    with torch.no_grad():
        logp = batch_logp(model, batch)
    shift = batch.segments.spread(torch.tensor([0.1, -0.1, 0.0]))
    batch = batch.with_old_logp(logp - shift)
    kept = 1 / (math.exp(0.1) + 2 * math.exp(-0.1) + 1)
    for objective, units in (
        (GSPO(), [1, 1, 1]),
        (GRPO(clip=ClipRange(low=0.05, high=0.05)), [2, 4, 3]),
    ):
        _, done = gradient(model, batch, objective, 8)
        stats = statistics(objective, done)
        assert stats["ratio/max"].value() == pytest.approx(math.exp(0.1), rel=1e-5)
        assert stats["ratio/min"].value() == pytest.approx(math.exp(-0.1), rel=1e-5)
        assert stats["ratio/bounded"].value() == 0
        assert stats["weight/kept_share"].value() == pytest.approx(kept, rel=1e-5)
        rows = response_update(batch, objective, done.parts)
        torch.testing.assert_close(rows.log_s, torch.tensor([0.1, -0.1, 0.0]), rtol=0, atol=1e-6)
        assert rows.cut_high.tolist() == [units[0], 0, 0]
        assert rows.cut_low.tolist() == [0, units[1], 0]
        torch.testing.assert_close(rows.logp, logp, rtol=0, atol=1e-6)


def test_dapo_keeps_its_share_per_token(model):
    batch = batch_of([2, 4], [1.0, 1.0])
    with torch.no_grad():
        logp = batch_logp(model, batch)
    cut_first = batch.with_old_logp(logp - batch.segments.spread(torch.tensor([1.0, 0.0])))
    _, done = gradient(model, cut_first, DAPO())
    share = statistics(DAPO(), done)["weight/kept_share"].value()
    assert share == pytest.approx(4 / (2 * math.e + 4), rel=1e-5)


def test_a_bounded_ratio_is_counted_and_finite(model):
    batch = batch_of([2, 4], [1.0, -1.0])
    batch = batch.with_old_logp(torch.full((6,), -300.0))
    got, done = gradient(model, batch, GSPO())
    stats = statistics(GSPO(), done)
    assert stats["ratio/bounded"].value() == 2
    assert stats["ratio/max"].value() == pytest.approx(math.exp(10.0))
    assert got.isfinite().all()


def test_advantages_of_single_tokens(model):
    batch = minibatch(model)
    spread = replace(batch, advantage=batch.segments.spread(batch.advantage))
    clip = ClipRange(low=0.01, high=0.02)
    by_token, _ = gradient(model, spread, GSPOToken(clip=clip), 16)
    by_response, _ = gradient(model, batch, GSPO(clip=clip), 16)
    torch.testing.assert_close(by_token, by_response, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("estimator", "per_token"), [("k2", 0.005), ("k3", math.exp(-0.1) - 0.9)])
@pytest.mark.parametrize("objective", [GSPO(), DAPO()], ids=lambda o: o.name)
def test_kl_by_hand_under_the_objectives_own_denominator(model, estimator, per_token, objective):
    """ref_logp lies 0.1 below logp everywhere, so each token pays the same in every mean."""
    batch = moved(model, batch_of(LENGTHS, [0.0] * 6), spread=0.0)
    batch = replace(batch, ref_logp=batch.old_logp - 0.1)
    kl = KLPenalty(coefficient=2.0, estimator=estimator)
    whole, done = gradient(model, batch, objective, kl=kl)
    assert value(objective, done, "loss/kl") == pytest.approx(2 * per_token, rel=1e-3)
    assert value(objective, done) == 0
    assert torch.count_nonzero(whole) > 0
    cut, _ = gradient(model, batch, objective, 11, kl=kl)
    torch.testing.assert_close(cut, whole, rtol=0, atol=1e-6)


def test_kl_adds_its_own_gradient_to_the_policys(model):
    batch = minibatch(model)
    batch = replace(batch, ref_logp=batch.old_logp + 0.3)
    kl = KLPenalty(coefficient=0.5, estimator="k2")
    both, _ = gradient(model, batch, GRPO(), kl=kl)
    policy, _ = gradient(model, batch, GRPO())
    only_kl, _ = gradient(model, replace(batch, advantage=torch.zeros(6)), GRPO(), kl=kl)
    torch.testing.assert_close(both, policy + only_kl, rtol=0, atol=1e-6)


def test_kl_without_a_reference_is_refused(model):
    with pytest.raises(RecipeError, match="no ref_logp"):
        gradient(model, minibatch(model), GSPO(), kl=KLPenalty(coefficient=1.0))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["old_logp", "advantage", "ref_logp"])
def test_a_value_that_is_not_finite_stops_before_the_first_forward(model, name, bad):
    batch = minibatch(model)
    values = (batch.advantage if name == "advantage" else batch.old_logp).clone()
    row = 3
    where = row if name == "advantage" else sum(LENGTHS[:row]) + 2
    values[where] = bad
    batch = replace(batch, **{name: values})
    token_logp = TokenLogp(model)
    model.model.forward = None  # a forward would raise
    kl = KLPenalty(coefficient=0.1) if name == "ref_logp" else None
    done = accumulate(token_logp, batch, GSPO(), max_tokens=11, kl=kl)
    assert done.fault.startswith(f"{name} of response 3 is {bad}")
    assert name == "advantage" or done.fault.endswith("at its trained token 2")
    assert done.parts == []
    assert response_update(batch, GSPO(), done.parts).logp.isnan().all()


def test_log_probs_that_are_not_finite_name_the_response(model):
    """One token's embedding is NaN: only the response that holds it is hit, and it is named."""
    batch = replace(minibatch(model), input_ids=torch.zeros(39, dtype=torch.int64))
    batch.input_ids[8] = VOCABULARY - 1  # in the response 1, sequence 5..15, after its prompt
    with torch.no_grad():
        model.model.embed_tokens.weight[VOCABULARY - 1] = torch.nan
    done = accumulate(TokenLogp(model), batch, GSPO(), max_tokens=11, kl=None)
    assert "logp of response 1 is nan" in done.fault


def test_a_loss_that_is_not_finite_names_the_response(model):
    class Broken(GRPO):
        def __call__(self, logp, old_logp, advantage, segments):
            surrogate = super().__call__(logp, old_logp, advantage, segments)
            loss = surrogate.loss * torch.where(advantage == 2.0, math.inf, 1.0)
            return replace(surrogate, loss=loss)

    done = accumulate(TokenLogp(model), minibatch(model), Broken(), max_tokens=11, kl=None)
    assert done.fault.startswith("loss of response 4 is")
    num_run = sum(len(part.rows) for part in done.parts)
    unrun = response_update(minibatch(model), GRPO(), done.parts).loss.isnan().sum()
    assert unrun == 6 - num_run > 0


def test_one_micro_batch_at_a_time_is_on_the_graph(model):
    """Memory follows the budget, not the minibatch: a forward never sees more tokens."""
    seen, batch, token_logp = [], minibatch(model), TokenLogp(model)
    model.model.register_forward_pre_hook(
        lambda _, __, kwargs: seen.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    accumulate(token_logp, batch, GSPO(), max_tokens=12, kl=None)
    assert len(seen) == len(token_logp.microbatches(batch, 12)) > 1
    assert max(seen) <= 12


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_zero_advantages_cost_no_forward_and_change_no_gradient(model, objective):
    """The kept responses have the micro-batch to themselves; D still counts all six."""
    token_logp = TokenLogp(model)
    batch = moved(model, batch_of(LENGTHS, [1.0, 0.0, 0.5, 0.0, -2.0, 0.0]))
    kept = torch.tensor([0, 2, 4])
    alone = accumulate(token_logp, batch.select(kept), objective, max_tokens=1000, kl=None)
    wanted = [p.grad * alone.divisor for p in model.parameters()]
    seen = []
    model.model.register_forward_pre_hook(
        lambda _, __, kwargs: seen.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    done = accumulate(token_logp, batch, objective, max_tokens=1000, kl=None)
    assert done.num_skipped == 3
    assert done.divisor == objective.divisor(6, sum(LENGTHS)) > alone.divisor
    for parameter, gradient_times_divisor in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(
            parameter.grad * done.divisor, gradient_times_divisor, rtol=1e-5, atol=3e-6
        )
    own_tokens = sum(2 + LENGTHS[row] - 1 for row in kept.tolist())
    assert seen == [own_tokens]
    assert statistics(objective, done)["update/skipped_responses"].value() == 3
    left_out = response_update(batch, objective, done.parts)
    assert left_out.log_s.isnan().tolist() == [False, True] * 3


def test_with_a_kl_penalty_zero_advantages_run(model):
    batch = moved(model, batch_of(LENGTHS, [1.0, 0.0, 0.5, 0.0, -2.0, 0.0]))
    batch = replace(batch, ref_logp=batch.old_logp)
    _, done = gradient(model, batch, GSPO(), kl=KLPenalty(coefficient=0.1))
    assert done.num_skipped == 0
    assert sum(len(part.rows) for part in done.parts) == 6


def test_a_micro_batch_that_is_cut_whole_has_no_backward(model, monkeypatch):
    """Both responses far above the band with a positive advantage: gradients are zeros."""
    batch = batch_of([3, 4], [1.0, 2.0])
    with torch.no_grad():
        batch = batch.with_old_logp(batch_logp(model, batch) - 1.0)
    monkeypatch.setattr(torch.Tensor, "backward", None)  # a backward would raise
    got, done = gradient(model, batch, GSPO())
    assert torch.count_nonzero(got) == 0
    assert statistics(GSPO(), done)["update/skipped_backward"].value() == 2
    assert statistics(GSPO(), done)["loss/policy"].value() == pytest.approx(-(1 + 2) * 1.0004 / 2)
