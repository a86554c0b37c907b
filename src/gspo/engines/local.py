"""The engine inside the process: it samples from a Hugging Face causal language model.

Every model is decoded by its own forward (`forward`); the Llama and Qwen family by a path written
for one token a row (`lean`), which `path` names. `scheduler` says which responses are decoded when.

Batch shape moves a log-prob by float rounding only (about 1e-6 in float32): a sample changes when
its uniform lies that close to the border between two tokens, and never otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Literal

import torch
from transformers import PreTrainedModel

from gspo.engines.base import Sampling
from gspo.engines.forward import ForwardDecoder
from gspo.engines.kv_cache import check_supported
from gspo.engines.lean import LeanDecoder
from gspo.engines.lean_weights import obstacle
from gspo.engines.linear import float32_map
from gspo.engines.loading import check_names, checked
from gspo.engines.packed import packed_linear
from gspo.engines.request import Response, check_prompt, responses
from gspo.engines.scheduler import Decoder, Schedule
from gspo.errors import GspoError, RecipeError, memory_errors
from gspo.types import Group, Prompt, Weights


class LocalEngine:
    """Samples from `model` as it stands at each request; after in-place updates, `load` stamps the
    version.

    tokenizer_decode turns response ids, the end token left out, into text. A response ends on any
    of eos_ids. max_batch: responses decoded side by side; memory grows with it. dtype bfloat16:
    linear maps (on the general path everything) from a rounded copy of the weights. Log-probs are
    always those of the numbers that were sampled from.

    Raises DataError for a model whose layers keep something else than keys and values.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer_decode: Callable[[Sequence[int]], str],
        eos_ids: Sequence[int],
        max_batch: int,
        version: int = 0,
        dtype: Literal["model", "bfloat16"] = "model",
    ) -> None:
        if max_batch < 1:
            raise RecipeError(f"engine.max_batch is {max_batch}; wanted at least 1")
        check_supported(model.config)
        self._model: PreTrainedModel | None = model
        self._tokenizer_decode = tokenizer_decode
        self._eos_ids = frozenset(eos_ids)
        self._max_batch = max_batch
        self._version = version
        self._rounds = dtype == "bfloat16"
        self._rounded: PreTrainedModel | None = None
        self._num_loads = 0

    @property
    def path(self) -> str:
        """Which path decodes, and why."""
        model = self._open_model()
        reason = obstacle(model)
        rounding = " in bfloat16" if self._rounds else ""
        if reason is None:
            linear = f", linear maps{rounding}" if rounding else ""
            return f"lean decode for {model.config.model_type}{linear}"
        return f"the model's own forward{rounding}: {reason}"

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Group]:
        """One group per prompt, longest prompts begun first, each when its last response is done.
        A prompt id that stands k times in one request gets k different groups.

        Raises DataError, before any forward, for a prompt that is empty, leaves no room in the
        model's context, or holds ids outside its vocabulary. While running: NumericsError for
        logits that are not finite, ResourceError when memory ends.
        """
        model = self._open_model()
        for prompt in prompts:
            check_prompt(prompt, model.config)
        return self._groups(responses(prompts, sampling, model.config), sampling)

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
        self._num_loads += 1

    def close(self) -> None:
        """Lets go of the model. Closing twice is fine; any other call afterwards is an error."""
        self._model = self._rounded = None

    def _open_model(self) -> PreTrainedModel:
        if self._model is None:
            raise GspoError("this engine is closed; build a new LocalEngine to sample again")
        return self._model

    def _groups(self, rows: Sequence[Response], sampling: Sampling) -> Iterator[Group]:
        """Modes and memory errors hold while a group is decoded, never across a yield."""
        groups: defaultdict[int, list[Response]] = defaultdict(list)
        for response in rows:
            groups[response.prompt_index].append(response)
        schedule = Schedule(
            rows,
            sampling,
            eos_ids=self._eos_ids,
            max_batch=self._max_batch,
            device=self._open_model().device,
        )
        decoder, num_loads = None, self._num_loads
        while not schedule.is_done:
            if num_loads != self._num_loads:
                # One response, one version: what was begun under the old weights begins again.
                schedule.restart()
                decoder, num_loads = None, self._num_loads
            model = self._open_model()
            memory = memory_errors("sampling", "engine.max_batch", self._max_batch)
            with _evaluating(model), torch.inference_mode(), memory:
                decoder = decoder or self._decoder(model, rows, sampling)
                finished = schedule.run(decoder, self._version)
            for index in finished:
                yield self._group(groups.pop(index))

    def _decoder(
        self, model: PreTrainedModel, rows: Sequence[Response], sampling: Sampling
    ) -> Decoder:
        """Built for a request, and again after `load`: what it copies of the weights is never old."""
        if obstacle(model) is None:
            rounded = partial(packed_linear, num_rows=self._max_batch)
            linear_maps = rounded if self._rounds else float32_map
            return LeanDecoder(model, linear_maps, rows, sampling.num_samples, self._max_batch)
        if self._rounds:
            self._rounded = model = _rounded(model, self._rounded)
        return ForwardDecoder(model, rows, self._max_batch)

    def _group(self, done: Sequence[Response]) -> Group:
        rollouts = [r.rollout(self._eos_ids, self._tokenizer_decode) for r in done]
        return Group(done[0].prompt, tuple(rollouts))


def _rounded(model: PreTrainedModel, last: PreTrainedModel | None) -> PreTrainedModel:
    """The model in bfloat16: a copy, or the last copy with the weights of now.

    What is not in the state dict stays float32, as in a model loaded in bfloat16: angles of the
    rotations above all, which 8 bits would spoil.
    """
    with torch.inference_mode(False), torch.no_grad():
        if last is None:
            last = deepcopy(model)
            for tensor in last.state_dict(keep_vars=True).values():
                if tensor.is_floating_point():
                    tensor.data = tensor.data.bfloat16()
            return last
        for old, new in zip(last.state_dict().values(), model.state_dict().values(), strict=True):
            old.copy_(new)
    return last


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
