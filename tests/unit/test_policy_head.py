"""The chunked head against plain autograd on whole logits."""

import pytest
import torch

from gspo.policy import head as head_module
from gspo.policy.head import Head

TOKENS, WIDTH, VOCABULARY = 11, 6, 23


def plain_logp(hidden, head, token, temperature):
    logits = head.scale * torch.nn.functional.linear(hidden, head.weight, head.bias)
    if head.cap is not None:
        logits = head.cap * torch.tanh(logits / head.cap)
    return (logits / temperature).log_softmax(-1).gather(1, token[:, None]).squeeze(1)


def made(dtype=torch.float64, *, bias=False, chunk=None, **kinds):
    generator = torch.Generator().manual_seed(4)

    def random(*size):
        return torch.randn(*size, generator=generator, dtype=dtype).requires_grad_()

    kept = 4 * TOKENS * VOCABULARY if chunk is None else 0
    head = Head(
        random(VOCABULARY, WIDTH), random(VOCABULARY) if bias else None, kept_bytes=kept, **kinds
    )
    token = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    return random(TOKENS, WIDTH), head, token, random(TOKENS).detach()


@pytest.mark.parametrize("chunk", [None, 1, 7, VOCABULARY])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize(
    "kinds", [{}, {"bias": True}, {"scale": 0.3}, {"cap": 1.5}, {"cap": 1.5, "scale": 2.0}]
)
def test_equal_to_whole_logits_in_value_and_gradient(monkeypatch, kinds, temperature, chunk):
    monkeypatch.setattr(head_module, "CHUNK_BYTES", 4 * TOKENS * (chunk or 1))
    hidden, head, token, upstream = made(chunk=chunk, **kinds)
    parameters = [x for x in (head.weight, head.bias) if x is not None]
    wanted = plain_logp(hidden, head, token, temperature)
    gradients = torch.autograd.grad((wanted * upstream).sum(), [hidden, *parameters])
    got = head.logp(hidden, token, temperature)
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    (got * upstream).sum().backward()
    for tensor, gradient in zip([hidden, *parameters], gradients, strict=True):
        torch.testing.assert_close(tensor.grad, gradient, rtol=1e-10, atol=1e-12)


def test_gradients_add_to_what_is_there_and_leave_frozen_parameters_alone():
    hidden, head, token, upstream = made()
    (head.logp(hidden, token, 1.0) * upstream).sum().backward()
    once = head.weight.grad.clone()
    (head.logp(hidden, token, 1.0) * upstream).sum().backward()
    torch.testing.assert_close(head.weight.grad, 2 * once)
    head.weight.requires_grad_(False)
    (head.logp(hidden, token, 1.0) * upstream).sum().backward()
    torch.testing.assert_close(head.weight.grad, 2 * once)


def test_no_chunk_is_larger_than_its_bytes(monkeypatch):
    monkeypatch.setattr(head_module, "CHUNK_BYTES", 4 * TOKENS * 7)
    _, head, _, _ = made(chunk=7)
    assert [c.stop - c.start for c in head.chunks(TOKENS)] == [6, 6, 6, 5]
    assert len(head.chunks(0)) == 1


def test_half_precision_is_the_models_own_logits_in_float32():
    """Logits in bfloat16, as the model makes them; from there on float32."""
    hidden, head, token, _ = made(torch.bfloat16, chunk=7)
    logits = torch.nn.functional.linear(hidden, head.weight).float()
    wanted = logits.log_softmax(-1).gather(1, token[:, None]).squeeze(1)
    got = head.logp(hidden, token, 1.0)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-6)
    got.sum().backward()
    assert head.weight.grad.dtype == torch.bfloat16
