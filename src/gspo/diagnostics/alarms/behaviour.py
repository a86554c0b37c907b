"""Rules about what the responses become: less varied, longer or shorter, cut off."""

from __future__ import annotations

from gspo.diagnostics.alarms.history import History
from gspo.diagnostics.alarms.rule import SURE, Finding, Rule

BLOCK_STEPS = 5  # steps in a mean
DRIFT_STEPS = 20  # between the two means: a drift is slow beside one step, fast beside a run

ENTROPY_SHARE = 0.1  # of the start: at a tenth hardly a token is still drawn at random
SOLVED_SHARE = 0.9  # of the largest reward: above it certainty is the goal, not a fault

LENGTH_FACTOR = 1.5  # powers of two are the length buckets; this is half a bucket, well past noise
TRUNCATED_SHARE = 0.2  # one reward in five is then given to an unfinished answer


def _entropy_collapse(history: History) -> Finding | None:
    window = history.window(BLOCK_STEPS + DRIFT_STEPS)
    if not window:
        return None
    start = history.mean("policy/entropy", BLOCK_STEPS, skip=len(history.steps) - BLOCK_STEPS)
    now = history.mean("policy/entropy", BLOCK_STEPS)
    reward = history.mean("reward/mean", BLOCK_STEPS)
    change = history.change("reward/mean", BLOCK_STEPS, DRIFT_STEPS)
    largest = [values["reward/max"] for values in window if "reward/max" in values]
    if start is None or now is None or reward is None or change is None or not largest:
        return None
    stands_still = change.difference <= SURE * change.error
    return Finding(
        value=now,
        threshold=ENTROPY_SHARE * start,
        raised=now < ENTROPY_SHARE * start
        and stands_still
        and reward < SOLVED_SHARE * max(largest),
        detail=f"It began at {start:.3g} nats a token; the reward is {reward:.3g}, {change.difference:+.3g} in {DRIFT_STEPS} steps.",
    )


def _length_drift(history: History) -> Finding | None:
    before = history.mean("length/mean", BLOCK_STEPS, skip=DRIFT_STEPS)
    now = history.mean("length/mean", BLOCK_STEPS)
    change = history.change("reward/mean", BLOCK_STEPS, DRIFT_STEPS)
    if before is None or now is None or change is None:
        return None
    factor = now / before
    stands_still = change.difference <= SURE * change.error
    return Finding(
        value=factor,
        threshold=LENGTH_FACTOR if factor > 1 else 1 / LENGTH_FACTOR,
        raised=not 1 / LENGTH_FACTOR <= factor <= LENGTH_FACTOR and stands_still,
        detail=f"From {before:.3g} to {now:.3g} tokens in {DRIFT_STEPS} steps, reward {change.difference:+.3g}.",
    )


def _truncation(history: History) -> Finding | None:
    share = history.mean("length/truncated_share", BLOCK_STEPS)
    if share is None:
        return None
    longest = [v["length/max"] for v in history.window(BLOCK_STEPS) if "length/max" in v]
    said = f"The limit is {max(longest):.0f} tokens." if longest else ""
    return Finding(share, TRUNCATED_SHARE, share > TRUNCATED_SHARE, said)


RULES = (
    Rule(
        name="entropy_collapse",
        find=_entropy_collapse,
        metrics=("policy/entropy", "reward/mean", "reward/std", "reward/max", "step/responses"),
        formula=f"mean of `policy/entropy` over {BLOCK_STEPS} steps < {ENTROPY_SHARE:g} x that of the first {BLOCK_STEPS}, while `reward/mean` has not risen in {DRIFT_STEPS} steps (by {SURE:g} standard errors) and is below {SOLVED_SHARE:g} x the largest reward of these steps",
        evidence=f"the entropy, against {ENTROPY_SHARE:g} x its start",
        cause="The policy has become certain before it was right: it samples the same answers, and nothing new can be rewarded.",
        advice="go back to an earlier checkpoint; use a wider objective.clip.high, a lower optimizer.lr, or more varied prompts.",
    ),
    Rule(
        name="length_drift",
        find=_length_drift,
        metrics=("length/mean", "reward/mean", "reward/std", "step/responses"),
        formula=f"`length/mean` (means of {BLOCK_STEPS} steps) changes by a factor above {LENGTH_FACTOR:g} either way within {DRIFT_STEPS} steps, while `reward/mean` does not rise by {SURE:g} standard errors",
        evidence=f"the factor, against {LENGTH_FACTOR:g} or 1 / {LENGTH_FACTOR:g}",
        cause="Length itself is rewarded: by a grader that likes long or short answers, by a denominator that counts tokens, or by a loop that never ends.",
        advice="compare `length/mean_correct` with `length/mean_wrong`, read some responses, and use an objective that weighs responses alike.",
    ),
    Rule(
        name="truncation",
        find=_truncation,
        metrics=("length/truncated_share", "length/max"),
        formula=f"mean of `length/truncated_share` over {BLOCK_STEPS} steps > {TRUNCATED_SHARE:g}",
        evidence="the share of responses stopped by the length limit",
        cause="The limit is below what the answers need, or an end token is missing from the engine's list.",
        advice="raise rollout.max_tokens (and model.max_positions); if all are cut off, check the tokenizer's end token.",
    ),
)
