"""Log-probs from hidden states, without ever holding logits of all tokens and the whole vocabulary.

The vocabulary is cut into chunks of at most CHUNK_BYTES of float32 logits. The forward runs over
them once and keeps two numbers a token: the logit of its token and the log-normaliser. The
backward makes each chunk's logits again, turns them into d logp / d logit and adds the products
straight into the head's `.grad`: memory does not grow with tokens times vocabulary, and no second
[V, D] gradient exists. Where all logits take less than half of what the weights take, they are kept
and nothing is made twice: three products of hidden states and head instead of four.

Gradients of the head's own parameters therefore appear in `.grad` only: use `backward()`, not
`torch.autograd.grad`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

#: float32 logits of one chunk. Small enough to stay near the cache, large enough that a matrix
#: product over it is not all overhead.
CHUNK_BYTES = 8 * 2**20
#: Logits that are kept for the backward, as a share of the weights' bytes.
KEPT_SHARE = 0.5
FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Head:
    """logits = bend(hidden @ weight^T + bias), with bend(x) = cap tanh(scale x / cap), or scale x
    without a cap; weight [V, D]. kept_bytes: logits up to this size are kept for the backward."""

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    cap: float | None = None
    kept_bytes: int = CHUNK_BYTES

    @classmethod
    def of(cls, model: PreTrainedModel) -> Head | None:
        """What the model's configuration says of its head, None where that is no plain linear map.
        A claim, to be checked against the model's own logits."""
        linear = model.get_output_embeddings()
        if type(linear) is not nn.Linear:
            return None
        config = model.config.get_text_config(decoder=True)
        scale = getattr(config, "logit_scale", None) or 1.0  # Cohere multiplies
        scale /= getattr(config, "logits_scaling", None) or 1.0  # Granite divides
        cap = getattr(config, "final_logit_softcapping", None)  # Gemma bends
        weights = sum(p.numel() * p.element_size() for p in model.parameters())
        kept_bytes = max(int(KEPT_SHARE * weights), CHUNK_BYTES)
        return cls(linear.weight, linear.bias, scale, cap, kept_bytes)

    @property
    def kept_tokens(self) -> int:
        """Most tokens whose logits are kept."""
        return self.kept_bytes // (FLOAT32_BYTES * self.weight.shape[0])

    def logp(
        self, hidden: Float[Tensor, "N D"], token: Int[Tensor, "N"], temperature: float
    ) -> Float[Tensor, "N"]:
        """log softmax(logits / temperature) at each token, nats, float32 (float64 for a float64
        model)."""
        return _HeadLogp.apply(hidden, self.weight, self.bias, token, self, temperature)

    def chunks(self, num_tokens: int) -> list[slice]:
        """Of the vocabulary; one where the logits are kept."""
        vocabulary = self.weight.shape[0]
        if num_tokens <= self.kept_tokens:
            return [slice(0, vocabulary)]
        size = max(CHUNK_BYTES // (FLOAT32_BYTES * max(num_tokens, 1)), 1)
        number = -(-vocabulary // size)
        size = -(-vocabulary // number)  # even ones
        return [slice(at, min(at + size, vocabulary)) for at in range(0, vocabulary, size)]

    def logits(
        self, hidden: Float[Tensor, "N D"], chunk: slice, temperature: float
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"] | None]:
        """Of a chunk, over the temperature; and d logit / d product where a cap bends it."""
        bias = None if self.bias is None else self.bias[chunk]
        product = nn.functional.linear(hidden, self.weight[chunk], bias)
        product = product.float() if product.dtype.itemsize < FLOAT32_BYTES else product
        if self.cap is None:
            return (
                product if self._plain(temperature) else product.mul_(self.scale / temperature)
            ), None
        bent = product.mul_(self.scale / self.cap).tanh_()
        slope = (1 - bent * bent).mul_(self.scale / temperature)
        return bent.mul_(self.cap / temperature), slope

    def _plain(self, temperature: float) -> bool:
        return self.scale == temperature == 1.0


class _HeadLogp(torch.autograd.Function):
    """hidden [N, D] -> log-probs [N]."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token: Tensor,
        head: Head,
        temperature: float,
    ) -> Tensor:
        chunks = head.chunks(hidden.shape[0])
        keep = len(chunks) == 1 and ctx.needs_input_grad[0]
        own: list[Tensor] = []
        norms: list[Tensor] = []
        kept: tuple[Tensor | None, Tensor | None] = (None, None)
        for chunk in chunks:
            logits, slope = head.logits(hidden, chunk, temperature)
            own.append(_logit_of(logits, token, chunk))
            norms.append(_normaliser(logits, keep))
            if keep:
                kept = (logits, slope)
        at_token = torch.stack(own).sum(0)
        lse = norms[0] if len(norms) == 1 else torch.stack(norms).logsumexp(0)
        ctx.head, ctx.temperature, ctx.chunks = head, temperature, chunks
        kind = hidden.device.type
        ctx.low = (
            torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden.dtype
        )
        ctx.save_for_backward(hidden, token, lse, *kept)
        return at_token - lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides the names
        hidden, token, lse, kept, slope = ctx.saved_tensors
        head: Head = ctx.head
        upstream = grads[0]
        grad_hidden = torch.zeros_like(hidden)
        for chunk in ctx.chunks:
            logits = kept
            if logits is None:
                logits, slope = head.logits(hidden, chunk, ctx.temperature)
            grad = _grad_of_product(
                logits, slope, token, lse, upstream, chunk, head, ctx.temperature
            )
            grad = grad.to(ctx.low)
            grad_hidden += grad @ head.weight[chunk].to(ctx.low)
            _add_to_grad(head, chunk, grad, hidden.to(ctx.low))
        return grad_hidden, None, None, None, None, None


def _normaliser(logits: Float[Tensor, "N C"], keep: bool) -> Float[Tensor, "N"]:
    """Logarithm of the sum of exponentials of a chunk; without keep in the memory of the logits."""
    if keep:
        return logits.logsumexp(-1)
    peak = logits.amax(-1, keepdim=True)
    return logits.sub_(peak).exp_().sum(-1).log_().add_(peak.squeeze(-1))


def _logit_of(
    logits: Float[Tensor, "N C"], token: Int[Tensor, "N"], chunk: slice
) -> Float[Tensor, "N"]:
    """The logit of each token that lies in the chunk, 0 for the others."""
    place = token - chunk.start
    inside = (place >= 0) & (place < logits.shape[1])
    found = logits.gather(1, place.clamp(0, logits.shape[1] - 1)[:, None]).squeeze(1)
    return torch.where(inside, found, 0.0)


def _grad_of_product(
    logits: Tensor,
    slope: Tensor | None,
    token: Tensor,
    lse: Tensor,
    upstream: Tensor,
    chunk: slice,
    head: Head,
    temperature: float,
) -> Tensor:
    """upstream x (1[v = token] - p_v) x d logit / d product, in the memory of the logits."""
    grad = logits.sub_(lse[:, None]).exp_().mul_(-upstream[:, None])
    place = token - chunk.start
    rows = ((place >= 0) & (place < grad.shape[1])).nonzero().squeeze(1)
    grad[rows, place[rows]] += upstream[rows]
    if slope is not None:
        return grad.mul_(slope)
    return grad if head.scale == temperature == 1.0 else grad.mul_(head.scale / temperature)


def _add_to_grad(head: Head, chunk: slice, grad: Tensor, hidden: Tensor) -> None:
    if head.weight.requires_grad:
        gradient = gradient_of(head.weight)[chunk]
        if gradient.dtype == grad.dtype:
            gradient.addmm_(grad.T, hidden)
        else:
            gradient += grad.T @ hidden
    if head.bias is not None and head.bias.requires_grad:
        gradient_of(head.bias)[chunk] += grad.sum(0)


def gradient_of(parameter: Tensor) -> Tensor:
    """Its `.grad`, zeros if it had none."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
