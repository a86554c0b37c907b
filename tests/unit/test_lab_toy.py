"""The toy, against the same step by autograd and plain loops, and its laws."""

import pytest
import torch

import gspo
from gspo.lab import toy as lab
from gspo.lab.arms import arms
from gspo.lab.toy import Learner, Toy, World, sample
from gspo.objectives import OBJECTIVES
from gspo.segments import Segments
from gspo.settings import GRPO, GSPO, PPO, ClipRange, DrGRPO

NARROW = GSPO(clip=ClipRange(low=0.01, high=0.02))


def learned(toy, objective, sigma=0.0, seeds=(0,)):
    world = World(toy, seeds)
    learner = Learner(world, objective, sigma)
    for numbers in world.steps():
        learner.step(numbers)
    return learner


def test_symbols_come_from_the_cumulative_distribution():
    probability = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.05, 0.05]).view(6, 1, 1, 1)
    uniform = torch.tensor([0.0, 0.49, 0.51, 0.75, 0.96, 0.9999]).view(1, 1, 6, 1)
    assert sample(probability, uniform).flatten().tolist() == [0, 0, 1, 2, 5, 5]


def by_autograd(toy, objective, sigma):
    """One seed, one response at a time, the library's loss and plain SGD."""
    world = World(toy, [0])
    logits = world.start[:, 0].permute(1, 2, 0).clone().requires_grad_()  # [prompt, position, V]
    target = world.target[0]
    for numbers in world.steps():
        prompts = numbers.prompts[0].repeat_interleave(lab.GROUP)
        uniform = numbers.uniform[0].flatten(0, 1)
        with torch.no_grad():
            bounds = logits[prompts].softmax(-1).cumsum(-1)[..., :-1]
            tokens = (uniform[..., None] > bounds).sum(-1)
            old = logits[prompts].log_softmax(-1).gather(-1, tokens[..., None]).squeeze(-1)
            old[numbers.order[0]] += sigma * numbers.noise[0]
        rewards = (tokens == target[prompts]).double().mean(1)
        group = torch.arange(lab.PROMPTS_A_STEP).repeat_interleave(lab.GROUP)
        advantage = gspo.group_advantage(rewards, group)
        if toy.std == "biased":
            advantage *= (8 / 7) ** 0.5
        for rows in numbers.order[0].split(lab.RESPONSES_A_MINIBATCH):
            logp = logits[prompts[rows]].log_softmax(-1).gather(-1, tokens[rows][..., None])
            segments = Segments.from_lengths([toy.length] * len(rows))
            loss = objective(logp.flatten(), old[rows].flatten(), advantage[rows], segments).loss
            loss = loss.sum() / objective.divisor(len(rows), len(rows) * toy.length)
            (gradient,) = torch.autograd.grad(loss, logits)
            logits = (logits - 1000.0 * gradient).detach().requires_grad_()
    hit = logits.softmax(-1).gather(-1, target[..., None])
    return hit.double().mean().item()


@pytest.mark.parametrize(
    ("objective", "choices"),
    [
        (NARROW, {"std": "unbiased", "draw": "without"}),
        (GRPO(clip=ClipRange(low=0.2, high=0.27)), {"mix": "even"}),
        (PPO(), {"initial": 0.5}),
    ],
    ids=lambda value: getattr(value, "name", "-".join(value) if isinstance(value, dict) else ""),
)
def test_a_step_is_the_librarys_loss_under_plain_sgd(objective, choices):
    toy = Toy(length=3, steps=4, **choices)
    accuracy = learned(toy, objective, 0.1).accuracy()
    assert accuracy.item() == pytest.approx(by_autograd(toy, objective, 0.1), abs=2e-5)
    assert accuracy.item() > 0.2


def test_a_seed_does_not_depend_on_the_others():
    toy = Toy(length=4, steps=5)
    alone = learned(toy, NARROW, 0.2, [1])
    among = learned(toy, NARROW, 0.2, [0, 1, 2])
    assert among.accuracy()[1].item() == pytest.approx(alone.accuracy().item(), abs=1e-6)
    assert among.accuracy().unique().numel() == 3


def test_the_same_seed_gives_the_same_run():
    toy = Toy(length=4, steps=5)
    assert torch.equal(learned(toy, NARROW, 0.1).accuracy(), learned(toy, NARROW, 0.1).accuracy())


def test_objectives_that_are_one_here_are_one():
    """Lengths are equal, so Dr. GRPO at the length limit and PPO are the same loss."""
    toy = Toy(length=4, steps=10)
    dr_grpo, ppo = learned(toy, DrGRPO(max_tokens=4), 0.1), learned(toy, PPO(), 0.1)
    assert torch.equal(dr_grpo.accuracy(), ppo.accuracy())
    assert torch.equal(dr_grpo.cut_share(), ppo.cut_share())


def test_it_starts_at_a_sixth_and_learns():
    toy = Toy(length=8, steps=30)
    start = Learner(World(toy, [0, 1]), NARROW, 0.0)
    assert start.accuracy().tolist() == pytest.approx([1 / 6, 1 / 6])
    assert start.cut_share().tolist() == start.cut_share_all().tolist() == [0.0, 0.0]
    assert bool((learned(toy, GRPO()).accuracy() > 0.4).all())


def test_without_noise_the_first_minibatch_cuts_nothing():
    """So three quarters of the responses carry all cuts; a few responses have no advantage."""
    learner = learned(Toy(length=16, steps=10), NARROW)
    share, of_all = learner.cut_share(), learner.cut_share_all()
    assert bool((share > 0.05).all())
    assert bool((of_all <= 0.75 * share).all())
    assert bool((of_all > 0.6 * share).all())


def test_with_noise_it_cuts_there_too():
    learner = learned(Toy(length=16, steps=10), GSPO(), 0.5)
    assert bool((learner.cut_share_all() > 0.8 * learner.cut_share()).all())


def test_a_minibatch_may_hold_two_of_each_prompt():
    numbers = next(World(Toy(length=1, mix="even", steps=1), [0]).steps())
    for rows in numbers.order[0].split(lab.RESPONSES_A_MINIBATCH):
        assert (rows // lab.GROUP).bincount().tolist() == [2] * lab.PROMPTS_A_STEP


@pytest.mark.parametrize(("draw", "repeats"), [("without", False), ("with", True)])
def test_prompts_are_drawn_with_and_without_replacement(draw, repeats):
    toy = Toy(length=1, draw=draw, steps=20)
    drawn = [numbers.prompts[0].unique().numel() for numbers in World(toy, [0]).steps()]
    assert (min(drawn) < lab.PROMPTS_A_STEP) is repeats


def test_every_objective_is_in_the_lab():
    assert {arm.name for arm in arms(8)} == set(OBJECTIVES)
    labels = [arm.label for arm in arms(8)]
    assert len(set(labels)) == len(labels)
    assert "sapo" in labels
    assert "gspo 0.0003, 0.0004" in labels
