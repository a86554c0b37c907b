"""Log-probs of trained tokens, by the fastest way that this model allows.

Two things are saved: prompts are computed once for a group and nothing is padded (`ragged`), and
logits are never held whole (`head`). Both rest on claims about a model's code, so a way is taken
only after it gave, for a few tokens, the log-probs of the model's own plain forward; `path` says
which way that is. `score` and `update` both go through here: same numerics for old and new.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import PreTrainedModel

from gspo.policy.attention import UnsupportedAttentionError, ragged_attention
from gspo.policy.fused import fused_layers, recomputed_layers
from gspo.policy.head import Head, gradient_of
from gspo.policy.logprob import batch_logp
from gspo.policy.packing import Padded, microbatches
from gspo.policy.ragged import Ragged, shared_microbatches
from gspo.segments import Segments
from gspo.types import RolloutBatch

KNOWN_LAYERS = frozenset({"full_attention", "sliding_attention"})
#: A model that never heard of ragged attention may raise any of these.
REFUSALS = (
    UnsupportedAttentionError, AttributeError, IndexError, KeyError, NotImplementedError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
#: Nats between the plain way and another, of log-probs in float32: rounding stays ten times below.
PROBE_TOLERANCE = 5e-5
HALF_PRECISION_TOLERANCE = 0.1
PROBE_PROMPTS = (9, 9, 9, 3)
PROBE_RESPONSES = (2, 1, 4, 3)
#: On the CPU a forward of more tokens gains nothing and loses the cache, one of fewer than the
#: second number leaves the matrix products short of rows.
MOST_TOKENS = 4096
LEAST_TOKENS = 512
#: Share of an update's operations that may be spent on dropping the layers' activations.
MOST_RECOMPUTED = 0.05


@dataclass(frozen=True, slots=True)
class _Way:
    """ragged: prompts once, no padding. head: chunked, or None for the model's own logits. layers:
    those whose activations are made again in the backward."""

    ragged: bool
    head: Head | None
    layers: tuple[nn.Module, ...] = ()

    def __str__(self) -> str:
        tokens = "prompts once a group, no padding" if self.ragged else "padded rows"
        head = "chunked head" if self.head else "whole logits"
        return f"{tokens}; {head}{'; layers made twice' if self.layers else ''}"


class TokenLogp:
    """Callable: a micro-batch -> log-prob of each of its N trained tokens at its temperature, on
    the CPU, float32, differentiable where the caller allows gradients. Gradients of embedding and
    head appear in `.grad` by `backward()`. products: dtype of matrix products and attention, None
    for the weights' own; all else stays as it is. path: which way is taken, and why not a faster
    one."""

    def __init__(self, model: PreTrainedModel, products: torch.dtype | None = None) -> None:
        self.model = model
        self._products = products
        with self._precision():
            self._way, self.path = _choose(model)

    def _precision(self) -> torch.autocast:
        kind, on = self.model.device.type, self._products is not None
        # Without its cache every product casts its weight again, but no copy outlives its use.
        return torch.autocast(kind, self._products, enabled=on, cache_enabled=False)

    def __call__(self, batch: RolloutBatch) -> Float[Tensor, "N"]:
        with self._precision():
            return _logp(self.model, batch, self._way)

    def microbatches(self, batch: RolloutBatch, max_tokens: int) -> list[Int[Tensor, "_"]]:
        """Rows of each micro-batch of at most max_tokens tokens, as this way counts them."""
        if not self._way.ragged:
            return microbatches(batch, max_tokens)
        return shared_microbatches(batch, max_tokens, self._good_tokens())

    def cuts_vocabulary(self, max_tokens: int) -> bool:
        """On the CPU, micro-batches of this budget make their logits in chunks."""
        good, head = self._good_tokens(), self._way.head
        return head is not None and good is not None and min(good, max_tokens) > head.kept_tokens

    def _good_tokens(self) -> int | None:
        """What a forward should hold on this device, where there is such a number."""
        if self.model.device.type != "cpu":
            return None
        kept = self._way.head.kept_tokens if self._way.head else MOST_TOKENS
        return min(max(kept, LEAST_TOKENS), MOST_TOKENS)


def _logp(model: PreTrainedModel, batch: RolloutBatch, way: _Way) -> Float[Tensor, "N"]:
    if not batch.num_tokens:
        return torch.zeros(0)
    if way.head is None:
        return batch_logp(model, batch)
    with _embedding_gradients(model), fused_layers(model):
        hidden = _ragged_hidden(model, batch, way) if way.ragged else _padded_hidden(model, batch)
    token = batch.input_ids[batch.target].to(hidden.device)
    return way.head.logp(hidden, token, batch.temperature).float().cpu()


def _ragged_hidden(model: PreTrainedModel, batch: RolloutBatch, way: _Way) -> Float[Tensor, "N D"]:
    row = Ragged.of(batch, model.device)

    @contextmanager
    def again() -> Iterator[None]:
        with fused_layers(model), ragged_attention(model, row.layout):
            yield

    layers = way.layers if torch.is_grad_enabled() else ()
    with ragged_attention(model, row.layout), recomputed_layers(layers, again):
        output = model.base_model(
            input_ids=row.input_ids, position_ids=row.positions, use_cache=False
        )
    return output.last_hidden_state[0].index_select(0, row.predicts)


def _padded_hidden(model: PreTrainedModel, batch: RolloutBatch) -> Float[Tensor, "N D"]:
    padded = Padded.of(batch)
    output = model.base_model(
        input_ids=padded.input_ids.to(model.device),
        position_ids=padded.positions.to(model.device),
        use_cache=False,
    )
    return output.last_hidden_state[padded.predicts.to(model.device)]


@contextmanager
def _embedding_gradients(model: PreTrainedModel) -> Iterator[None]:
    """The embedding's gradient is added to its `.grad` row by row, without a second [V, D]."""
    embedding = model.get_input_embeddings()
    plain = type(embedding) is nn.Embedding and not (
        embedding.sparse or embedding.scale_grad_by_freq or embedding.max_norm
    )
    if not (plain and embedding.weight.requires_grad and torch.is_grad_enabled()):
        yield
        return

    def replace(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return _EmbeddingRows.apply(module.weight, args[0], module.padding_idx)

    handle = embedding.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


class _EmbeddingRows(torch.autograd.Function):
    """weight [V, D], ids [...] -> [..., D]."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, padding_id: int | None) -> Tensor:
        ctx.weight, ctx.ids, ctx.padding_id = weight, ids, padding_id
        return nn.functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides the names
        ids, rows = ctx.ids.flatten(), grads[0].flatten(0, -2)
        if ctx.padding_id is not None:
            rows = rows.masked_fill((ids == ctx.padding_id)[:, None], 0.0)
        gradient_of(ctx.weight).index_add_(0, ids, rows)
        return None, None, None


def _choose(model: PreTrainedModel) -> tuple[_Way, str]:
    """The first way that agrees with the plain one, and its name with what spoke against others."""
    plain = _Way(ragged=False, head=None)
    head = Head.of(model)
    if head is None:
        return plain, f"{plain} (the head is no plain linear map)"
    reasons: list[str] = []
    layers = _cheap_layers(model, head)
    for way in (_Way(ragged=True, head=head, layers=layers), _Way(ragged=False, head=head)):
        reason = _against(model, way)
        if reason is None:
            return way, "; ".join([str(way), *reasons])
        reasons.append(f"not {way}: {reason}")
    return plain, "; ".join([str(plain), *reasons])


def _cheap_layers(model: PreTrainedModel, head: Head) -> tuple[nn.Module, ...]:
    """The decoder's layers where the head outweighs them so far that a second forward of them costs
    next to nothing: a forward is 2 operations a weight, a backward 4, the chunked head's both 8."""
    layers = getattr(model.base_model, "layers", None)
    if not isinstance(layers, nn.ModuleList):
        return ()
    num_body = sum(p.numel() for p in layers.parameters())
    share = 2 * num_body / (6 * num_body + 8 * head.weight.numel())
    return tuple(layers) if share <= MOST_RECOMPUTED else ()


@torch.no_grad()
def _against(model: PreTrainedModel, way: _Way) -> str | None:
    config = model.config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ()) - KNOWN_LAYERS
    if way.ragged and kinds:
        return f"layers of kind {', '.join(sorted(kinds))}"
    context = getattr(config, "max_position_embeddings", None)
    probe = _probe_batch(model)
    if context is not None and int(probe.sequence_lengths.max()) > context:
        return f"a context of {context} tokens leaves no room to try it"
    wanted = batch_logp(model, probe)
    try:
        given = _logp(model, probe, way)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    gap = float((given - wanted).abs().max())
    half = torch.is_autocast_enabled(model.device.type) or model.dtype.itemsize < 4
    tolerance = HALF_PRECISION_TOLERANCE if half else PROBE_TOLERANCE
    return None if gap <= tolerance else f"log-probs differ by {gap:.2g} nats"


def _probe_batch(model: PreTrainedModel) -> RolloutBatch:
    """Three responses to one prompt and one to another, of random tokens."""
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> Tensor:
        return torch.randint(vocabulary, (count,), generator=generator)

    shared = ids(max(PROBE_PROMPTS))
    sequences = [
        torch.cat([shared[:prompt], ids(response)])
        for prompt, response in zip(PROBE_PROMPTS, PROBE_RESPONSES, strict=True)
    ]
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    in_sequence = Segments.from_lengths(lengths)
    positions = torch.arange(int(lengths.sum())) - in_sequence.spread(lengths.cumsum(0) - lengths)
    segments = Segments.from_lengths(list(PROBE_RESPONSES))
    num = len(sequences)
    zeros = torch.zeros(num)
    return RolloutBatch(
        input_ids=torch.cat(sequences),
        positions=positions,
        sequence_lengths=lengths,
        target=(positions >= in_sequence.spread(torch.tensor(PROBE_PROMPTS))).nonzero().squeeze(1),
        segments=segments,
        engine_logp=torch.zeros(segments.num_tokens),
        advantage=zeros,
        reward=zeros,
        group=torch.tensor([0, 0, 0, 1]),
        version=torch.zeros(num, dtype=torch.int64),
        truncated=torch.zeros(num, dtype=torch.bool),
        temperature=0.7,
    )
