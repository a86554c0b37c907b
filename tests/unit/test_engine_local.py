"""The local engine's own promises: ends, limits, loading, modes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.errors import DataError, NumericsError, RecipeError, ResourceError
from gspo.types import Prompt, Rollout, Weights

CONTEXT = 8
GREEDY = Sampling(num_samples=1, max_tokens=CONTEXT, temperature=0.0)
SIZES = {
    "vocab_size": 16,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": CONTEXT,
}


def model(seed: int = 0, **changes: object) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(**{**SIZES, **changes}))


def counting_model() -> GPT2LMHeadModel:
    """Greedy, it counts: after token t comes t + 1. Its layers add nothing to the embedding, and
    its positions are a table of CONTEXT rows: reading one further is an error."""
    config = GPT2Config(
        vocab_size=16,
        n_embd=16,
        n_layer=1,
        n_head=2,
        n_positions=CONTEXT,
        initializer_range=0.0,
        tie_word_embeddings=False,
    )
    counter = GPT2LMHeadModel(config)
    with torch.no_grad():
        counter.transformer.wte.weight.copy_(torch.eye(16))
        counter.lm_head.weight.copy_(torch.eye(16).roll(1, 0))
    return counter


def spell(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def prompt(*ids: int) -> Prompt:
    return Prompt(id=spell(ids), text="", ids=ids)


def sample(engine: LocalEngine, ids: Sequence[int], sampling: Sampling = GREEDY) -> Rollout:
    (group,) = engine.generate([prompt(*ids)], sampling)
    return group.rollouts[0]


@pytest.mark.parametrize(
    ("eos_ids", "max_tokens", "response", "finish", "text"),
    [
        ([6, 5], 8, [4, 5], "stop", "4"),  # whichever of several comes first
        ([4], 8, [4], "stop", ""),  # an end token alone is a response
        ([6], 3, [4, 5, 6], "stop", "4 5"),  # the last token allowed may be the end
        ([6], 2, [4, 5], "length", "4 5"),
        ([2, 3], 2, [4, 5], "length", "4 5"),  # an end token in the prompt ends nothing
        ([], 3, [4, 5, 6], "length", "4 5 6"),
    ],
)
def test_ends(
    eos_ids: list[int], max_tokens: int, response: list[int], finish: str, text: str
) -> None:
    engine = LocalEngine(counting_model(), spell, eos_ids, max_batch=4)
    rollout = sample(engine, [2, 3], replace(GREEDY, max_tokens=max_tokens))
    assert list(rollout.response_ids) == response
    assert (rollout.finish, rollout.text) == (finish, text)
    assert rollout.trained == (True,) * len(response)
    assert len(rollout.engine_logp) == len(response)


def test_the_context_ends_a_response_too() -> None:
    """Context 8: prompts of 2, 3 and 4 tokens leave 6, 5 and 4, in one batch."""
    engine = LocalEngine(model(), spell, [], max_batch=8)
    prompts = [prompt(*range(3, 3 + length)) for length in (2, 3, 4)]
    for group in engine.generate(prompts, replace(GREEDY, max_tokens=CONTEXT)):
        (rollout,) = group.rollouts
        assert len(rollout.response_ids) == CONTEXT - len(rollout.prompt_ids)
        assert rollout.finish == "length"


def test_a_row_at_the_end_of_the_context_leaves_at_once() -> None:
    """Its position would be 8, which the table of positions has not."""
    engine = LocalEngine(counting_model(), spell, [10], max_batch=8)
    full = prompt(*range(1, CONTEXT))
    groups = engine.generate([full, *(prompt(k, k + 1) for k in range(4))], GREEDY)
    found = {group.prompt.id: group.rollouts[0] for group in groups}
    assert next(iter(found)) == full.id
    assert [len(rollout.response_ids) for rollout in found.values()] == [1, 6, 6, 6, 6]
    assert [found[f"{k} {k + 1}"].finish for k in range(4)] == ["length"] * 3 + ["stop"]


def test_a_row_that_moves_takes_its_limit_along() -> None:
    """The short prompt ends at once; the long one moves to its place, with room for 3, not 7."""
    engine = LocalEngine(counting_model(), spell, [3], max_batch=8)
    short, long = engine.generate([prompt(2), prompt(3, 4, 5, 6, 7)], GREEDY)
    assert short.rollouts[0].response_ids == (3,)
    assert long.rollouts[0].response_ids == (8, 9, 10)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "0 tokens"),
        (range(CONTEXT), "8 tokens and the model's context 8"),
        ([3, 16], "holds token 16"),
        ([-1], "holds token -1"),
    ],
)
def test_bad_prompts_are_refused_before_any_forward(ids: Sequence[int], message: str) -> None:
    untouched = model()
    untouched.register_forward_pre_hook(lambda *_: pytest.fail("a forward ran"))
    engine = LocalEngine(untouched, spell, [1], max_batch=8)
    with pytest.raises(DataError, match=message):
        engine.generate([prompt(3), prompt(*ids)], GREEDY)


def test_batch_of_none_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"engine\.max_batch is 0"):
        LocalEngine(model(), spell, [1], max_batch=0)


def test_it_says_which_path_decodes() -> None:
    assert LocalEngine(model(), spell, [1], max_batch=1).path == "lean decode for llama"
    rounded = LocalEngine(model(), spell, [1], max_batch=1, dtype="bfloat16")
    assert rounded.path == "lean decode for llama, linear maps in bfloat16"
    other = LocalEngine(counting_model(), spell, [1], max_batch=1)
    assert other.path.startswith("the model's own forward: the lean path knows llama, qwen2, qwen3")


@pytest.mark.parametrize("build", [model, counting_model])
def test_bfloat16_notices_new_weights(build) -> None:
    """Log-probs are near float32's, yet not they; the next request has the weights of now."""
    own = build()
    rounded = LocalEngine(own, spell, [], max_batch=4, dtype="bfloat16")
    before = sample(rounded, [3, 4], replace(GREEDY, max_tokens=1))
    exact = sample(LocalEngine(own, spell, [], max_batch=4), [3, 4], replace(GREEDY, max_tokens=1))
    if before.response_ids == exact.response_ids:
        assert before.engine_logp == pytest.approx(exact.engine_logp, abs=0.02)
    with torch.no_grad():
        own.lm_head.weight.copy_(own.lm_head.weight.roll(1, 0))
    after = sample(rounded, [3, 4], replace(GREEDY, max_tokens=1))
    assert after.response_ids[0] == (before.response_ids[0] + 1) % 16
    assert own.lm_head.weight.dtype == torch.float32


def test_shared_weights_are_not_copied() -> None:
    """What a trainer's step does: values change in place, then the version is stamped."""
    trained = model()
    engine = LocalEngine(trained, spell, [], max_batch=4)
    before = sample(engine, [3, 4])
    with torch.no_grad():
        trained.lm_head.weight.copy_(trained.lm_head.weight.roll(1, 0))
    counts = {name: p._version for name, p in trained.named_parameters()}
    engine.load(Weights(9, {name: p.detach() for name, p in trained.named_parameters()}))
    after = sample(engine, [3, 4])
    assert {name: p._version for name, p in trained.named_parameters()} == counts
    assert (before.version, after.version) == (0, 9)
    assert after.response_ids[0] == (before.response_ids[0] + 1) % 16


def test_foreign_weights_are_copied_in() -> None:
    own, other = model(0), model(1)
    LocalEngine(own, spell, [], max_batch=4).load(Weights(1, other.state_dict()))
    for name, parameter in own.named_parameters():
        assert torch.equal(parameter, other.state_dict()[name])
        assert parameter.data_ptr() != other.state_dict()[name].data_ptr()


def test_tied_weights_come_under_either_name() -> None:
    own, other = (model(seed, tie_word_embeddings=True) for seed in (0, 1))
    named = dict(other.named_parameters())
    assert "lm_head.weight" not in named
    named["lm_head.weight"] = named.pop("model.embed_tokens.weight")
    LocalEngine(own, spell, [], max_batch=4).load(Weights(1, named))
    assert torch.equal(own.model.embed_tokens.weight, other.model.embed_tokens.weight)


def without_head(tensors: dict[str, torch.Tensor]) -> None:
    del tensors["lm_head.weight"]


def with_stranger(tensors: dict[str, torch.Tensor]) -> None:
    tensors["lm_head.weigth"] = torch.zeros(1)


def with_other_shape(tensors: dict[str, torch.Tensor]) -> None:
    tensors["lm_head.weight"] = torch.zeros(17, 16)


def with_nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors["lm_head.weight"][3, 3] = float("nan")


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (without_head, DataError, "lack 1 of the model's parameters, 'lm_head.weight'"),
        (with_stranger, DataError, "did you mean 'lm_head.weight'"),
        (with_other_shape, DataError, r"shape \(17, 16\).*\(16, 16\)"),
        (with_nan, NumericsError, "version 3 hold NaN or inf in 'lm_head.weight'"),
    ],
)
def test_weights_are_loaded_whole_or_not_at_all(spoil, error, message) -> None:
    """The broken tensor is the last of the model: those before it must not be in either."""
    own = model(0)
    kept = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    engine = LocalEngine(own, spell, [], max_batch=4, version=2)
    tensors = model(1).state_dict()
    assert list(tensors)[-1] == "lm_head.weight"
    spoil(tensors)
    with pytest.raises(error, match=message):
        engine.load(Weights(3, tensors))
    for name, tensor in own.state_dict().items():
        assert torch.equal(tensor, kept[name])
    assert sample(engine, [3]).version == 2


def test_weights_too_large_for_the_engines_dtype() -> None:
    engine = LocalEngine(model().half(), spell, [], max_batch=4)
    tensors = {name: tensor.clone() for name, tensor in model().state_dict().items()}
    tensors["lm_head.weight"][0, 0] = 1e6
    with pytest.raises(NumericsError, match="lm_head"):
        engine.load(Weights(1, tensors))


def test_version_is_that_of_the_weights_which_sampled() -> None:
    """Weights that arrive between two batches of a request mark only what follows."""
    own = model()
    engine = LocalEngine(own, spell, [], max_batch=1, version=1)
    groups = engine.generate([prompt(3), prompt(4)], GREEDY)
    first = next(groups)
    engine.load(Weights(2, dict(own.named_parameters())))
    assert [first.rollouts[0].version, next(groups).rollouts[0].version] == [1, 2]


def test_weights_that_arrive_in_a_request_begin_its_live_responses_again() -> None:
    """Two rows at a time; the short response is done after one token, the other under way."""
    own, other = model(0), model(1)
    engine = LocalEngine(own, spell, [], max_batch=2, version=1)
    full, short, last = prompt(*range(3, 3 + CONTEXT - 1)), prompt(4, 5), prompt(6)
    groups = engine.generate([full, short, last], GREEDY)
    first = next(groups)
    engine.load(Weights(2, other.state_dict()))
    later = {group.prompt.id: group.rollouts[0] for group in groups}
    assert (first.prompt.id, first.rollouts[0].version) == (full.id, 1)
    fresh = LocalEngine(model(1), spell, [], max_batch=2, version=2)
    for wanted in (short, last):
        assert later[wanted.id] == sample(fresh, wanted.ids)


def test_modes_are_put_back_as_they_were() -> None:
    own = model(attention_dropout=0.5)
    own.train()
    own.lm_head.eval()
    engine = LocalEngine(own, spell, [], max_batch=1)
    warm = replace(GREEDY, temperature=1.0)
    groups = engine.generate([prompt(3), prompt(4)], warm)
    while_training = [next(groups).rollouts[0]]
    assert not torch.is_inference_mode_enabled()
    assert own.training
    assert own.model.training
    assert not own.lm_head.training
    while_training.extend(group.rollouts[0] for group in groups)
    own.eval()
    evaluated = [g.rollouts[0] for g in engine.generate([prompt(3), prompt(4)], warm)]
    assert while_training == evaluated
    assert not own.training


def test_weights_that_are_not_finite_stop_sampling() -> None:
    own = model()
    nn.init.constant_(own.lm_head.weight, float("nan"))
    with pytest.raises(NumericsError, match="1 of 1 rows"):
        sample(LocalEngine(own, spell, [], max_batch=4), [3])


def test_memory_that_ends_names_the_setting() -> None:
    """A context of 10^13 tokens: the allocator refuses before a byte is written."""
    boundless = model(max_position_embeddings=10**13)
    engine = LocalEngine(boundless, spell, [], max_batch=6)
    with pytest.raises(ResourceError, match=r"engine\.max_batch 6.*half of it is 3"):
        sample(engine, [3], replace(GREEDY, max_tokens=10**13))


def test_other_runtime_errors_stay_what_they_are() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("shapes do not match")

    own = model()
    own.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        sample(LocalEngine(own, spell, [], max_batch=6), [3])
