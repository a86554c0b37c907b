"""The lean path against the model's own forward, logit by logit, with tokens given.

Groups join, leave and join again, as the scheduler lets them; after every step each row's logits
must be those of its whole sequence in one forward without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)
from transformers.models.auto import AutoModelForCausalLM

from gspo.engines import lean, lean_attention
from gspo.engines.lean import LeanDecoder
from gspo.engines.lean_weights import obstacle
from gspo.engines.linear import float32_map
from gspo.engines.packed import packed_linear
from gspo.engines.request import Response
from gspo.types import Prompt

SAME = 2e-5  # logits, float32, of size about 1 to 5
SIZES: dict[str, Any] = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0}
FAMILIES: dict[str, PreTrainedConfig] = {
    "llama": LlamaConfig(**SIZES, tie_word_embeddings=False),
    "llama, tied": LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama, as many kv heads": LlamaConfig(**{**SIZES, "num_key_value_heads": 4}),
    "llama, one kv head": LlamaConfig(**{**SIZES, "num_key_value_heads": 1}),
    "llama, wide heads": LlamaConfig(**SIZES, head_dim=20),
    "llama, biases": LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True),
    "llama3 rotations": LlamaConfig(**SIZES, rope_parameters=LLAMA3),
    "yarn rotations": LlamaConfig(**SIZES, rope_parameters=YARN),
    "qwen2": Qwen2Config(**SIZES, tie_word_embeddings=False),
    "qwen2, tied": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=False),
    "qwen3, tied": Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True),
}


def build(config: PreTrainedConfig) -> PreTrainedModel:
    """Weights of norms and biases too are no longer ones and zeros."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.uniform_(parameter, 0.2, 1.5)
    return model


class Check:
    """A decoder, and every row's tokens so far."""

    def __init__(
        self, model: PreTrainedModel, prompts: Sequence[int], num_samples: int, max_batch: int
    ) -> None:
        self.model = model
        self.num_samples = num_samples
        self.responses = [
            Response(prompt_index=k, prompt=prompt_of(k, length), limit=20, key=0)
            for k, length in enumerate(prompts)
            for _ in range(num_samples)
        ]
        self.decoder = LeanDecoder(model, float32_map, self.responses, num_samples, max_batch)
        self.rows: list[list[int]] = []
        self.fed = 0

    def admit(self, first: int, last: int, *, splits: bool = False) -> None:
        joining = self.responses[first:last]
        logits = self.decoder.admit(joining, self.responses[last] if splits else None)
        joined = [list(response.prompt.ids) for response in joining]
        self.compare(joined, logits)
        self.rows += joined

    def keep(self, *rows: int) -> None:
        self.decoder.keep(rows)
        self.rows = [self.rows[row] for row in rows]

    def steps(self, count: int) -> None:
        for _ in range(count):
            ids = [(7 * self.fed + 5 * row + 3) % 32 for row in range(len(self.rows))]
            self.fed += 1
            self.rows = [[*row, token] for row, token in zip(self.rows, ids, strict=True)]
            self.compare(self.rows, self.decoder.step(torch.tensor(ids)))

    def compare(self, rows: Sequence[Sequence[int]], logits: Tensor) -> None:
        assert logits.shape[0] == len(rows)
        for row, found in zip(rows, logits, strict=True):
            wanted = self.model(input_ids=torch.tensor([row]), use_cache=False).logits[0, -1]
            assert (found - wanted).abs().max() <= SAME


def prompt_of(number: int, length: int) -> Prompt:
    ids = [(5 * number + 3 * place) % 29 + 3 for place in range(length)]
    return Prompt(id=str(number), text="", ids=ids)


@pytest.fixture(params=["shared prompts", "copied prompts"])
def sharing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    floats = 0 if request.param == "shared prompts" else 10**9
    monkeypatch.setattr(lean_attention, "SHARE_FROM", floats)


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_the_models_own(family: str) -> None:
    """Prompts of 9, 4 and 1 tokens, groups of 3. All of the first group leaves, in two parts; the
    last group joins while the second is under way."""
    with torch.inference_mode():
        check = Check(build(FAMILIES[family]), (9, 4, 1), num_samples=3, max_batch=6)
        check.admit(0, 6)
        check.steps(2)
        check.keep(5, 1, 2, 3, 4)
        check.steps(1)
        check.keep(0, 4, 3)
        check.steps(1)
        check.admit(6, 9)
        check.steps(2)


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("prompts", [(5, 5), (1, 1), (6,)])
@pytest.mark.parametrize("num_samples", [1, 8])
def test_even_rows(prompts: tuple[int, ...], num_samples: int) -> None:
    """Nothing to mask."""
    with torch.inference_mode():
        num_rows = num_samples * len(prompts)
        check = Check(build(FAMILIES["qwen3"]), prompts, num_samples, max_batch=num_rows)
        check.admit(0, num_rows)
        check.steps(3)


@pytest.mark.usefixtures("sharing")
def test_a_split_group_reads_its_prompt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first three rows are gone when the others join."""
    with torch.inference_mode():
        model = build(FAMILIES["qwen3"])
        check = Check(model, (6, 4), num_samples=4, max_batch=3)
        reads: list[int] = []
        read = LeanDecoder._forward

        def counted(self: LeanDecoder, unread: Sequence[Response]) -> Any:
            reads.extend(response.prompt_index for response in unread)
            return read(self, unread)

        monkeypatch.setattr(LeanDecoder, "_forward", counted)
        check.admit(0, 3, splits=True)
        check.steps(1)
        check.keep()
        check.admit(3, 6, splits=True)
        check.steps(1)
        check.keep(0)
        check.admit(6, 8)
        check.steps(1)
        assert reads == [0, 1]


def test_long_prompts_are_read_in_several_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "PREFILL_TOKENS", 10)
    with torch.inference_mode():
        check = Check(build(FAMILIES["llama"]), (9, 5, 4, 4), num_samples=1, max_batch=4)
        check.admit(0, 4)
        check.steps(1)


def test_bfloat16_maps_come_near() -> None:
    with torch.inference_mode():
        model = build(FAMILIES["qwen3"])
        response = Response(prompt_index=0, prompt=prompt_of(0, 5), limit=4, key=0)

        def rounded(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
            return packed_linear(weight, bias, num_rows=1)

        logits = []
        for maps in (float32_map, rounded):
            decoder = LeanDecoder(model, maps, [response], 1, 1)
            decoder.admit([response], None)
            logits.append(decoder.step(torch.tensor([3])))
        gap = (logits[0] - logits[1]).abs().max() / logits[0].abs().max()
        assert 1e-5 < gap < 0.05


def test_what_is_not_known_exactly_is_left_alone() -> None:
    def named(config: PreTrainedConfig, change: Callable[[Any], object] = lambda _: None) -> str:
        model = build(config)
        change(model)
        return obstacle(model) or "none"

    llama = FAMILIES["llama"]

    class OtherLinear(nn.Linear):
        pass

    def replace(model: Any) -> None:
        model.model.layers[1].mlp.up_proj = OtherLinear(32, 48)

    def patch(model: Any) -> None:
        model.model.norm.forward = lambda hidden: hidden

    def hook(model: Any) -> None:
        model.model.layers[0].register_forward_hook(lambda *_: None)

    window = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}
    dynamic = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 2.0}
    assert named(llama) == "none"
    assert "llama, qwen2, qwen3, not gpt2" in named(GPT2Config(n_layer=1, n_embd=8, n_head=1))
    assert "model.layers.1.mlp.up_proj is a OtherLinear" in named(llama, replace)
    assert "model.norm" in named(llama, patch)
    assert "hooks are registered on model.layers.0" in named(llama, hook)
    assert "sliding-window layers" in named(Qwen2Config(**SIZES, **window))
    assert "rotations of type dynamic" in named(LlamaConfig(**SIZES, rope_parameters=dynamic))
    assert "weights in torch.bfloat16" in named(llama, lambda model: model.bfloat16())
    assert "act_fn" in named(LlamaConfig(**SIZES, hidden_act="gelu"))
