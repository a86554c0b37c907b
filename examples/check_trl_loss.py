"""TRL's own loss on the conformance kit: what `GRPOTrainer._compute_loss` falls into.

    pip install trl==1.16.0
    python examples/check_trl_loss.py

The trainer is made without its constructor, which would load a model; the log-probs are the kit's.
"""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from gspo.testing import check_objective

ONE = SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, **_: x)


def trl_loss(trainer_class: Any, level: str, loss_type: str, low: float, high: float) -> Any:
    """A padded loss from a trainer with these settings, and else with TRL's defaults."""
    trainer = object.__new__(trainer_class)
    has = vars(trainer)
    has.update(importance_sampling_level=level, loss_type=loss_type, epsilon_low=low)
    has.update(epsilon_high=high, beta=0.0, top_entropy_quantile=1.0, use_vllm=False)
    has.update(off_policy_mask_threshold=None, aux_loss_enabled=False, _entropy_bonus_enabled=False)
    has.update(accelerator=ONE, current_gradient_accumulation_steps=1)
    has.update(model=SimpleNamespace(training=True), _metrics={"train": defaultdict(list)})
    has.update(args=SimpleNamespace(delta=None, steps_per_generation=1))

    def counted(logp: Tensor, old: Tensor, adv: Tensor, mask: Tensor, num_tokens: int) -> Tensor:
        scored = (logp, torch.zeros_like(logp), None)  # log-probs, entropies, no router's loss
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: scored
        ids, inputs = mask.long(), {"advantages": adv, "old_per_token_logps": old}
        inputs |= {"prompt_ids": ids[:, :1], "prompt_mask": ids[:, :1], "completion_ids": ids}
        inputs |= {"completion_mask": ids, "num_items_in_batch": torch.tensor(num_tokens)}
        return trainer._compute_loss(None, inputs)

    def averaged(logp: Tensor, old: Tensor, adv: Tensor, mask: Tensor) -> Tensor:
        return counted(logp, old, adv, mask, 1)

    return counted if loss_type == "dapo" else averaged  # only dapo divides by a whole batch's


if __name__ == "__main__":
    try:
        trainer_class = import_module("trl").GRPOTrainer
    except ModuleNotFoundError as error:
        print(f"nothing was checked: {error}. Where it may be: pip install trl==1.16.0")
        raise SystemExit from error
    gspo, dapo = ("gspo", 3e-4, 4e-4), ("dapo", 0.2, 0.2)
    tried = (("sequence", "grpo", *gspo), ("sequence", "dapo", *gspo), ("token", "dapo", *dapo))
    for level, loss_type, objective, low, high in tried:
        loss = trl_loss(trainer_class, level, loss_type, low, high)
        print(f'\nTRL, importance_sampling_level="{level}", loss_type="{loss_type}"')
        print(check_objective(loss, objective, low=low, high=high))
