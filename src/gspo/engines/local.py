"""The engine inside the process: any Hugging Face causal language model, through its own forward.

Prompts are sorted by length and cut into batches of at most `max_batch` responses. In a batch each
prompt is read once and its keys and values are copied to the rows of its responses; then all rows
get one token a forward, and rows that are done leave when they are a quarter of the batch.

Batch shape moves a log-prob by float rounding only (about 1e-6 in float32): a sample changes when
its uniform lies that close to the border between two tokens, and never otherwise.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from transformers import PreTrainedModel

from gspo.engines.base import Sampling
from gspo.engines.counted import row_key, uniforms
from gspo.engines.kv_cache import RowCache, check_supported
from gspo.engines.loading import check_names, checked
from gspo.engines.sampling import Draw, draw
from gspo.errors import DataError, GspoError, RecipeError, ResourceError
from gspo.types import Group, Prompt, Rollout, Weights

PAD_ID = 0  # any id the vocabulary has: padding is masked, its value never enters
DONE_SHARE = 0.25  # of the rows: moving the live ones then costs less than decoding the done ones
NO_LIMIT = sys.maxsize
CPU_OUT_OF_MEMORY = "can't allocate memory"  # what torch's plain RuntimeError says there

History = list[tuple[Int64[Tensor, "_"], Draw]]  # which rows drew what, a step an entry


class LocalEngine:
    """Samples from `model` as it stands; after in-place updates, `load` only stamps the version.

    tokenizer_decode turns response ids, the end token left out, into text. A response ends on any
    of eos_ids. max_batch: responses decoded side by side; memory grows with it.

    Raises DataError for a model whose layers keep something else than keys and values.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer_decode: Callable[[Sequence[int]], str],
        eos_ids: Sequence[int],
        max_batch: int,
        version: int = 0,
    ) -> None:
        if max_batch < 1:
            raise RecipeError(f"engine.max_batch is {max_batch}; wanted at least 1")
        check_supported(model.config)
        self._model: PreTrainedModel | None = model
        self._tokenizer_decode = tokenizer_decode
        self._eos_ids = frozenset(eos_ids)
        self._max_batch = max_batch
        self._version = version

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Group]:
        """One group per prompt, shortest prompts first, each when the batch of its last response
        is done. A prompt id that stands k times in one request gets k different groups.

        Raises DataError, before any forward, for a prompt that is empty, leaves no room in the
        model's context, or holds ids outside its vocabulary. While running: NumericsError for
        logits that are not finite, ResourceError when memory ends.
        """
        model = self._open_model()
        for prompt in prompts:
            _check_prompt(prompt, model)
        return self._groups(_rows(prompts, sampling, _context_tokens(model)), sampling)

    def load(self, weights: Weights) -> None:
        """Tensors that share the model's memory are taken as they are, others are copied in.

        All are checked before the first is written: DataError for names or shapes that do not
        match, NumericsError for values that are not finite.
        """
        model = self._open_model()
        own = model.state_dict()
        check_names(weights.tensors, own, model)
        foreign = {
            name: checked(name, tensor, own[name], weights.version)
            for name, tensor in weights.tensors.items()
            if tensor.data_ptr() != own[name].data_ptr() or tensor.shape != own[name].shape
        }
        with torch.no_grad():
            for name, tensor in foreign.items():
                own[name].copy_(tensor)
        self._version = weights.version

    def close(self) -> None:
        """Lets go of the model. Closing twice is fine; any other call afterwards is an error."""
        self._model = None

    def _open_model(self) -> PreTrainedModel:
        if self._model is None:
            raise GspoError("this engine is closed; build a new LocalEngine to sample again")
        return self._model

    def _groups(self, rows: Sequence[_Row], sampling: Sampling) -> Iterator[Group]:
        # Whole groups where they fit, so that their prompt is read once.
        whole_groups = self._max_batch - self._max_batch % sampling.num_samples
        num_rows = whole_groups or self._max_batch
        rollouts: defaultdict[int, list[Rollout]] = defaultdict(list)
        for start in range(0, len(rows), num_rows):
            batch = rows[start : start + num_rows]
            for row, rollout in zip(batch, self._sample(batch, sampling), strict=True):
                siblings = rollouts[row.prompt_index]
                siblings.append(rollout)
                if len(siblings) == sampling.num_samples:
                    yield Group(row.prompt, tuple(rollouts.pop(row.prompt_index)))

    def _sample(self, batch: Sequence[_Row], sampling: Sampling) -> list[Rollout]:
        """The batch's responses. Version and modes hold for the batch, never across a yield."""
        model, version = self._open_model(), self._version
        with _evaluating(model), torch.inference_mode(), _memory_errors(self._max_batch):
            history = _decode(model, batch, sampling, self._eos_ids)
        return [
            self._rollout(row, *response, version)
            for row, response in zip(batch, _by_row(history), strict=True)
        ]

    def _rollout(
        self,
        row: _Row,
        ids: list[int],
        logp: list[float],
        kept_mass: list[float] | None,
        version: int,
    ) -> Rollout:
        """The response up to its first end token, or to its limit."""
        own = ids[: row.limit]
        ends = (place + 1 for place, token in enumerate(own) if token in self._eos_ids)
        length = next(ends, len(own))
        stopped = ids[length - 1] in self._eos_ids
        return Rollout(
            prompt_ids=tuple(row.prompt.ids),
            response_ids=tuple(ids[:length]),
            trained=(True,) * length,
            engine_logp=tuple(logp[:length]),
            text=self._tokenizer_decode(ids[: length - stopped]),
            finish="stop" if stopped else "length",
            version=version,
            kept_mass=None if kept_mass is None else tuple(kept_mass[:length]),
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """One response to be sampled: its prompt, its most tokens, and the key of its uniforms."""

    prompt_index: int
    prompt: Prompt
    limit: int
    key: int


@dataclass(frozen=True, slots=True)
class _Live:
    """The rows still in the batch, in the cache's order.

    row: number in the batch. position: of the token that is fed next. mask: columns that are no
    padding; None when all prompts are of one length.
    """

    row: Int64[Tensor, "B"]
    key: Int64[Tensor, "B"]
    limit: Int64[Tensor, "B"]
    position: Int64[Tensor, "B"]
    done: Bool[Tensor, "B"]
    mask: Bool[Tensor, "B M"] | None

    def take(self, order: Int64[Tensor, "R"]) -> _Live:
        """These rows, in this order."""
        rows = (self.row, self.key, self.limit, self.position, self.done)
        row, key, limit, position, done = (values[order] for values in rows)
        mask = None if self.mask is None else self.mask[order]
        return _Live(row, key, limit, position, done, mask)


class _Forward:
    """The model's forward on a cache: the logits after the last token of each row."""

    def __init__(self, model: PreTrainedModel, cache: RowCache) -> None:
        self._model = model
        self._cache = cache
        arguments = inspect.signature(model.forward).parameters
        self._takes_position = "position_ids" in arguments
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in arguments else {}

    def __call__(
        self,
        ids: Int64[Tensor, "B L"],
        position: Int64[Tensor, "B L"],
        mask: Bool[Tensor, "B M"] | None,
    ) -> Float[Tensor, "B V"]:
        num_columns = self._cache.length + ids.shape[1]
        output = self._model(
            input_ids=ids,
            attention_mask=None if mask is None else mask[:, :num_columns],
            cache=self._cache,
            use_cache=True,
            **({"position_ids": position} if self._takes_position else {}),
            **self._last_only,
        )
        return output.logits[:, -1]


def _decode(
    model: PreTrainedModel, batch: Sequence[_Row], sampling: Sampling, eos_ids: frozenset[int]
) -> History:
    """Which rows drew what, step by step; draws of a row after its end are still among them."""
    cache = RowCache(model.config, len(batch), _num_columns(batch))
    forward = _Forward(model, cache)
    live, logits = _prefill(forward, cache, batch, model.device)
    ends = torch.tensor(sorted(eos_ids), dtype=torch.int64, device=model.device)
    history: History = []
    while True:
        step = len(history)
        drawn = draw(
            logits,
            uniforms(live.key, step),
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
        )
        history.append((live.row, drawn))
        done = live.done | torch.isin(drawn.ids, ends) | (live.limit == step + 1)
        num_done, next_ids = int(done.sum()), drawn.ids
        if num_done == done.numel():
            return history
        live = replace(live, done=done)
        if num_done >= DONE_SHARE * done.numel():
            order = cache.drop(done)
            live, next_ids = live.take(order), next_ids[order]
        logits = forward(next_ids[:, None], live.position[:, None], live.mask)
        # A done row that has not left yet stays where it is, inside the model's context.
        live = replace(live, position=live.position + ~live.done)


def _prefill(
    forward: _Forward, cache: RowCache, batch: Sequence[_Row], device: torch.device
) -> tuple[_Live, Float[Tensor, "B V"]]:
    """Reads each prompt once, padded on the left, and gives every response a copy of it."""
    prompts = {row.prompt_index: row.prompt.ids for row in batch}
    place = {index: number for number, index in enumerate(prompts)}
    longest = max(map(len, prompts.values()))

    def tensor(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    ids = tensor([[PAD_ID] * (longest - len(prompt)) + list(prompt) for prompt in prompts.values()])
    padding = tensor([longest - len(prompt) for prompt in prompts.values()])
    columns = torch.arange(_num_columns(batch), device=device)
    mask = columns >= padding[:, None] if bool(padding.any()) else None
    position = (columns[:longest] - padding[:, None]).clamp(min=0)
    logits = forward(ids, position, mask)
    source = tensor([place[row.prompt_index] for row in batch])
    cache.spread(source)
    live = _Live(
        row=torch.arange(len(batch), device=device),
        key=tensor([row.key for row in batch]),
        limit=tensor([row.limit for row in batch]),
        position=tensor([len(row.prompt.ids) for row in batch]),
        done=torch.zeros(len(batch), dtype=torch.bool, device=device),
        mask=None if mask is None else mask[source],
    )
    return live, logits[source]


def _by_row(history: History) -> Iterator[tuple[list[int], list[float], list[float] | None]]:
    """Ids, log-probs and kept mass of each row of the batch, step after step."""
    row = torch.cat([row for row, _ in history])
    order = row.argsort(stable=True)
    counts = row.bincount().tolist()
    draws = [drawn for _, drawn in history]
    ids = torch.cat([drawn.ids for drawn in draws])[order].split(counts)
    logp = torch.cat([drawn.logp for drawn in draws])[order].split(counts)
    masses = [drawn.kept_mass for drawn in draws if drawn.kept_mass is not None]
    kept = torch.cat(masses)[order].split(counts) if masses else [None] * len(counts)
    for row_ids, row_logp, row_kept in zip(ids, logp, kept, strict=True):
        yield row_ids.tolist(), row_logp.tolist(), None if row_kept is None else row_kept.tolist()


def _rows(prompts: Sequence[Prompt], sampling: Sampling, context_tokens: int) -> list[_Row]:
    """Every response of the request, prompts by length, samples of a prompt side by side.

    The k-th group of a repeated prompt id goes on counting samples where the one before ended.
    """
    request: dict[str, Any] = {
        "seed": sampling.seed,
        "stream": sampling.stream,
        "step": sampling.step,
    }
    seen: Counter[str] = Counter()
    rows = []
    for index, prompt in sorted(enumerate(prompts), key=lambda item: len(item[1].ids)):
        first = seen[prompt.id]
        seen[prompt.id] += sampling.num_samples
        limit = min(sampling.max_tokens, context_tokens - len(prompt.ids))
        for sample in range(first, first + sampling.num_samples):
            key = row_key(**request, prompt_id=prompt.id, sample=sample)
            rows.append(_Row(index, prompt, limit, key))
    return rows


def _num_columns(batch: Sequence[_Row]) -> int:
    """Columns the longest prompt and the longest response need; its last token is never fed."""
    return max(len(row.prompt.ids) for row in batch) + max(row.limit for row in batch) - 1


def _context_tokens(model: PreTrainedModel) -> int:
    """Most tokens of prompt and response together; NO_LIMIT where the model has none."""
    config = model.config.get_text_config(decoder=True)
    return getattr(config, "max_position_embeddings", NO_LIMIT)


def _check_prompt(prompt: Prompt, model: PreTrainedModel) -> None:
    length, context = len(prompt.ids), _context_tokens(model)
    if not 0 < length < context:
        raise DataError(
            f"prompt {prompt.id!r} has {length} tokens and the model's context {context}; wanted at "
            "least 1, and room for 1 more: filter prompts by length"
        )
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    strange = [token for token in prompt.ids if not 0 <= token < vocabulary]
    if strange:
        raise DataError(
            f"prompt {prompt.id!r} holds token {strange[0]}; the model's vocabulary has "
            f"{vocabulary}: encode it with the model's own tokenizer"
        )


@contextmanager
def _evaluating(model: PreTrainedModel) -> Iterator[None]:
    """Dropout off; afterwards exactly the modules that were in training mode are so again."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _memory_errors(max_batch: int) -> Iterator[None]:
    """An allocation that fails names the setting that sized it."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        out_of_memory = isinstance(error, torch.OutOfMemoryError | MemoryError)
        if not out_of_memory and CPU_OUT_OF_MEMORY not in str(error):
            raise
        raise ResourceError(
            f"memory ended while sampling with engine.max_batch {max_batch}: set it lower "
            f"(half of it is {max(max_batch // 2, 1)}), or lower the most tokens of a response"
        ) from error
