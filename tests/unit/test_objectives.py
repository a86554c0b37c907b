"""Objectives by hand: published faults of other implementations, and the right value for each."""

import inspect
import math

import pytest
import torch
from torch.testing import assert_close

import gspo
from gspo.errors import GspoError, NumericsError
from gspo.objectives import OBJECTIVES, cispo, dapo, dr_grpo, gmpo, grpo, gspo_token, ppo, sapo
from gspo.objectives import gspo as gspo_objective
from gspo.segments import Segments
from gspo.settings import PPO, ClipRange, DrGRPO, LogClip

PAPER = ClipRange(low=3e-4, high=4e-4)
WIDE = ClipRange(low=0.2, high=0.2)


def run(function, log_ratios, advantage, lengths=None, **settings):
    """Surrogate and gradient for float64 log-ratios against old log-probs of -1."""
    log_ratios = torch.tensor(log_ratios, dtype=torch.float64)
    old_logp = torch.full_like(log_ratios, -1.0)
    logp = (old_logp + log_ratios).requires_grad_()
    segments = Segments.from_lengths(lengths or [len(log_ratios)])
    advantage = torch.tensor(advantage, dtype=torch.float64)
    out = function(logp, old_logp, advantage, segments, **settings)
    (gradient,) = torch.autograd.grad(out.loss.sum(), logp)
    return out, gradient


def test_a_response_weighs_one_over_the_batch_whatever_its_length():
    """Field failure 1, traps 6 and 7: pooling tokens would give +1/3."""
    out, gradient = run(gspo_objective, [0.0] * 6, [1.0, -1.0], [2, 4], clip=PAPER)
    assert out.loss.tolist() == [-1.0, 1.0]
    assert out.loss.mean().item() == 0.0
    assert_close(gradient, torch.tensor([-0.5, -0.5, *[0.25] * 4], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_ratio_of_e_to_the_100_is_finite_for_both_signs(advantage, dtype):
    """Field failure 2, trap 3: neither an infinite loss nor 0 * inf in the branch not taken."""
    logp = torch.zeros(3, dtype=dtype, requires_grad=True)
    old_logp = torch.full((3,), -100.0, dtype=dtype)
    segments = Segments.from_lengths([3])
    out = gspo_objective(
        logp, old_logp, torch.tensor([advantage], dtype=dtype), segments, clip=PAPER
    )
    (gradient,) = torch.autograd.grad(out.loss.sum(), logp)
    expected = -1.0004 if advantage > 0 else math.exp(10.0)
    assert_close(out.loss, torch.tensor([expected], dtype=dtype), rtol=1e-6, atol=0)
    assert gradient.tolist() == [0.0, 0.0, 0.0]
    assert out.bounded.tolist() == [True]
    assert out.log_ratio.tolist() == [100.0]  # trap 30: as measured, not as held


def test_the_clip_is_the_responses_and_the_length_is_the_tokens():
    """Field failure 3."""
    out, gradient = run(gspo_objective, [3.0, -3.0, 0.6], [1.0], clip=WIDE)
    assert math.exp(out.log_ratio.item()) == pytest.approx(1.2214, abs=1e-4)
    assert out.loss.item() == pytest.approx(-1.2, rel=1e-12)  # a token clip gives -0.81660
    assert out.cut_high.tolist() == [True]
    assert not gradient.any()
    out, _ = run(grpo, [3.0, -3.0, 0.6], [1.0], clip=WIDE)
    assert out.loss.item() == pytest.approx(-0.81660, abs=1e-5)

    out, _ = run(gspo_objective, [0.001] * 1000, [1.0], clip=WIDE)
    assert -out.loss.item() == pytest.approx(math.exp(0.001), rel=1e-12)

    out, _ = run(gspo_objective, [2.0, -2.0], [1.0], clip=WIDE)
    assert out.loss.item() == -1.0
    assert not out.cut_high.any()


def test_order_of_addition_keeps_log_s_in_gspo_token():
    """Trap 4: beside a log-prob of -4096, (log s + logp) - logp rounds 3.5e-4 to 2.4e-4."""
    logp, old_logp = torch.tensor([-4096.0, 0.0]), torch.tensor([-4096.0, -7e-4])
    assert (3.5e-4 + logp[0]) - logp[0] == 2.0**-12
    out = gspo_token(logp, old_logp, torch.ones(2), Segments.from_lengths([2]), clip=PAPER)
    assert -out.loss.item() == pytest.approx(math.exp(3.5e-4), rel=1e-7)


def test_clip_statistics_know_the_sign_of_the_advantage():
    """Field failure 93: ratios 1.5, 1.5, 0.5, 0.5 with A = +1, -1, +1, -1 at eps 0.2."""
    ratios = [math.log(1.5), math.log(1.5), math.log(0.5), math.log(0.5)]
    for function in (gspo_objective, grpo):
        out, gradient = run(function, ratios, [1.0, -1.0, 1.0, -1.0], [1, 1, 1, 1], clip=WIDE)
        assert out.cut_high.tolist() == [True, False, False, False]
        assert out.cut_low.tolist() == [False, False, False, True]
        assert (gradient == 0).tolist() == [True, False, False, True]


def test_loss_zero_with_a_gradient_is_training():
    """Field failure 99: group [1, 0, 0, 1] at ratio 1 against [0, 0, 0, 0]."""
    for rewards, learns in (([1, 0, 0, 1], True), ([0, 0, 0, 0], False)):
        advantage = gspo.group_advantage(rewards, ["p"] * 4).tolist()
        out, gradient = run(gspo_objective, [0.0] * 8, advantage, [2] * 4, clip=PAPER)
        assert out.loss.sum().item() == pytest.approx(0.0, abs=1e-12)
        assert bool(gradient.any()) == learns


@pytest.mark.parametrize("parts", [[[0, 1]], [[0], [1]], [[1], [0]]])
def test_a_token_mean_does_not_depend_on_the_micro_batches(parts):
    """Field failure 71, traps 8 and 9: token losses 10 (1 token) and 0 (9 tokens) give 1.0."""
    objective = OBJECTIVES["dapo"]()
    lengths, advantage = [1, 9], [-10.0, 0.0]
    divisor = objective.divisor(2, 10)
    total = 0.0
    for rows in parts:
        segments = Segments.from_lengths([lengths[row] for row in rows])
        logp = torch.zeros(segments.num_tokens)
        out = objective(logp, logp, torch.tensor([advantage[row] for row in rows]), segments)
        total += float(out.loss.sum()) / divisor
    assert total == 1.0


def test_dropped_responses_leave_the_denominator():
    """Field failure 12, trap 11: one of two responses masked gives -1, not -0.5."""
    for name in ("gspo", "grpo", "dapo"):
        objective = OBJECTIVES[name]()
        for lengths, expected in (([4, 0], -1.0), ([0, 0], 0.0)):
            logp = torch.zeros(sum(lengths), requires_grad=True)
            segments = Segments.from_lengths(lengths)
            out = objective(logp, logp.detach(), torch.ones(2), segments)
            divisor = objective.divisor(sum(length > 0 for length in lengths), sum(lengths))
            loss = out.loss.sum() / divisor
            loss.backward()
            assert float(loss.detach()) == expected


def test_packed_neighbours_do_not_share_a_ratio():
    """Trap 14: two responses side by side are two ratios, each as if it were alone."""
    together, _ = run(gspo_objective, [0.1, 0.3, -0.5], [1.0, 1.0], [2, 1], clip=WIDE)
    first, _ = run(gspo_objective, [0.1, 0.3], [1.0], clip=WIDE)
    second, _ = run(gspo_objective, [-0.5], [1.0], clip=WIDE)
    assert torch.equal(together.loss, torch.cat([first.loss, second.loss]))


def test_environment_tokens_count_neither_in_the_sum_nor_in_the_length():
    """Trap 29: a response with two tool tokens taken out has the ratio of the other two."""
    mask = torch.tensor([[True, False, False, True]])
    segments = Segments.from_mask(mask)
    logp = torch.tensor([[-1.0, -9.0, -9.0, -1.0]])
    old_logp = torch.tensor([[-1.2, -1.0, -1.0, -1.4]])
    out = gspo_objective(
        segments.take(logp), segments.take(old_logp), torch.ones(1), segments, clip=WIDE
    )
    assert float(out.log_ratio) == pytest.approx(0.3, rel=1e-6)


def test_advantages_belong_to_responses_except_in_gspo_token():
    """Traps 13 and 33: no broadcasting, no silent averaging."""
    logp, segments = torch.zeros(3), Segments.from_lengths([2, 1])
    with pytest.raises(
        GspoError, match=r"shape \(3,\); wanted \(2,\), one per response.*gspo_token"
    ):
        gspo_objective(logp, logp, torch.zeros(3), segments, clip=PAPER)
    with pytest.raises(GspoError, match=r"shape \(2,\); wanted \(3,\), one per token.*spread"):
        inspect.unwrap(gspo_token)(logp, logp, torch.zeros(2), segments, clip=PAPER)
    with pytest.raises(GspoError, match=r"logp has shape \(4,\), but segments hold 3 tokens of 2"):
        grpo(torch.zeros(4), torch.zeros(4), torch.zeros(2), segments, clip=WIDE)


def test_every_objective_answers_the_same_call_and_refuses_bfloat16():
    """Trap 32: an argument added to one loss must not break the others."""
    segments = Segments.from_lengths([2, 1])
    for name, cls in OBJECTIVES.items():
        objective = cls(max_tokens=4) if cls is DrGRPO else cls()
        advantage = torch.ones(3 if name == "gspo_token" else 2)
        assert objective.dead(
            objective(torch.zeros(3), torch.zeros(3), advantage, segments)
        ).shape == (2,)
        coarse = torch.zeros(3, dtype=torch.bfloat16)
        with pytest.raises(NumericsError, match="bfloat16"):
            objective(coarse, coarse, advantage, segments)


def test_denominators_by_hand():
    log_ratios = [math.log(1.1), math.log(0.9), 0.0]
    mean, _ = run(grpo, log_ratios, [1.0, 2.0], [2, 1], clip=WIDE)
    total, _ = run(dapo, log_ratios, [1.0, 2.0], [2, 1], clip=WIDE)
    assert_close(mean.loss, torch.tensor([-1.0, -2.0], dtype=torch.float64))
    assert_close(total.loss, torch.tensor([-2.0, -2.0], dtype=torch.float64))
    constant, _ = run(dr_grpo, log_ratios, [1.0, 2.0], [2, 1], clip=WIDE)
    assert torch.equal(constant.loss, total.loss)


def test_dual_clip_caps_the_loss_of_a_bad_token():
    """Trap 31: defined for ppo alone; ratio 4 with A = -1 costs 3 and no longer pushes."""
    ratios, advantage = [math.log(4.0), math.log(2.0)], [-1.0]
    open_, _ = run(ppo, ratios, advantage, clip=WIDE)
    capped, gradient = run(ppo, ratios, advantage, clip=WIDE, dual_clip=3.0)
    assert_close(open_.loss, torch.tensor([6.0], dtype=torch.float64))
    assert_close(capped.loss, torch.tensor([5.0], dtype=torch.float64))
    assert capped.cut_high.tolist() == [True, False]
    assert_close(gradient, torch.tensor([0.0, 2.0], dtype=torch.float64))
    assert_close(
        run(ppo, ratios, [1.0], clip=WIDE, dual_clip=3.0)[0].loss,
        run(ppo, ratios, [1.0], clip=WIDE)[0].loss,
    )
    assert PPO(dual_clip=3.0).dual_clip == 3.0


def test_gmpo_by_hand():
    """Log-ratios [1, -1, 0.2] at +-0.4: a positive advantage clips the first token only."""
    clip = LogClip(low=0.4, high=0.4)
    out, gradient = run(gmpo, [1.0, -1.0, 0.2], [2.0], clip=clip)
    ratio = math.exp((0.4 - 1.0 + 0.2) / 3)
    assert_close(out.loss, torch.tensor([-2 * ratio], dtype=torch.float64))
    assert out.cut_high.tolist() == [True, False, False]
    share = -2 * ratio / 3
    assert_close(gradient, torch.tensor([0.0, share, share], dtype=torch.float64))
    out, _ = run(gmpo, [1.0, -1.0, 0.2], [-2.0], clip=clip)
    assert out.cut_low.tolist() == [False, True, False]


def test_gmpo_holds_the_mean_for_all_tokens_of_the_response():
    out, gradient = run(gmpo, [-100.0, -1.0], [1.0], clip=LogClip(low=0.4, high=0.4))
    assert out.bounded.tolist() == [True, True]
    assert_close(-out.loss, torch.tensor([math.exp(-10)], dtype=torch.float64))
    assert not gradient.any()


def test_cispo_clips_weights_and_cuts_nothing():
    out, gradient = run(
        cispo, [math.log(2.0), math.log(0.5), 0.0], [1.0], clip=ClipRange(low=0.2, high=0.28)
    )
    assert_close(-gradient, torch.tensor([1.28, 0.8, 1.0], dtype=torch.float64))
    assert not (out.cut_low | out.cut_high).any()


def test_sapo_is_the_ratio_at_one_and_fades_away_from_it():
    out, gradient = run(sapo, [0.0, 2.0, -2.0], [1.0], tau_pos=1.0, tau_neg=1.05)
    gate = [1 / (1 + math.exp(-(math.exp(x) - 1))) for x in (0.0, 2.0, -2.0)]
    weights = [
        4 * g * (1 - g) * math.exp(x) / 3 for g, x in zip(gate, (0.0, 2.0, -2.0), strict=True)
    ]
    assert_close(-gradient, torch.tensor(weights, dtype=torch.float64))
    assert -gradient[0] == 1 / 3
    assert not (out.cut_low | out.cut_high).any()
    out, _ = run(sapo, [2.0], [-1.0], tau_pos=1.0, tau_neg=1.05)
    x = 1.05 * (math.exp(2.0) - 1)
    assert out.loss.item() == pytest.approx(4 / 1.05 / (1 + math.exp(-x)), rel=1e-12)
