"""What every engine owes, run over each of them. A new engine is one more entry of ENGINES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from gspo.engines.base import Engine, Sampling
from gspo.engines.local import LocalEngine
from gspo.engines.scripted import END_ID, ScriptedEngine, ScriptedResponse
from gspo.errors import GspoError
from gspo.types import Group, Prompt, Rollout, Weights

VOCABULARY = 20
EOS_IDS = (1, 2)  # two, as instruct models have; a response may end on either
SAMPLING = Sampling(num_samples=3, max_tokens=6, seed=5, step=2)


@dataclass(frozen=True)
class Case:
    """An engine under test. build(max_batch) makes it with version 4.

    logits: what its weights give for a sequence, [L, V]; None where no model draws the tokens.
    """

    build: Callable[[int], Engine]
    eos_ids: tuple[int, ...]
    new_weights: Callable[[], Weights]
    logits: Callable[[Sequence[int]], torch.Tensor] | None


def tiny_model(seed: int) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        initializer_range=0.3,  # far enough from uniform for new weights to show
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config)


def spell(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def build_local(max_batch: int) -> LocalEngine:
    return LocalEngine(tiny_model(0), spell, EOS_IDS, max_batch, version=4)


def local_logits(ids: Sequence[int]) -> torch.Tensor:
    with torch.no_grad():
        return tiny_model(0).double().eval()(input_ids=torch.tensor([ids])).logits[0]


def build_scripted(max_batch: int) -> ScriptedEngine:
    def answer(prompt: Prompt, sample: int) -> ScriptedResponse | str:
        if sample == 0:
            return "ok"
        ids = [*range(sample + 2), 7]
        return ScriptedResponse(ids=ids, logp=[-0.5] * len(ids), text=prompt.id, finish="length")

    return ScriptedEngine(answer, version=4)


def other_weights() -> Weights:
    return Weights(5, dict(tiny_model(1).named_parameters()))


ENGINES = {
    "local": Case(build_local, EOS_IDS, other_weights, local_logits),
    "scripted": Case(build_scripted, (END_ID,), lambda: Weights(5, {}), None),
}


@pytest.fixture(params=ENGINES)
def case(request: pytest.FixtureRequest) -> Case:
    return ENGINES[request.param]


@pytest.fixture(params=[name for name, case in ENGINES.items() if case.logits])
def sampler(request: pytest.FixtureRequest) -> Case:
    """Only engines that draw tokens."""
    return ENGINES[request.param]


@pytest.fixture
def prompts() -> list[Prompt]:
    """Different lengths, not in order of length."""
    ids = {"b": [3, 4, 5, 6, 7], "a": [8], "d": [9, 10, 11], "c": [3, 4, 5], "e": [12, 13]}
    return [Prompt(id=name, text=name, ids=tokens) for name, tokens in ids.items()]


def run(engine: Engine, prompts: Sequence[Prompt], sampling: Sampling) -> dict[str, Group]:
    groups = list(engine.generate(prompts, sampling))
    assert len(groups) == len(prompts)
    return {group.prompt.id: group for group in groups}


def sampled_ids(groups: dict[str, Group]) -> dict[str, list[list[int]]]:
    return {name: [list(r.response_ids) for r in group.rollouts] for name, group in groups.items()}


def every_rollout(groups: dict[str, Group]) -> list[Rollout]:
    return [rollout for group in groups.values() for rollout in group.rollouts]


def test_is_an_engine(case: Case) -> None:
    assert isinstance(case.build(8), Engine)


@pytest.mark.parametrize("max_batch", [1, 2, 4, 100])
def test_one_group_per_prompt_with_all_its_samples(
    case: Case, prompts: list[Prompt], max_batch: int
) -> None:
    groups = run(case.build(max_batch), prompts, SAMPLING)
    assert groups.keys() == {prompt.id for prompt in prompts}
    for prompt in prompts:
        assert groups[prompt.id].prompt is prompt
        assert len(groups[prompt.id].rollouts) == SAMPLING.num_samples


def test_no_prompts_no_groups(case: Case) -> None:
    assert list(case.build(8).generate([], SAMPLING)) == []


def test_a_rollout_is_consistent(case: Case, prompts: list[Prompt]) -> None:
    groups = run(case.build(4), prompts, SAMPLING)
    for group in groups.values():
        for rollout in group.rollouts:
            num_tokens = len(rollout.response_ids)
            assert 1 <= num_tokens <= SAMPLING.max_tokens
            assert len(rollout.engine_logp) == len(rollout.trained) == num_tokens
            assert list(rollout.prompt_ids) == list(group.prompt.ids)
            assert all(type(token) is int for token in rollout.response_ids)
            assert all(logp is None or logp <= 0 for logp in rollout.engine_logp)
            assert rollout.verdict is None


def test_the_sampled_end_token_is_kept_and_trained(case: Case, prompts: list[Prompt]) -> None:
    """finish says what happened; no end token is inside, none is invented."""
    finished = {"stop": 0, "length": 0}
    for rollout in every_rollout(run(case.build(4), prompts, SAMPLING)):
        inside, last = rollout.response_ids[:-1], rollout.response_ids[-1]
        assert not set(inside) & set(case.eos_ids)
        assert (rollout.finish == "stop") == (last in case.eos_ids)
        assert all(rollout.trained)
        finished[rollout.finish] += 1
    assert min(finished.values()) > 0


def test_the_same_request_gives_the_same_rollouts(case: Case, prompts: list[Prompt]) -> None:
    engine = case.build(4)
    assert run(engine, prompts, SAMPLING) == run(engine, prompts, SAMPLING)


@pytest.mark.parametrize("max_batch", [1, 2, 4, 7, 100])
def test_batch_and_order_change_no_sample(
    case: Case, prompts: list[Prompt], max_batch: int
) -> None:
    usual = run(case.build(6), prompts, SAMPLING)
    other = run(case.build(max_batch), prompts[::-1], SAMPLING)
    alone = run(case.build(max_batch), prompts[2:3], SAMPLING)
    assert sampled_ids(other) == sampled_ids(usual)
    assert sampled_ids(alone)["d"] == sampled_ids(usual)["d"]
    for left, right in zip(
        every_rollout(usual), every_rollout({k: other[k] for k in usual}), strict=True
    ):
        assert left.engine_logp == pytest.approx(right.engine_logp, abs=1e-5)


def test_more_samples_leave_the_first_ones_alone(case: Case, prompts: list[Prompt]) -> None:
    few = sampled_ids(run(case.build(8), prompts, SAMPLING))
    many = sampled_ids(run(case.build(8), prompts, replace(SAMPLING, num_samples=4)))
    assert {name: samples[:3] for name, samples in many.items()} == few


@pytest.mark.parametrize("change", [{"seed": 6}, {"step": 3}, {"stream": "eval"}])
def test_seed_step_and_stream_change_the_samples(
    sampler: Case, prompts: list[Prompt], change: dict[str, object]
) -> None:
    engine = sampler.build(8)
    usual = sampled_ids(run(engine, prompts, SAMPLING))
    assert sampled_ids(run(engine, prompts, replace(SAMPLING, **change))) != usual


def test_samples_and_prompts_have_numbers_of_their_own(sampler: Case) -> None:
    """Same ids under two names: nothing but the random numbers can differ."""
    twins = [Prompt(id=name, text="", ids=[3, 4]) for name in ("left", "right")]
    groups = sampled_ids(run(sampler.build(8), twins, replace(SAMPLING, num_samples=8)))
    assert groups["left"] != groups["right"]
    assert len({tuple(ids) for ids in groups["left"]}) > 4


def test_a_repeated_prompt_gets_a_second_group_of_its_own(sampler: Case) -> None:
    prompt = Prompt(id="same", text="", ids=[3, 4])
    first, second = sampler.build(8).generate([prompt, prompt], SAMPLING)
    assert [r.response_ids for r in first.rollouts] != [r.response_ids for r in second.rollouts]


def test_new_weights_are_used_at_once(case: Case, prompts: list[Prompt]) -> None:
    """The same prompts before and after: nothing cached under the old weights may survive."""
    engine = case.build(8)
    greedy = replace(SAMPLING, temperature=0.0)
    before = run(engine, prompts, greedy)
    engine.load(case.new_weights())
    after = run(engine, prompts, greedy)
    assert {rollout.version for rollout in every_rollout(before)} == {4}
    assert {rollout.version for rollout in every_rollout(after)} == {5}
    if case.logits:
        fresh = case.build(8)
        fresh.load(case.new_weights())
        assert sampled_ids(after) != sampled_ids(before)
        assert sampled_ids(after) == sampled_ids(run(fresh, prompts, greedy))


def test_greedy_samples_are_all_the_same(sampler: Case, prompts: list[Prompt]) -> None:
    greedy = run(sampler.build(8), prompts, replace(SAMPLING, temperature=0.0))
    for samples in sampled_ids(greedy).values():
        assert all(ids == samples[0] for ids in samples)


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0, 1.5])
def test_log_probs_are_those_of_a_float64_softmax_at_the_temperature(
    sampler: Case, prompts: list[Prompt], temperature: float
) -> None:
    groups = run(sampler.build(8), prompts, replace(SAMPLING, temperature=temperature))
    for rollout in every_rollout(groups):
        logits = sampler.logits([*rollout.prompt_ids, *rollout.response_ids])
        predicting = logits[len(rollout.prompt_ids) - 1 : -1] / temperature
        exact = predicting.log_softmax(-1)[range(len(predicting)), list(rollout.response_ids)]
        assert exact.tolist() == pytest.approx(rollout.engine_logp, abs=1e-5)


def test_kept_mass_comes_with_narrowed_sampling_only(sampler: Case, prompts: list[Prompt]) -> None:
    for rollout in every_rollout(run(sampler.build(8), prompts, SAMPLING)):
        assert rollout.kept_mass is None
    for rollout in every_rollout(run(sampler.build(8), prompts, replace(SAMPLING, top_k=3))):
        assert len(rollout.kept_mass) == len(rollout.response_ids)
        assert all(0 < mass < 1 for mass in rollout.kept_mass)
        pairs = zip(rollout.engine_logp, rollout.kept_mass, strict=True)
        assert all(torch.tensor(logp).exp() <= mass for logp, mass in pairs)


def test_closed_engine_says_so(case: Case, prompts: list[Prompt]) -> None:
    engine = case.build(8)
    engine.close()
    engine.close()
    with pytest.raises(GspoError, match="closed"):
        engine.generate(prompts, SAMPLING)
    with pytest.raises(GspoError, match="closed"):
        engine.load(case.new_weights())
