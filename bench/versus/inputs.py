"""What both sides are given: one model folder a shape, and one JSON file a workload.

The weights are random, so next tokens are close to evenly likely. That makes responses that end by
themselves simple: n of the V ids end a response, and its length is geometric with p = n / V.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from bench.versus.batches import recorded_batch
from bench.versus.shapes import PAD_ID, Shape
from bench.versus.workloads import Workload
from gspo.advantages import group_advantage
from gspo.trainer.minibatches import minibatch_rows

FIRST_WORD = 32  # ids below it pad or end, and stand in no prompt
SPECIAL = ("<pad>", "<eos>", "<unk>")  # ids 0, 1, 2; no other word holds one of them


def write_model(shape: Shape, folder: Path) -> None:
    """A Hugging Face folder with random weights, the same every time, and a tokenizer in which the
    word "t7" is token 7."""
    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = AutoConfig.for_model(shape.family, **shape.config())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    vocabulary = {f"t{number}": number for number in range(len(SPECIAL), shape.vocab)}
    vocabulary |= {word: number for number, word in enumerate(SPECIAL)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=SPECIAL[-1]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[PAD_ID],
        eos_token=SPECIAL[PAD_ID + 1],
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)


def write_inputs(workload: Workload, path: Path) -> None:
    """Prompts, recorded responses, rewards, advantages and who is in which minibatch."""
    draw = random.Random(0)
    rewards = group_rewards(workload)
    lengths = recorded_lengths(workload)
    given: dict[str, Any] = {
        "prompts": [_words(draw, workload, workload.prompt) for _ in range(workload.groups)],
        "responses": [_words(draw, workload, length) for length in lengths],
        "rewards": rewards,
        "advantages": group_advantage(rewards, group_numbers(workload)).tolist(),
        "end_ids": list(range(1, 1 + num_end_ids(workload))),
        "ends_by_itself": workload.kind in ("generate", "step") and workload.length_share < 1,
    }
    batch = recorded_batch(given, workload.samples)
    rows = minibatch_rows(batch, workload.minibatches, "group", seed=0, step=1)
    given["minibatches"] = [part.tolist() for part in rows]
    path.write_text(json.dumps(given))


def _words(draw: random.Random, workload: Workload, length: int) -> list[int]:
    return [draw.randrange(FIRST_WORD, workload.shape.vocab) for _ in range(length)]


def group_numbers(workload: Workload) -> list[int]:
    """The group of each response."""
    return [group for group in range(workload.groups) for _ in range(workload.samples)]


def group_rewards(workload: Workload) -> list[float]:
    """1 and 0 in turn; all 0 in the share z of the groups, spread evenly over them."""
    z = workload.zero_share
    rewards = []
    for group in range(workload.groups):
        equal = math.floor((group + 1) * z) > math.floor(group * z)
        rewards += [0.0 if equal else float(sample % 2) for sample in range(workload.samples)]
    return rewards


def recorded_lengths(workload: Workload) -> list[int]:
    """Evenly from the shortest to the longest so that mean over longest is the length share, in an
    order that has nothing to do with groups."""
    longest, count = workload.response, workload.batch
    shortest = max(round(longest * (2 * workload.length_share - 1)), 1)
    step = (longest - shortest) / max(count - 1, 1)
    lengths = [round(shortest + step * number) for number in range(count)]
    random.Random(1).shuffle(lengths)
    return lengths


def num_end_ids(workload: Workload) -> int:
    """How many ids end a response so that its mean length is the length share of its limit."""
    if workload.kind != "generate" or workload.length_share >= 1:
        return 1
    wanted = geometric_rate(workload.length_share) / workload.response
    return max(round(wanted * workload.shape.vocab), 1)


def geometric_rate(share: float) -> float:
    """x with (1 - e^-x) / x = share: ends per limit length that give this mean over limit."""
    low, high = 1e-9, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        if (1 - math.exp(-middle)) / middle > share:
            low = middle
        else:
            high = middle
    return low
