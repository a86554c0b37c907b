"""What the parts hand to one another. Dimensions: P prompts in a step, G responses per prompt,
S responses, N response tokens trained on, T tokens, L one sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.segments import Segments

Finish = Literal["stop", "length", "failed"]

#: Relative: rewards closer than this are one reward. Above float64's rounding, which differs with
#: the order of a sum, and below any difference that a verifier means.
EQUAL_REWARDS = 1e-8

#: Rewards beyond this have squares that no float64 holds with its sums.
LARGEST_REWARD = 1e100


@dataclass(frozen=True, slots=True)
class Prompt:
    """One task. `ids` are what engine and trainer both see; `columns` are the data's own extras."""

    id: str
    text: str
    ids: Sequence[int]
    answer: Any = None
    source: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reward, or the reason why there is none. A broken verifier is not a wrong answer.

    >>> Verdict.failed("worker killed after 2 s").reward is None
    True
    """

    reward: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    failure: str | None = None

    @classmethod
    def failed(cls, reason: str) -> Verdict:
        """No reward: the response leaves baseline and denominator."""
        return cls(reward=None, failure=reason)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled response. Ids are the sampled ones, never decoded and re-encoded.

    response_ids, trained, engine_logp: one entry a response token, the sampled end token included.
    trained: False on tokens the environment wrote. engine_logp: nats, at the sampling temperature;
    None where the engine had none. finish "length" means truncated, "failed" an aborted request.
    version: the weights it was sampled with, stamped when the request was sent.
    """

    prompt_ids: Sequence[int]
    response_ids: Sequence[int]
    trained: Sequence[bool]
    engine_logp: Sequence[float | None]
    text: str
    finish: Finish
    version: int
    kept_mass: Sequence[float] | None = None
    verdict: Verdict | None = None

    def judged(self, verdict: Verdict) -> Rollout:
        """The same response with its verdict."""
        return replace(self, verdict=verdict)

    @property
    def reward(self) -> float | None:
        """None when not judged or failed."""
        return self.verdict.reward if self.verdict else None


@dataclass(frozen=True, slots=True)
class Group:
    """The G responses to one prompt."""

    prompt: Prompt
    rollouts: Sequence[Rollout]

    @property
    def rewards(self) -> list[float]:
        """Rewards of the scored responses."""
        return [r.reward for r in self.rollouts if r.reward is not None]

    @property
    def informative(self) -> bool:
        """Its scored rewards differ, so some advantage is not zero."""
        return rewards_differ(self.rewards)


def rewards_differ(rewards: Sequence[float | int]) -> bool:
    """The largest and smallest differ by more than rounding: relative to the larger, EQUAL_REWARDS.

    >>> rewards_differ([1.0, 1.0, 1.0 + 1e-9]), rewards_differ([0.0, 0.95, 0.95])
    (False, True)
    """
    return len(rewards) > 1 and not math.isclose(
        max(rewards), min(rewards), rel_tol=EQUAL_REWARDS, abs_tol=0.0
    )


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """S sequences (prompt and response), one after another in T tokens, with what training needs.

    input_ids, positions [T]; sequence_lengths [S] sums to T. target [N]: index in T of each
    trained token; its log-prob is predicted at target - 1. segments: the N trained tokens by
    response. Log-probs [N] are float32 nats at `temperature`. advantage: [S], or [N] for
    per-token advantages. group [S]: which prompt, as a number. version [S]: of the weights.
    """

    input_ids: Int[Tensor, "T"]
    positions: Int[Tensor, "T"]
    sequence_lengths: Int[Tensor, "S"]
    target: Int[Tensor, "N"]
    segments: Segments
    engine_logp: Float[Tensor, "N"]
    advantage: Float[Tensor, "S"] | Float[Tensor, "N"]
    reward: Float[Tensor, "S"]
    group: Int[Tensor, "S"]
    version: Int[Tensor, "S"]
    truncated: Bool[Tensor, "S"]
    temperature: float
    old_logp: Float[Tensor, "N"] | None = None
    ref_logp: Float[Tensor, "N"] | None = None

    @property
    def num_responses(self) -> int:
        """S."""
        return self.sequence_lengths.numel()

    @property
    def num_tokens(self) -> int:
        """N, trained response tokens."""
        return self.target.numel()

    def tokens_of(self, rows: Int[Tensor, "R"]) -> Int[Tensor, "M"]:
        """Which of the N trained tokens are these responses', in this order."""
        return _tokens_of(rows, self.segments.lengths)

    def select(self, rows: Int[Tensor, "R"]) -> RolloutBatch:
        """The batch of these responses, in this order; the same tokens, nothing recomputed."""
        keep_N = self.tokens_of(rows)
        keep_T = _tokens_of(rows, self.sequence_lengths)
        lengths = self.sequence_lengths[rows]
        shift_S = (lengths.cumsum(0) - lengths) - (
            self.sequence_lengths.cumsum(0) - self.sequence_lengths
        )[rows]
        segments = Segments.from_lengths(self.segments.lengths[rows])
        per_token = self.advantage.shape[0] == self.num_tokens != self.num_responses
        return replace(
            self,
            input_ids=self.input_ids[keep_T],
            positions=self.positions[keep_T],
            sequence_lengths=lengths,
            target=self.target[keep_N] + segments.spread(shift_S),
            segments=segments,
            engine_logp=self.engine_logp[keep_N],
            advantage=self.advantage[keep_N if per_token else rows],
            reward=self.reward[rows],
            group=self.group[rows],
            version=self.version[rows],
            truncated=self.truncated[rows],
            old_logp=None if self.old_logp is None else self.old_logp[keep_N],
            ref_logp=None if self.ref_logp is None else self.ref_logp[keep_N],
        )

    def with_old_logp(self, old_logp: Float[Tensor, "N"]) -> RolloutBatch:
        """The same batch with the start-of-step log-probs filled in."""
        return replace(self, old_logp=old_logp)


def _tokens_of(rows: Int[Tensor, "R"], lengths: Int[Tensor, "S"]) -> Int[Tensor, "M"]:
    """Positions of the tokens of these rows, rows in the given order."""
    starts = (lengths.cumsum(0) - lengths)[rows]
    segments = Segments.from_lengths(lengths[rows])
    first = lengths[rows].cumsum(0) - lengths[rows]
    within = torch.arange(segments.num_tokens, device=lengths.device) - segments.spread(first)
    return segments.spread(starts) + within


@dataclass(frozen=True, slots=True)
class Surrogate:
    """What an objective returns: undivided losses, and what it did to each unit.

    loss [S]: to be minimised; sum it and divide by the objective's D. Everything else is
    detached. log_ratio: [S] for sequence objectives, [N] for token objectives, nats, as measured,
    before any bound. cut_low, cut_high, bounded: shape of log_ratio. cut: the clip made the
    unit's gradient zero; bounded: the log-ratio was held at MAX_LOG_RATIO, and no gradient flows
    through it. weight [N]: the number that multiplies each token's grad log pi, so
    d loss_i / d logp_t = -weight_t.
    """

    loss: Float[Tensor, "S"]
    log_ratio: Float[Tensor, "S"] | Float[Tensor, "N"]
    cut_low: Bool[Tensor, "S"] | Bool[Tensor, "N"]
    cut_high: Bool[Tensor, "S"] | Bool[Tensor, "N"]
    bounded: Bool[Tensor, "S"] | Bool[Tensor, "N"]
    weight: Float[Tensor, "N"]
    segments: Segments


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters by name, and the version that `Rollout.version` will carry."""

    version: int
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something a person should look at: the rule, its evidence, likely cause, what to try."""

    step: int
    rule: str
    value: float | None
    threshold: float | None
    cause: str
    advice: str
