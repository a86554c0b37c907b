"""What every policy promises, and what an optimizer step of HFPolicy leaves behind."""

import math
from dataclasses import replace

import pytest
import torch

from gspo.errors import NumericsError, RecipeError
from gspo.policy.base import Policy
from gspo.policy.hf import HFPolicy
from gspo.policy.model import load_model, tiny_model
from gspo.policy.optimizer import OptimizerSettings, load_optimizer, save_optimizer, steps_taken
from gspo.policy.packing import pack_rollouts
from gspo.settings import DAPO, GRPO, GSPO, ClipRange, KLPenalty
from gspo.types import Group, Prompt, Rollout, Verdict

torch.set_num_threads(1)  # tiny tensors: threads that wait for one another cost more than they save

VOCABULARY = 13


def tiny():
    return tiny_model(
        VOCABULARY,
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        intermediate=48,
        max_positions=64,
        seed=1,
    )


def hf_policy(model=None, budget=32, kl=None, **settings):
    settings = {"learning_rate": 1e-3, "weight_decay": 0.1} | settings
    return HFPolicy(
        model or tiny(), OptimizerSettings(**settings), max_tokens_per_microbatch=budget, kl=kl
    )


#: A new policy joins this list and passes everything that takes the `policy` fixture.
POLICIES = [hf_policy]


@pytest.fixture(params=POLICIES, ids=lambda make: make.__name__)
def policy(request):
    return request.param()


def batch(num_groups=3, size=4, seed=0, temperature=1.0):
    random = torch.Generator().manual_seed(seed)
    groups = []
    for g in range(num_groups):
        ids = torch.randint(VOCABULARY, (3 + g,), generator=random).tolist()
        rollouts = [
            Rollout(
                ids,
                torch.randint(VOCABULARY, (2 + (3 * i + g) % 7,), generator=random).tolist(),
                [True] * (2 + (3 * i + g) % 7),
                [None] * (2 + (3 * i + g) % 7),
                "",
                "stop",
                0,
                verdict=Verdict(float(i % 2)),
            )
            for i in range(size)
        ]
        groups.append(Group(Prompt(f"p{g}", "", ids), rollouts))
    advantages = torch.tensor([-1.0, 1.0] * (num_groups * size // 2))
    return pack_rollouts(groups, advantages, temperature=temperature).batch


def state(policy):
    """Bitwise: every parameter, every Adam slot, every learning rate."""
    optimizer = policy.optimizer
    named = {name: p.detach().clone() for name, p in policy.model.named_parameters()}
    for index, slots in enumerate(optimizer.state.values()):
        named |= {f"{slot}:{index}": tensor.clone() for slot, tensor in slots.items()}
    return named | {"lr": torch.tensor([group["lr"] for group in optimizer.param_groups])}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_it_is_a_policy(policy):
    assert isinstance(policy, Policy)


def test_score_gives_float32_log_probs_without_a_graph_and_changes_nothing(policy):
    before = state(policy)
    data = batch()
    logp = policy.score(data)
    assert logp.shape == (data.num_tokens,)
    assert logp.dtype == torch.float32
    assert not logp.requires_grad
    assert (logp < 0).all()
    assert same(before, state(policy))


def test_score_is_per_response_in_any_company(policy):
    data = batch()
    rows = torch.tensor([7, 0, 11])
    torch.testing.assert_close(
        policy.score(data)[data.tokens_of(rows)],
        policy.score(data.select(rows)),
        rtol=0,
        atol=1e-6,
    )


def test_score_and_update_agree_before_the_first_step(policy):
    """Far inside the paper's clip range: log s within 1e-6 of 0, nothing is cut."""
    data = batch(temperature=0.7)
    data = data.with_old_logp(policy.score(data))
    done = policy.update(data.select(torch.arange(8)), GSPO())
    assert done.responses.log_s.abs().max() < 1e-6
    assert int(done.responses.cut_low.sum() + done.responses.cut_high.sum()) == 0


def test_an_update_raises_what_was_good_and_lowers_what_was_bad(policy):
    data = batch()
    before = data.segments.mean(policy.score(data))
    for _ in range(5):
        assert policy.update(data, GRPO()).skipped is None
    change = data.segments.mean(policy.score(data)) - before
    assert change[data.advantage > 0].mean() > 0.05
    assert change[data.advantage < 0].mean() < -0.05


def test_four_minibatches_of_one_step_clip_from_the_second_on(policy):
    data = batch(num_groups=4)
    data = data.with_old_logp(policy.score(data))
    cuts = []
    for rows in torch.arange(16).view(4, 4):
        done = policy.update(data.select(rows), GSPO())
        cuts.append(int(done.responses.cut_low.sum() + done.responses.cut_high.sum()))
    assert cuts[0] == 0
    assert sum(cuts[1:]) > 0


def test_a_dead_minibatch_still_steps(policy):
    """Weight decay and the moments move although nothing is learned."""
    policy.update(batch(), GSPO())
    before = state(policy)
    data = replace(batch(), advantage=torch.zeros(12))
    done = policy.update(data, GSPO())
    assert done.skipped is None
    assert done.stats["grad/norm"].value() == 0
    assert not same(before, state(policy))
    assert steps_taken(policy.optimizer) == 2


def test_weights_carry_version_and_every_name(policy):
    weights = policy.weights(7)
    assert weights.version == 7
    assert weights.tensors.keys() == policy.model.state_dict().keys()
    before = policy.score(batch())
    fresh = tiny()
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.zero_()
    fresh.load_state_dict(weights.tensors)
    assert torch.equal(hf_policy(fresh).score(batch()), before)


def test_weights_that_are_not_finite_are_not_handed_out(policy):
    with torch.no_grad():
        policy.model.model.norm.weight[2] = torch.inf
    with pytest.raises(NumericsError, match=r"'model\.norm\.weight' has 1 of 32"):
        policy.weights(1)


def poison_old_logp(policy, data):
    old_logp = policy.score(data)
    old_logp[4] = math.nan
    return data.with_old_logp(old_logp), "old_logp of response 1 is nan"


def poison_advantage(policy, data):
    advantage = data.advantage.clone()
    advantage[5] = math.inf
    return replace(data, advantage=advantage), "advantage of response 5 is inf"


def poison_gradient(policy, data, bad=math.nan):
    parameter = policy.model.model.layers[1].mlp.up_proj.weight

    def hook(gradient):
        gradient = gradient.clone()
        gradient[3, 3] = bad
        return gradient

    policy.remove_hook = parameter.register_hook(hook).remove
    return data, f"gradient norm is {bad}: 1 values of model.layers.1.mlp.up_proj.weight"


def poison_gradient_with_infinity(policy, data):
    return poison_gradient(policy, data, math.inf)


@pytest.mark.parametrize(
    "poison",
    [poison_old_logp, poison_advantage, poison_gradient, poison_gradient_with_infinity],
)
@pytest.mark.parametrize("steps_before", [0, 2])
def test_a_value_that_is_not_finite_leaves_everything_bitwise_as_it_was(
    policy, poison, steps_before
):
    for _ in range(steps_before):
        policy.update(batch(), GSPO())
    before = state(policy)
    data, reason = poison(policy, batch())
    done = policy.update(data, GSPO())
    assert done.skipped.startswith(reason)
    assert done.stats["update/skipped_steps"].value() == 1
    assert same(before, state(policy))
    assert steps_taken(policy.optimizer) == steps_before


def test_after_a_skipped_step_training_goes_on_as_if_it_had_not_been():
    straight, hurt = hf_policy(), hf_policy()
    for step in range(6):
        if step == 3:
            data, _ = poison_gradient(hurt, batch(seed=99))
            assert hurt.update(data, GSPO()).skipped
            hurt.remove_hook()
        for policy in (straight, hurt):
            assert policy.update(batch(seed=step), GSPO()).skipped is None
    assert same(state(straight), state(hurt))


def test_the_learning_rate_counts_steps_taken_not_micro_batches_nor_skipped_ones():
    policy = hf_policy(
        budget=12, schedule="cosine", warmup_steps=2, total_steps=10, learning_rate=1.0e-3
    )
    data, rates = batch(), []
    for step in range(10):
        if step == 4:
            policy.update(poison_old_logp(policy, data)[0], GSPO())
        rates.append(policy.update(data, GSPO()).stats["optimizer/lr"].value())
        assert {group["lr"] for group in policy.optimizer.param_groups} == {rates[-1]}
    assert rates == [policy.settings.lr(step) for step in range(10)]
    assert rates[:3] == pytest.approx([5e-4, 1e-3, 1e-3])


def test_gradients_are_clipped_to_the_norm_and_reported_unclipped():
    loose, tight = (hf_policy(max_grad_norm=limit) for limit in (math.inf, 1e-3))
    seen = {}

    def look(optimizer, *_):
        gradients = [p.grad.flatten() for g in optimizer.param_groups for p in g["params"]]
        seen[optimizer] = torch.cat(gradients).norm().item()

    for policy in (loose, tight):
        policy.optimizer.register_step_pre_hook(look)
    norms = [policy.update(batch(), GSPO()).stats for policy in (loose, tight)]
    assert norms[0]["grad/norm"].value() == norms[1]["grad/norm"].value() > 0.01
    assert [stats["grad/clipped"].value() for stats in norms] == [0.0, 1.0]
    assert seen[tight.optimizer] == pytest.approx(1e-3, rel=1e-3)
    assert seen[loose.optimizer] == pytest.approx(norms[0]["grad/norm"].value())


@pytest.mark.parametrize("objective", [GSPO(clip=ClipRange(low=1.0, high=9.0)), GRPO(), DAPO()])
def test_any_budget_takes_the_same_steps(objective):
    """SGD-like comparison of the update itself: Adam's first step turns 1e-9 into a sign."""
    policies = [hf_policy(budget=budget, eps=1e-2) for budget in (14, 40, 1000)]
    data = batch()
    data = data.with_old_logp(policies[0].score(data) + 0.01)
    for policy in policies:
        policy.update(data, objective)
    for other in policies[1:]:
        for one, two in zip(policies[0].model.parameters(), other.model.parameters(), strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-6)


def test_resuming_is_bitwise_the_straight_run(tmp_path):
    schedule = {"schedule": "cosine", "warmup_steps": 1, "total_steps": 4}
    straight = hf_policy(**schedule)
    for step in range(4):
        if step == 2:
            straight.model.save_pretrained(tmp_path)
            save_optimizer(straight.optimizer, tmp_path)
        straight.update(batch(seed=step), GSPO())
    resumed = hf_policy(load_model(tmp_path, torch.float32), **schedule)
    load_optimizer(resumed.optimizer, tmp_path)
    for step in (2, 3):
        resumed.update(batch(seed=step), GSPO())
    assert same(state(straight), state(resumed))


def test_training_mode_and_cache_are_off(policy):
    seen = []
    policy.model.train()
    policy.model.model.register_forward_pre_hook(
        lambda module, _, kwargs: seen.append((module.training, kwargs["use_cache"])),
        with_kwargs=True,
    )
    policy.score(batch())
    policy.model.train()
    policy.update(batch(), GSPO())
    assert set(seen) == {(False, False)}


def test_refusals_at_the_start():
    frozen = tiny().requires_grad_(False)
    with pytest.raises(RecipeError, match="no trainable parameter"):
        hf_policy(frozen)
    with pytest.raises(RecipeError, match="'k1', which belongs to the reward"):
        hf_policy(kl=KLPenalty(coefficient=0.1, estimator="k1"))
    with pytest.raises(RecipeError, match=r"trainer\.max_tokens_per_microbatch"):
        hf_policy(budget=4).score(batch())


def test_frozen_parameters_stay():
    model = tiny()
    model.model.layers[0].requires_grad_(False)
    policy = hf_policy(model)
    before = state(policy)
    policy.update(batch(), GSPO())
    after = state(policy)
    changed = {name for name, tensor in before.items() if not torch.equal(tensor, after[name])}
    assert changed
    assert not any(name.startswith("model.layers.0.") for name in changed)
