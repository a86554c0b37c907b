"""Fast against plain, family by family: log-probs, gradients, and which way was taken."""

from dataclasses import replace

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    CohereConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)

from gspo.policy import forward as forward_module
from gspo.policy.attention import masked_attention, ragged_attention
from gspo.policy.forward import TokenLogp
from gspo.policy.logprob import batch_logp
from gspo.policy.packing import pack_rollouts
from gspo.policy.ragged import Ragged
from gspo.policy.step import zero_gradients
from gspo.types import Group, Prompt, Rollout, Verdict

torch.set_num_threads(1)

SIZES = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "initializer_range": 0.2, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
OTHER = {"n_layer": 2, "n_head": 4, "vocab_size": 61, "initializer_range": 0.2}
SHARED, PADDED = "prompts once a group, no padding", "padded rows; chunked head"

FAMILIES = {
    "qwen3": (Qwen3Config(**SIZES, head_dim=16), SHARED),
    "qwen3 tied": (Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=True), SHARED),
    "qwen2, biases": (Qwen2Config(**SIZES), SHARED),
    "qwen3, a head above all": (
        Qwen3Config(**{**SIZES, "vocab_size": 9001}, head_dim=8),
        f"{SHARED}; chunked head; layers made twice",
    ),
    "llama": (LlamaConfig(**SIZES), SHARED),
    "llama, padding id": (LlamaConfig(**{**SIZES, "pad_token_id": 7}), SHARED),
    "mistral, window": (MistralConfig(**SIZES, sliding_window=5), SHARED),
    "gemma3, window": (Gemma3TextConfig(**SIZES, **WINDOW, head_dim=8), SHARED),
    "cohere, scaled logits": (CohereConfig(**SIZES, logit_scale=0.3), SHARED),
    "granite, divided logits": (GraniteConfig(**SIZES, logits_scaling=3.0), SHARED),
    "mixture of experts": (
        Qwen3MoeConfig(**SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24),
        SHARED,
    ),
    "gpt2": (GPT2Config(**OTHER, n_embd=32, n_positions=64), SHARED),
    "gemma2, soft caps": (
        Gemma2Config(**SIZES, head_dim=8, sliding_window=5, final_logit_softcapping=0.5),
        PADDED,
    ),
    "bloom, biased scores": (BloomConfig(**OTHER, hidden_size=32), PADDED),
}


def build(config):
    config.dtype = torch.float32
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


def batch_of(shapes, seed=0, temperature=0.8):
    """shapes: (prompt tokens, [response tokens, ...]) of each group."""
    generator = torch.Generator().manual_seed(seed)

    def ids(count):
        return torch.randint(61, (count,), generator=generator).tolist()

    groups = []
    for number, (prompt_tokens, lengths) in enumerate(shapes):
        prompt = ids(prompt_tokens)
        rollouts = [
            Rollout(
                prompt_ids=prompt, response_ids=ids(n), trained=[True] * n, engine_logp=[None] * n,
                text="", finish="stop", version=0, verdict=Verdict(1.0),
            )
            for n in lengths
        ]  # fmt: skip
        groups.append(Group(Prompt(id=str(number), text="", ids=prompt), rollouts))
    advantages = torch.ones(sum(len(lengths) for _, lengths in shapes))
    return pack_rollouts(groups, advantages, temperature=temperature).batch


BATCH = batch_of([(20, [9, 1, 4, 9]), (1, [3, 12]), (11, [2, 7, 7]), (6, [5])])


def value_and_gradient(model, logp_of):
    weight = torch.randn(BATCH.num_tokens, generator=torch.Generator().manual_seed(5))
    zero_gradients(model)
    logp = logp_of(BATCH)
    (logp * weight).sum().backward()
    return logp.detach(), {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("family", FAMILIES)
def test_log_probs_and_gradients_are_those_of_the_plain_forward(family):
    config, way = FAMILIES[family]
    model = build(config)
    token_logp = TokenLogp(model)
    assert token_logp.path.startswith(way)
    logp, gradients = value_and_gradient(model, token_logp)
    wanted, wanted_gradients = value_and_gradient(model, lambda batch: batch_logp(model, batch))
    torch.testing.assert_close(logp, wanted, rtol=0, atol=1e-5)
    largest = max(float(gradient.abs().max()) for gradient in wanted_gradients.values())
    for name, gradient in wanted_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=3e-6 * largest)


def test_half_precision_agrees_to_half_precision():
    model = build(Qwen3Config(**SIZES, head_dim=16)).bfloat16()
    token_logp = TokenLogp(model)
    assert token_logp.path.startswith(SHARED)
    logp, _ = value_and_gradient(model, token_logp)
    with torch.no_grad():
        wanted = batch_logp(model, BATCH)
    assert float((logp - wanted).abs().mean()) < 0.02


@pytest.mark.parametrize("family", ["qwen3", "llama", "gpt2", "gemma2, soft caps"])
def test_products_in_half_precision_leave_weights_and_gradients_in_float32(family):
    model = build(FAMILIES[family][0])
    token_logp = TokenLogp(model, torch.bfloat16)
    assert token_logp.path.startswith(FAMILIES[family][1])
    logp, gradients = value_and_gradient(model, token_logp)
    wanted, wanted_gradients = value_and_gradient(model, lambda batch: batch_logp(model, batch))
    assert logp.dtype == torch.float32
    assert 1e-5 < float((logp - wanted).abs().mean()) < 0.05
    given = torch.cat([gradient.flatten() for gradient in gradients.values()])
    exact = torch.cat([gradient.flatten() for gradient in wanted_gradients.values()])
    assert given.dtype == torch.float32
    assert float((given - exact).norm() / exact.norm()) < 0.05


def test_alone_and_in_company_a_response_has_the_same_log_probs():
    model = build(Qwen3Config(**SIZES, head_dim=16))
    token_logp = TokenLogp(model)
    with torch.no_grad():
        together = token_logp(BATCH)
        for row in range(BATCH.num_responses):
            rows = torch.tensor([row])
            alone = token_logp(BATCH.select(rows))
            torch.testing.assert_close(together[BATCH.tokens_of(rows)], alone, rtol=0, atol=1e-5)


def test_a_neighbour_changes_nothing():
    """The leak test: another response, or another group's prompt, in other words."""
    model = build(Qwen3Config(**SIZES, head_dim=16))
    token_logp = TokenLogp(model)
    starts = BATCH.sequence_lengths.cumsum(0) - BATCH.sequence_lengths
    changed = BATCH.input_ids.clone()
    changed[starts[1] + 20 : starts[2]] = 3  # response 1, not its prompt
    changed[starts[4] : starts[6]] = 5  # all of group 1
    with torch.no_grad():
        before, after = token_logp(BATCH), token_logp(replace(BATCH, input_ids=changed))
    others = BATCH.tokens_of(torch.tensor([0, 2, 3, 6, 7, 8, 9]))
    assert torch.equal(before[others], after[others])
    assert not torch.equal(before, after)


@pytest.mark.parametrize("heads", [(4, 4), (4, 1)])
def test_the_kernels_and_the_mask_agree(heads):
    """Attention alone, in float64, over the layout of a real batch."""
    layout = Ragged.of(BATCH, torch.device("cpu")).layout
    generator = torch.Generator().manual_seed(1)
    sizes = [(layout.num_tokens, number, 8) for number in (heads[0], heads[1], heads[1])]
    states = [
        torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in sizes
    ]
    upstream = torch.randn(sizes[0], generator=generator, dtype=torch.float64)
    from gspo.policy.attention import _FlashAttention

    found = []
    for attention in (
        lambda q, k, v: _FlashAttention.apply(q, k, v, layout, 0.3),
        lambda q, k, v: masked_attention(q, k, v, layout, 0.3, None),
    ):
        out = attention(*states)
        found.append((out, *torch.autograd.grad((out * upstream).sum(), states)))
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-10)


def test_attention_is_the_models_own_again_afterwards():
    model = build(LlamaConfig(**SIZES))
    before = model.config._attn_implementation
    layout = Ragged.of(BATCH, torch.device("cpu")).layout
    with ragged_attention(model, layout):
        assert model.model.layers[0].self_attn.config._attn_implementation != before
    assert model.config._attn_implementation == before
    assert not model.get_input_embeddings()._forward_hooks


def test_a_claim_that_does_not_hold_is_not_believed(monkeypatch):
    """A head said to be unscaled where the model scales: the plain way, and why."""
    model = build(CohereConfig(**SIZES, logit_scale=0.3))
    claim = replace(forward_module.Head.of(model), scale=1.0)
    monkeypatch.setattr(forward_module.Head, "of", lambda model: claim)
    path = TokenLogp(model).path
    assert path.startswith("padded rows; whole logits")
    assert path.count("log-probs differ by") == 2


def test_kept_tokens_set_the_size_of_a_forward():
    model = build(Qwen3Config(**SIZES, head_dim=16))
    many = batch_of([(20, [9] * 8)] * 60)  # 60 x 91 tokens
    token_logp = TokenLogp(model)
    sizes = [
        Ragged.of(many.select(rows), torch.device("cpu")).layout.num_tokens
        for rows in token_logp.microbatches(many, 100_000)
    ]
    assert max(sizes) <= forward_module.MOST_TOKENS < sum(sizes)
