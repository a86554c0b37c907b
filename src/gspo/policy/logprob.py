"""Log-probs of the trained tokens, from the model's own logits.

The model's forward makes the logits, so soft-caps and scales are the model's. Rows that predict no
trained token are dropped before the head: a prompt costs no vocabulary-sized row.
"""

from __future__ import annotations

import inspect

from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from gspo.policy.packing import Padded
from gspo.types import RolloutBatch


def token_logp(
    logits: Float[Tensor, "N V"], token: Int[Tensor, "N"], temperature: float
) -> Float[Tensor, "N"]:
    """log softmax(logits / temperature) at each token, in float32 nats.

    Temperature divides logits, before the normaliser: logits [2, 1, 0], temperature 0.5, token 0
    is -0.14293, while dividing log-probs would give -0.81521. log_softmax takes the maximum out
    first, so a log-prob near 0 keeps its digits.
    """
    logp = (logits.float() / temperature).log_softmax(-1)
    return logp.gather(-1, token[:, None]).squeeze(-1)


def batch_logp(model: PreTrainedModel, batch: RolloutBatch) -> Float[Tensor, "N"]:
    """Log-prob of every trained token of one micro-batch at the batch's temperature, on the CPU
    in float32; differentiable where the caller allows gradients."""
    padded = Padded.of(batch)
    logits = _target_logits(model, padded)
    token = batch.input_ids[batch.target].to(logits.device)
    return token_logp(logits, token, batch.temperature).cpu()


def _target_logits(model: PreTrainedModel, padded: Padded) -> Float[Tensor, "N V"]:
    predicts = padded.predicts.to(model.device)
    inputs = {
        "input_ids": padded.input_ids.to(model.device),
        "position_ids": padded.positions.to(model.device),
        "use_cache": False,
    }
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        # A boolean mask selects before the head and gives one row for each true position.
        return model(**inputs, logits_to_keep=predicts).logits
    return model(**inputs).logits[predicts]
