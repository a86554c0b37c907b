"""The precision responses are sampled in: the trainer's own, or bfloat16 where this machine gains
by it. Measured at the model's shapes, never told by the processor's name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from transformers import PreTrainedModel

from gspo.engines.packed import Rates, measure_rates
from gspo.recipes.schema import Recipe


@dataclass(frozen=True, slots=True)
class SamplingPrecision:
    """dtype: for the engine. text: one line that says what was decided and why."""

    dtype: Literal["model", "bfloat16"]
    rates: Rates
    text: str

    def evidence(self) -> dict[str, Any]:
        """What the run folder keeps of it."""
        return {"dtype": self.dtype, "gflops": asdict(self.rates), "text": self.text}


def sampling_precision(recipe: Recipe, model: PreTrainedModel) -> SamplingPrecision | None:
    """What engine.dtype comes to on this machine; None where the recipe asks for nothing."""
    if recipe.engine.dtype == "model":
        return None
    config = model.config.get_text_config(decoder=True)
    hidden = config.hidden_size
    intermediate = getattr(config, "intermediate_size", None) or 4 * hidden
    num_rows = min(recipe.engine.max_batch, recipe.rollout.prompts * recipe.rollout.group)
    rates = measure_rates(hidden, intermediate, num_rows)
    measured = (
        f"{num_rows} rows by {hidden} x {intermediate}: {rates.bfloat16:.0f} GFLOP/s in bfloat16, "
        f"{rates.float32:.0f} in float32"
    )
    if rates.bfloat16_pays:
        text = f"sampling in bfloat16 ({measured}); its log-probs are never old log-probs"
        return SamplingPrecision("bfloat16", rates, text)
    text = f"engine.dtype is bfloat16, which gains too little here ({measured}): sampling in the model's precision"
    return SamplingPrecision("model", rates, text)
