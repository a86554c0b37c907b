"""Log-probs of trained tokens: by hand, against plain float64, and free of leaks."""

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    Qwen3ForCausalLM,
)

from gspo.policy.logprob import batch_logp, token_logp
from gspo.policy.model import tiny_model, without_dropout
from gspo.policy.packing import Padded
from gspo.segments import Segments
from gspo.types import RolloutBatch

torch.set_num_threads(1)  # tiny tensors: threads that wait for one another cost more than they save

VOCABULARY = 19


def qwen3():
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


def soft_capped():
    """Gemma 2 with caps low enough to bend every logit."""
    config = Gemma2Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, final_logit_softcapping=0.05,
        attn_logit_softcapping=1.0, sliding_window=4, dtype=torch.float32,
    )  # fmt: skip
    torch.manual_seed(2)
    return Gemma2ForCausalLM(config).eval()


def learned_positions():
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    torch.manual_seed(3)
    return GPT2LMHeadModel(config).eval()


MODELS = [qwen3, soft_capped, learned_positions]


def batch_of(lengths, *, prompt=3, temperature=1.0, seed=0, skip=0):
    """Random sequences; every response token but the first `skip` is trained."""
    totals = torch.tensor([prompt + n for n in lengths])
    segments = Segments.from_lengths([n - skip for n in lengths])
    num, starts = int(totals.sum()), totals.cumsum(0) - totals
    is_target = torch.cat([torch.arange(prompt + n) >= prompt + skip for n in lengths])
    return RolloutBatch(
        input_ids=torch.randint(VOCABULARY, (num,), generator=torch.Generator().manual_seed(seed)),
        positions=torch.arange(num) - Segments.from_lengths(totals).spread(starts),
        sequence_lengths=totals,
        target=is_target.nonzero().squeeze(1),
        segments=segments,
        engine_logp=torch.zeros(segments.num_tokens),
        advantage=torch.zeros(len(lengths)),
        reward=torch.zeros(len(lengths)),
        group=torch.zeros(len(lengths), dtype=torch.int64),
        version=torch.zeros(len(lengths), dtype=torch.int64),
        truncated=torch.zeros(len(lengths), dtype=torch.bool),
        temperature=temperature,
    )


def test_temperature_divides_logits_by_hand():
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    at_half = token_logp(logits, torch.tensor([0]), 0.5)
    assert at_half.item() == pytest.approx(-0.14293, abs=1e-5)  # log-prob / T would be -0.81521
    at_one = token_logp(logits, torch.tensor([0]), 1.0)
    assert at_one.item() == pytest.approx(-0.40761, abs=1e-5)


def test_a_log_prob_near_zero_keeps_its_digits():
    logits = torch.tensor([[900.0, 890.0]])  # logits - logsumexp has steps of 6e-5 here
    exact = torch.tensor(-10.0, dtype=torch.float64).exp().log1p().neg()
    got = token_logp(logits, torch.tensor([0]), 1.0)[0]
    torch.testing.assert_close(got.double(), exact, rtol=1e-3, atol=0)


def test_half_precision_logits_leave_as_float32():
    logp = token_logp(torch.tensor([[2.0, 1.0, 0.0]]).bfloat16(), torch.tensor([0]), 0.5)
    assert logp.dtype == torch.float32
    assert logp.item() == pytest.approx(-0.14293, abs=1e-5)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0, 1.5])
def test_equal_to_plain_float64_log_softmax_of_full_logits(make, temperature):
    model = make()
    batch = batch_of([5, 2, 7], temperature=temperature, skip=1)
    with torch.no_grad():
        got = batch_logp(model, batch)
        wanted = []
        for row in range(3):
            one = batch.select(torch.tensor([row]))
            logits = model(input_ids=one.input_ids[None]).logits[0].double() / temperature
            all_logp = logits.log_softmax(-1)
            wanted += [all_logp[t - 1, one.input_ids[t]] for t in one.target.tolist()]
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), torch.stack(wanted), rtol=0, atol=2e-6)


@pytest.mark.parametrize("make", MODELS)
def test_alone_in_a_batch_and_beside_longer_rows_it_is_the_same(make):
    model = make()
    batch = batch_of([4, 1, 9, 30])
    with torch.no_grad():
        together = batch_logp(model, batch)
        alone = [batch_logp(model, batch.select(torch.tensor([row]))) for row in range(4)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", MODELS)
def test_padding_leaks_nowhere(make, monkeypatch):
    """Bitwise: whatever ids stand in the padding, and whatever their gradient would be."""
    model = make()
    batch = batch_of([4, 1, 9])
    before = batch_logp(model, batch)
    before.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    original = Padded.of
    monkeypatch.setattr(Padded, "of", lambda batch: original(batch, pad_id=VOCABULARY - 1))
    assert (Padded.of(batch).input_ids != original(batch).input_ids).any()
    after = batch_logp(model, batch)
    after.sum().backward()
    assert torch.equal(before, after)
    for old, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, old, rtol=0, atol=1e-6)


def test_untrained_tokens_are_still_seen():
    """A token of the environment is no target, but the tokens after it depend on it."""
    model = qwen3()
    everything, only_last = batch_of([6]), batch_of([6], skip=4)
    with torch.no_grad():
        full, last = batch_logp(model, everything), batch_logp(model, only_last)
        changed = everything.input_ids.clone()
        changed[4] = (changed[4] + 1) % VOCABULARY
        other = batch_logp(model, replaced(only_last, input_ids=changed))
    torch.testing.assert_close(full[4:], last, rtol=0, atol=1e-6)
    assert (other - last).abs().max() > 1e-4


def test_only_rows_that_predict_reach_the_head():
    model = qwen3()
    rows_in = []
    model.lm_head.register_forward_hook(lambda _, inputs, __: rows_in.append(inputs[0].shape))
    batch_logp(model, batch_of([4, 1, 9], prompt=20))
    assert rows_in == [(14, 32)]


class OldForward(Qwen3ForCausalLM):
    """An architecture whose forward cannot select rows before the head."""

    def forward(self, input_ids, position_ids, use_cache):
        return super().forward(input_ids=input_ids, position_ids=position_ids, use_cache=use_cache)


def test_a_model_without_logits_to_keep_gives_the_same():
    model, batch = qwen3(), batch_of([4, 1, 9])
    old = OldForward(model.config).eval()
    old.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(
            batch_logp(old, batch), batch_logp(model, batch), rtol=0, atol=1e-6
        )


def with_dropout_in_attention():
    config = qwen3().config
    config.attention_dropout = 0.5
    return Qwen3ForCausalLM(config)


def with_dropout_modules():
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64,
        resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


@pytest.mark.parametrize("make", [with_dropout_in_attention, with_dropout_modules])
def test_dropout_is_off_even_in_train_mode(make):
    model, batch = make(), batch_of([4, 9])
    model.train()
    assert not torch.equal(batch_logp(model, batch), batch_logp(model, batch))
    without_dropout(model)
    assert not model.training
    model.train()
    assert torch.equal(batch_logp(model, batch), batch_logp(model, batch))


def replaced(batch, **changes):
    return type(batch)(**{name: getattr(batch, name) for name in batch.__slots__} | changes)
