"""Attention over a ragged row: each segment causally to itself, a response also to its prompt.

Registered with transformers under NAME, so that a model's own forward calls it. On the CPU two
flash kernels give a response's two halves, own tokens and prompt, each with the logarithm of its
normaliser; the halves are joined by those, and the kernels' backward is given the joined output
and normaliser, which makes each half's gradient that of the whole softmax (as ring attention does,
arXiv 2310.01889, appendix). Prompt keys and values are read where they lie, never repeated.
Elsewhere, and where a sliding window is in force, a mask and `scaled_dot_product_attention` do the
same; that way is also what the tests compare with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface, PreTrainedConfig, PreTrainedModel

from gspo.errors import GspoError
from gspo.policy.ragged import Bucket, Layout, Segment

NAME = "gspo_ragged"
#: What attention functions may be told that changes nothing here, or is handled.
KNOWN_ARGUMENTS = frozenset({"sliding_window", "position_ids", "use_cache", "is_causal"})
#: Above any log-normaliser: the weight exp(score - this) of a padded query is 0.
LARGE = 1e30

_layout: ContextVar[Layout | None] = ContextVar("layout", default=None)


class UnsupportedAttentionError(GspoError):
    """A layer asks for something this attention does not do; the plain way is taken instead."""


@contextmanager
def ragged_attention(model: PreTrainedModel, layout: Layout) -> Iterator[None]:
    """Inside, the model's layers attend by this layout."""
    found = (getattr(module, "config", None) for module in model.modules())
    configs = {id(config): config for config in found if isinstance(config, PreTrainedConfig)}
    before = {key: config._attn_implementation for key, config in configs.items()}  # pyright: ignore[reportPrivateUsage]
    token = _layout.set(layout)
    try:
        for config in configs.values():
            config._attn_implementation = NAME  # pyright: ignore[reportPrivateUsage] - the public setter walks all modules again
        yield
    finally:
        _layout.reset(token)
        for key, config in configs.items():
            config._attn_implementation = before[key]  # pyright: ignore[reportPrivateUsage]


def attend(
    module: nn.Module,
    query: Float[Tensor, "1 H T K"],
    key: Float[Tensor, "1 J T K"],
    value: Float[Tensor, "1 J T D"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **arguments: Any,
) -> tuple[Float[Tensor, "1 T H D"], None]:
    """transformers' attention function. Raises UnsupportedAttentionError for what it cannot do."""
    layout = _layout.get()
    strange = sorted(k for k in arguments.keys() - KNOWN_ARGUMENTS if arguments[k] is not None)
    if layout is None or attention_mask is not None or dropout or strange:
        raise UnsupportedAttentionError(
            f"ragged attention was given {strange or 'a mask or dropout'}"
        )
    if query.shape[:3:2] != (1, layout.num_tokens) or not getattr(module, "is_causal", True):
        raise UnsupportedAttentionError(f"query has shape {tuple(query.shape)}")
    window = arguments.get("sliding_window")
    if torch.is_autocast_enabled(query.device.type):
        low = torch.get_autocast_dtype(query.device.type)
        query, key, value = (states.to(low) for states in (query, key, value))
    q, k, v = (states[0].transpose(0, 1) for states in (query, key, value))
    scale = q.shape[-1] ** -0.5 if scaling is None else scaling
    narrow = window is not None and window < layout.longest
    if narrow or q.device.type != "cpu" or k.shape[-1] != v.shape[-1]:
        out = masked_attention(q, k, v, layout, scale, window if narrow else None)
    else:
        out = _FlashAttention.apply(q, k, v, layout, scale)
    return out[None], None


AttentionInterface.register(NAME, attend)


class _FlashAttention(torch.autograd.Function):
    """q [T, H, K], k and v [T, J, K] -> [T, H, K]; J divides H."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, layout: Layout, scale: float) -> Tensor:
        out = torch.empty(q.shape, dtype=q.dtype)
        lse = torch.empty(q.shape[:2], dtype=torch.float32 if q.dtype != torch.float64 else q.dtype)
        for bucket in layout.buckets:
            rows = (_padded(q, bucket), _padded(k, bucket), _padded(v, bucket))
            part, part_lse = _flash(*rows, causal=True, scale=scale)
            out[bucket.places] = _unpadded(part.transpose(1, 2), bucket)
            lse[bucket.places] = _unpadded(part_lse.transpose(1, 2), bucket)
        for prefix, own in layout.crosses:
            rows = (_heads_first(q, own), _heads_first(k, prefix), _heads_first(v, prefix))
            part, part_lse = _flash(*rows, causal=False, scale=scale)
            _join(out[own.start : own.stop], lse[own.start : own.stop], part, part_lse)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides the names
        q, k, v, out, lse = ctx.saved_tensors
        layout: Layout = ctx.layout
        scale: float = ctx.scale
        grad = grads[0].contiguous()
        grad_q, grad_k, grad_v = (torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v))
        for bucket in layout.buckets:
            rows = (_padded(q, bucket), _padded(k, bucket), _padded(v, bucket))
            grad_rows = grad.index_select(0, bucket.index).index_fill_(0, bucket.padding, 0.0)
            grad_rows = grad_rows.unflatten(0, (-1, bucket.longest)).transpose(1, 2)
            norm = lse[bucket.index].index_fill_(0, bucket.padding, LARGE)
            norm = norm.unflatten(0, (-1, bucket.longest)).transpose(1, 2)
            parts = _flash_backward(
                grad_rows, *rows, _padded(out, bucket), norm, causal=True, scale=scale
            )
            for into, part in zip((grad_q, grad_k, grad_v), parts, strict=True):
                into[bucket.places] = _unpadded(part.transpose(1, 2), bucket)
        for prefix, own in layout.crosses:
            rows = (_heads_first(q, own), _heads_first(k, prefix), _heads_first(v, prefix))
            norm = lse[own.start : own.stop].T[None]
            parts = _flash_backward(
                _heads_first(grad, own), *rows, _heads_first(out, own), norm,
                causal=False, scale=scale,
            )  # fmt: skip
            for into, segment, part in zip(
                (grad_q, grad_k, grad_v), (own, prefix, prefix), parts, strict=True
            ):
                into[segment.start : segment.stop] += part[0].transpose(0, 1)
        return grad_q, grad_k, grad_v, None, None


def _flash(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Output [b, H, L, K] and log-normaliser [b, H, L]."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, scale=scale
    )


def _flash_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    *,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, k, v, out, lse, 0.0, causal, scale=scale
    )


def _padded(states: Float[Tensor, "T H K"], bucket: Bucket) -> Float[Tensor, "b H L K"]:
    rows = states.index_select(0, bucket.index).unflatten(0, (-1, bucket.longest))
    return rows.transpose(1, 2)


def _unpadded(rows: Tensor, bucket: Bucket) -> Tensor:
    """[b, L, ...] -> the n real tokens."""
    flat = rows.flatten(0, 1)
    return flat if bucket.real is None else flat.index_select(0, bucket.real)


def _heads_first(states: Float[Tensor, "T H K"], segment: Segment) -> Float[Tensor, "1 H L K"]:
    return states[segment.start : segment.stop].transpose(0, 1)[None]


def _join(
    out: Float[Tensor, "L H K"],
    lse: Float[Tensor, "L H"],
    other: Float[Tensor, "1 H L K"],
    other_lse: Float[Tensor, "1 H L"],
) -> None:
    """Two softmax averages over different keys become one over both, in place."""
    other, other_lse = other[0].transpose(0, 1), other_lse[0].T
    both = torch.logaddexp(lse, other_lse)
    out.mul_((lse - both).exp()[..., None]).add_(other * (other_lse - both).exp()[..., None])
    lse.copy_(both)


def masked_attention(
    q: Float[Tensor, "T H K"],
    k: Float[Tensor, "T J K"],
    v: Float[Tensor, "T J D"],
    layout: Layout,
    scale: float,
    window: int | None,
) -> Float[Tensor, "T H D"]:
    """The same by a mask. window: how many tokens back, itself included, a token sees."""
    out = q.new_zeros(*q.shape[:2], v.shape[-1])
    for bucket in layout.buckets:
        keys, mask = _keys(bucket, window, q.device)
        rows = torch.nn.functional.scaled_dot_product_attention(
            _padded(q, bucket),
            *(x[keys].transpose(1, 2) for x in (k, v)),
            attn_mask=mask[:, None],
            scale=scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )
        out = out.index_copy(0, bucket.places, _unpadded(rows.transpose(1, 2), bucket))
    return out


def _keys(bucket: Bucket, window: int | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Places of the keys of each segment [b, C + L], the C of its prefix on the left, and which of
    them each of its tokens sees [b, L, C + L]."""
    prefixes = [segment.prefix for segment in bucket.segments]
    num_prefix = max((prefix.length for prefix in prefixes if prefix), default=0)
    start = torch.tensor([prefix.start if prefix else 0 for prefix in prefixes])
    length = torch.tensor([prefix.length if prefix else 0 for prefix in prefixes])
    column = torch.arange(num_prefix) - (num_prefix - length)[:, None]  # ends at the own tokens
    own = bucket.index.view(-1, bucket.longest).cpu()
    places = torch.cat([(start[:, None] + column.clamp(min=0)), own], 1)
    query, key = torch.arange(bucket.longest), torch.arange(-num_prefix, bucket.longest)
    behind = query[:, None] - key
    sees = (behind >= 0) & (behind < (window or behind.max() + 1))
    there = torch.cat([column >= 0, torch.ones_like(own, dtype=torch.bool)], 1)
    return places.to(device), (sees & there[:, None]).to(device)
