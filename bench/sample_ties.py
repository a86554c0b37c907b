"""How often the batch shape changes a sample: the same seed, decoded in batches of other sizes.

    python bench/sample_ties.py [MODEL_FOLDER] [--prompts 16] [--tokens 128]

A token's random number depends on seed, step, prompt, sample and position alone. Log-probs differ
in their last bits between batch shapes, and a number that falls between two such sums takes another
token; all that follows it differs too. Without MODEL_FOLDER: the 5M shape, random weights.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from transformers import AutoTokenizer

from bench.versus.inputs import write_model
from bench.versus.shapes import SMALL
from gspo.engines.base import Sampling
from gspo.engines.local import LocalEngine
from gspo.policy.model import load_model
from gspo.types import Prompt

BATCHES = (64, 32, 8, 1)
SAMPLES = 8
PROMPT_TOKENS = 16


def sampled(folder: Path, prompts: list[Prompt], max_batch: int, tokens: int) -> list[list[int]]:
    """Ids of every response, at most max_batch decoded together."""
    model = load_model(folder, torch.float32)
    decode = AutoTokenizer.from_pretrained(folder).decode
    engine = LocalEngine(model, decode, [], max_batch)
    settings = Sampling(num_samples=SAMPLES, max_tokens=tokens, seed=0, step=1)
    return [
        list(rollout.response_ids)
        for group in engine.generate(prompts, settings)
        for rollout in group.rollouts
    ]


def first_difference(one: list[int], other: list[int]) -> int | None:
    """Position of the first token that differs."""
    pairs = zip(one, other, strict=True)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), None)


def main() -> None:
    """Print one line a batch size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.model or Path(scratch)
        if given.model is None:
            write_model(SMALL, folder)
        vocabulary = load_model(folder, torch.float32).config.vocab_size
        draw = torch.Generator().manual_seed(0)
        prompts = [
            Prompt(
                f"p{i}", "", torch.randint(vocabulary, (PROMPT_TOKENS,), generator=draw).tolist()
            )
            for i in range(given.prompts)
        ]
        whole = given.prompts * SAMPLES
        wanted = sampled(folder, prompts, whole, given.tokens)
        for max_batch in BATCHES:
            found = sampled(folder, prompts, max_batch, given.tokens)
            splits = [first_difference(a, b) for a, b in zip(wanted, found, strict=True)]
            compared = sum(given.tokens if at is None else at + 1 for at in splits)
            ties = sum(at is not None for at in splits)
            print(
                f"batch {max_batch} against {whole}: {whole - ties} of {whole} responses equal; "
                f"{ties} ties in {compared:,} tokens",
                flush=True,
            )


if __name__ == "__main__":
    main()
