"""From judged groups to a RolloutBatch, from a RolloutBatch to right-padded micro-batches.

A response leaves here, before anything is counted, or stays to the end: what is dropped is in
neither baseline nor denominator, and a zero advantage is no reason to drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.errors import DataError, RecipeError
from gspo.segments import Segments
from gspo.types import Group, Prompt, Rollout, RolloutBatch


@dataclass(frozen=True, slots=True)
class Dropped:
    """A response that is not trained on: which one, by group number and sample, and why."""

    group: int
    sample: int
    prompt_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Packed:
    """The batch, (group number, sample) of each of its rows, and what was left out."""

    batch: RolloutBatch
    kept: list[tuple[int, int]]
    dropped: list[Dropped]


def pack_rollouts(
    groups: Sequence[Group], advantages: Float[Tensor, "R"], *, temperature: float
) -> Packed:
    """One row a response, groups in order, samples in order.

    advantages: one for each of the R responses of all groups, dropped ones included (their value
    is ignored). temperature: the one they were sampled at. A missing engine log-prob becomes NaN.

    Raises:
        DataError: a response was not judged, or its lists differ in length; it names the response.
    """
    if not (temperature > 0 and math.isfinite(temperature)):
        raise RecipeError(
            f"temperature is {temperature!r}; training needs the finite sampling temperature above"
            " 0 (greedy responses have no log-prob to train on)"
        )
    members = [(g, i, r) for g, group in enumerate(groups) for i, r in enumerate(group.rollouts)]
    if len(members) != advantages.numel():
        raise DataError(
            f"{advantages.numel()} advantages for {len(members)} responses; wanted one for each"
        )
    rows, kept, dropped = [], [], []
    for row, (g, sample, rollout) in enumerate(members):
        prompt = groups[g].prompt
        reason = _why_dropped(prompt, sample, rollout)
        if reason:
            dropped.append(Dropped(g, sample, prompt.id, reason))
        else:
            rows.append(row)
            kept.append((g, sample))
    rollouts = [members[row][2] for row in rows]
    batch = _batch(rollouts, [g for g, _ in kept], advantages[rows], temperature)
    return Packed(batch, kept, dropped)


def _why_dropped(prompt: Prompt, sample: int, rollout: Rollout) -> str | None:
    where = f"response {sample} of prompt {prompt.id!r}"
    sizes = len(rollout.response_ids), len(rollout.trained), len(rollout.engine_logp)
    if len(set(sizes)) > 1:
        raise DataError(
            f"{where} has {sizes[0]} token ids, {sizes[1]} trained flags and {sizes[2]} engine"
            " log-probs; wanted one of each for every token (None where the engine gave none)"
        )
    if rollout.finish == "failed":
        return "request failed"
    if not rollout.response_ids:
        return "empty response"
    if not any(rollout.trained):
        return "no trained token"
    if rollout.verdict is None:
        raise DataError(f"{where} was not judged; judge every response before packing")
    if rollout.verdict.reward is None:
        return f"verifier failed: {rollout.verdict.failure}"
    if not rollout.prompt_ids:
        raise DataError(
            f"{where} has no prompt tokens, so nothing predicts its first token; start the prompt"
            " with a begin token"
        )
    return None


def _batch(
    rollouts: Sequence[Rollout], group: list[int], advantage: Tensor, temperature: float
) -> RolloutBatch:
    sequences = [[*r.prompt_ids, *r.response_ids] for r in rollouts]
    trained = [[False] * len(r.prompt_ids) + list(r.trained) for r in rollouts]
    engine_logp = [
        math.nan if logp is None else logp
        for r in rollouts
        for logp, use in zip(r.engine_logp, r.trained, strict=True)
        if use
    ]
    lengths_S = torch.tensor([len(ids) for ids in sequences], dtype=torch.int64)
    in_sequence = Segments.from_lengths(lengths_S)
    starts_S = lengths_S.cumsum(0) - lengths_S
    return RolloutBatch(
        input_ids=torch.tensor(list(chain(*sequences)), dtype=torch.int64),
        positions=torch.arange(in_sequence.num_tokens) - in_sequence.spread(starts_S),
        sequence_lengths=lengths_S,
        target=torch.tensor(list(chain(*trained)), dtype=torch.bool).nonzero().squeeze(1),
        segments=Segments.from_lengths([sum(flags) for flags in trained]),
        engine_logp=torch.tensor(engine_logp, dtype=torch.float32),
        advantage=advantage.float(),
        reward=torch.tensor([r.reward for r in rollouts], dtype=torch.float32),
        group=torch.tensor(group, dtype=torch.int64),
        version=torch.tensor([r.version for r in rollouts], dtype=torch.int64),
        truncated=torch.tensor([r.finish == "length" for r in rollouts], dtype=torch.bool),
        temperature=temperature,
    )


def microbatches(batch: RolloutBatch, max_tokens: int) -> list[Int[Tensor, "_"]]:
    """Rows of each micro-batch: similar lengths together, padded tokens (rows x longest) at most
    max_tokens. Longest first, so that a budget too large for the memory fails at once.

    Raises:
        RecipeError: one sequence alone is longer than the budget.
    """
    rows = batch.sequence_lengths.argsort(descending=True, stable=True)
    lengths = batch.sequence_lengths[rows].tolist()
    check_budget(lengths[0] if lengths else 0, max_tokens)
    cuts, start = [], 0
    while start < len(lengths):
        stop = start + max_tokens // max(lengths[start], 1)
        cuts.append(rows[start:stop])
        start = stop
    return cuts


def check_budget(longest: int, max_tokens: int) -> None:
    """RecipeError where the longest sequence alone is beyond a micro-batch's budget."""
    if longest > max_tokens:
        raise RecipeError(
            f"a prompt and response of {longest} tokens do not fit the micro-batch budget of"
            f" {max_tokens} tokens: set trainer.max_tokens_per_microbatch to {longest} or more,"
            " or limit the response length"
        )


def in_batch_order(
    batch: RolloutBatch, parts: Iterable[tuple[Int[Tensor, "_"], Float[Tensor, "_"]]]
) -> Float[Tensor, "N"]:
    """Token values of micro-batches, by the rows they hold, in the batch's order; NaN for rows
    that are in none."""
    values_N = torch.full((batch.num_tokens,), math.nan)
    for rows, values in parts:
        values_N[batch.tokens_of(rows)] = values
    return values_N


@dataclass(frozen=True, slots=True)
class Padded:
    """B sequences as rows, padding on the right, where no causal model can see it from a token:
    so there is no attention mask. predicts: the positions whose logits predict a trained token,
    row by row in the order of the batch's N."""

    input_ids: Int[Tensor, "B L"]
    positions: Int[Tensor, "B L"]
    predicts: Bool[Tensor, "B L"]

    @classmethod
    def of(cls, batch: RolloutBatch, pad_id: int = 0) -> Padded:
        """Padding comes from the lengths, never from token values; its positions count on."""
        lengths = batch.sequence_lengths
        starts = lengths.cumsum(0) - lengths
        if bool((batch.target.diff() <= 0).any()) or bool(torch.isin(starts, batch.target).any()):
            raise DataError(
                "targets must ascend and none may be the first token of its sequence, which nothing predicts"
            )
        column = torch.arange(int(lengths.max()))
        real = column < lengths[:, None]
        input_ids = torch.full(real.shape, pad_id)
        input_ids[real] = batch.input_ids
        positions = column.repeat(lengths.numel(), 1)
        positions[real] = batch.positions
        predicts = torch.zeros_like(real)
        predicts.view(-1)[real.flatten().nonzero().squeeze(1)[batch.target - 1]] = True
        return cls(input_ids, positions, predicts)
