"""Rules about the ratio and its clip: does the trust region hold anything, and whom?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gspo.diagnostics.alarms.history import ALIKE, History, mean_error_of
from gspo.diagnostics.alarms.rule import SURE, Finding, Rule
from gspo.diagnostics.calibration import CEILING, PROVISIONAL_CLIP, noise_floor

BLOCK_STEPS = 3  # steps in a mean of what should never last
SEEN_STEPS = 10  # steps over which responses of one length are counted

CUT_SHARE = 0.5  # above it the clip, not the advantage, decides what is learnt

NEVER_STEPS = 20
#: Of none in n, the true share is below 3 / n with 95 % confidence: 150 rule out a share of 0.02,
#: below which the clip holds nothing.
NEVER_RESPONSES = 150
NEVER_SHARE = 1e-3  # "none" in runs with thousands of responses

SHORT_FACTOR = 3.0  # token noise alone gives a spread sqrt(2) larger for half the length
SHORT_RESPONSES = 50  # of a length: fewer give no share worth comparing

TOP1_SHARE = 0.9  # one token is then the response's ratio, and its length only divides it
TOP1_STEPS = 5
TOP1_LENGTH = 10  # tokens on average; of fewer one has a large share by itself

GAP_SHARE = 1 / 3  # of the narrower side of the band: the floor of `clip: auto` is 3 gap means


def _everything_cut(history: History) -> Finding | None:
    share = history.mean("clip/cut_share_positive", BLOCK_STEPS)
    if share is None:
        return None
    return Finding(share, CUT_SHARE, share > CUT_SHARE, f"Mean of {BLOCK_STEPS} steps.")


def _nothing_cut(history: History) -> Finding | None:
    window = history.window(NEVER_STEPS)
    # While `clip: auto` measures, under a band that is meant to cut nothing, the rule waits. Only
    # a sequence objective has a share outside the band.
    cuts = [
        (values["clip/cut_share"], sum(lengths_of(values).values()))
        for values in window
        if {"clip/cut_share", "clip/outside_share"} <= values.keys()
    ]
    responses = sum(count for _, count in cuts)
    if responses < NEVER_RESPONSES or any(measuring(values) for values in window):
        return None
    share = sum(share * count for share, count in cuts) / responses
    return Finding(
        value=share,
        threshold=NEVER_SHARE,
        raised=share < NEVER_SHARE,
        detail=f"Of {responses:.0f} responses in {NEVER_STEPS} steps.",
    )


def measuring(values: Mapping[str, float]) -> bool:
    """The band in force is the one under which `clip: auto` measures."""
    high = values.get("clip/high")
    return high is not None and math.isclose(high, PROVISIONAL_CLIP.high, rel_tol=1e-6)


def lengths_of(values: Mapping[str, float]) -> dict[str, float]:
    """Bucket -> off-policy responses with an advantage."""
    prefix = "log_s/count/len_"
    return {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}


def _short_cut(history: History) -> Finding | None:
    cut: dict[str, float] = {}
    seen: dict[str, float] = {}
    for values in history.window(SEEN_STEPS):
        for bucket, count in lengths_of(values).items():
            share = values.get(f"clip/cut_share/len_{bucket}")
            if share is not None:
                seen[bucket] = seen.get(bucket, 0.0) + count
                cut[bucket] = cut.get(bucket, 0.0) + share * count
    buckets = [bucket for bucket, count in seen.items() if count >= SHORT_RESPONSES]
    if len(buckets) < 2:
        return None
    shortest, *_, longest = sorted(buckets, key=lambda bucket: int(bucket.split("-")[0]))
    short, long = (cut[bucket] / seen[bucket] for bucket in (shortest, longest))
    error = math.sqrt(
        short * (1 - short) * ALIKE / seen[shortest] + long * (1 - long) * ALIKE / seen[longest]
    )
    return Finding(
        value=short,
        threshold=SHORT_FACTOR * long,
        raised=short > SHORT_FACTOR * long and short - long > SURE * error,
        detail=f"Cut: {short:.1%} of responses of {shortest} tokens, {long:.1%} of {longest}.",
    )


def _few_tokens(history: History) -> Finding | None:
    share = history.mean("attribution/top1_share", TOP1_STEPS)
    length = history.mean("length/mean", TOP1_STEPS)
    if share is None or length is None or length < TOP1_LENGTH:
        return None
    return Finding(share, TOP1_SHARE, share > TOP1_SHARE, f"Of {length:.0f} tokens on average.")


def _engine_bias(history: History) -> Finding | None:
    window = history.window(BLOCK_STEPS)
    mean = history.mean("gap/log_s_mean", BLOCK_STEPS)
    error = mean_error_of(window, "gap/log_s_mean")
    if mean is None or error is None or not {"clip/low", "clip/high"} <= window[-1].keys():
        return None
    low, high = window[-1]["clip/low"], window[-1]["clip/high"]
    narrower = min(-math.log1p(-low) if low < 1 else math.inf, math.log1p(high))
    return Finding(
        value=abs(mean),
        threshold=GAP_SHARE * narrower,
        raised=abs(mean) > GAP_SHARE * narrower and abs(mean) > SURE * error,
        detail=f"The gap's mean is {mean:.3g} +- {error:.2g} nats a token, the band's narrower side {narrower:.3g}.",
    )


def _ratio_explosion(history: History) -> Finding | None:
    values = history.steps[-1][1] if history.steps else {}
    if bounded := values.get("ratio/bounded"):
        return Finding(bounded, 0.0, True, "Units whose log-ratio passed 10 nats.")
    spread = values.get("log_s/std")
    if spread is None:
        return None
    return Finding(spread, CEILING, spread > CEILING, "Standard deviation of log s.")


def _at_ceiling(history: History) -> Finding | None:
    fit = _fit(history)
    if fit is None:
        return None
    side, distance = max(_distances(fit).items(), key=lambda item: item[1])
    raised = "ceiling" in (fit["low_held"], fit["high_held"])
    return Finding(distance, CEILING, raised, f"On the {side} side.")


def _against_advantage(history: History) -> Finding | None:
    fit = _fit(history)
    if fit is None:
        return None
    side, distance = min(_distances(fit).items(), key=lambda item: item[1])
    sign = "A > 0" if side == "high" else "A < 0"
    return Finding(
        value=distance,
        threshold=-noise_floor(),
        raised=distance < -noise_floor(),
        detail=f"On the {side} side, of responses with {sign}.",
    )


def _fit(history: History) -> Mapping[str, Any] | None:
    """What `clip: auto` fitted in the newest step: the event's evidence."""
    return next((event for event in history.events_now() if "low_held" in event), None)


def _distances(fit: Mapping[str, Any]) -> dict[str, float]:
    """Of the quantiles from ratio 1, along the advantage; below 0 is against it."""
    return {"high": math.expm1(fit["high_quantile"]), "low": -math.expm1(fit["low_quantile"])}


RULES = (
    Rule(
        name="everything_cut",
        find=_everything_cut,
        metrics=("clip/cut_share_positive",),
        formula=f"mean of `clip/cut_share_positive` over {BLOCK_STEPS} steps > {CUT_SHARE:g}",
        evidence="the share of units with A > 0 that were cut, from the second minibatch on",
        cause="The clip range is far below what one update moves: most of a step is thrown away after the first minibatch.",
        advice="use objective.clip=auto, a lower optimizer.lr, or fewer trainer.minibatches.",
    ),
    Rule(
        name="nothing_cut",
        find=_nothing_cut,
        metrics=("clip/cut_share", "clip/outside_share", "clip/high", "log_s/count/len_{bucket}"),
        formula=f"`clip/cut_share` over {NEVER_STEPS} steps < {NEVER_SHARE:g}, of at least {NEVER_RESPONSES} responses; sequence objectives, after `clip: auto` has measured",
        evidence="the share of off-policy responses that were cut",
        cause="The clip range is far above what log s moves, as a token range such as 0.2 is: there is no trust region.",
        advice="use objective.clip=auto, or the range that 'gspo calibrate' gives for this run.",
    ),
    Rule(
        name="short_responses_cut",
        find=_short_cut,
        metrics=("clip/cut_share/len_{bucket}", "log_s/count/len_{bucket}"),
        formula=f"over {SEEN_STEPS} steps, cut share of the shortest length bucket > {SHORT_FACTOR:g} x that of the longest (buckets of {SHORT_RESPONSES} responses or more), and above it by more than {SURE:g} standard errors",
        evidence=f"the cut share of the shortest, against {SHORT_FACTOR:g} x that of the longest",
        cause="A mean over few tokens spreads more: a fixed band then cuts short responses and never holds long ones.",
        advice="use objective.clip={length_fair: {low, high}} with the numbers of 'gspo calibrate'.",
    ),
    Rule(
        name="few_tokens",
        find=_few_tokens,
        metrics=("attribution/top1_share", "length/mean"),
        formula=f"mean of `attribution/top1_share` over {TOP1_STEPS} steps > {TOP1_SHARE:g}, where `length/mean` is {TOP1_LENGTH} or more",
        evidence="the share of a response's log-ratios, by size, that one token carries",
        cause="One unlikely token decides the ratio of its response, and so whether all the others are cut.",
        advice="look which tokens they are: an end token, a number format, a token that the engine samples differently.",
    ),
    Rule(
        name="engine_bias",
        find=_engine_bias,
        metrics=(
            "gap/log_s_mean",
            "gap/log_s_std",
            "step/responses",
            "clip/low",
            "clip/high",
        ),
        formula=f"|mean of `gap/log_s_mean`| over {BLOCK_STEPS} steps > 1/3 of the narrower side of the band, and > {SURE:g} standard errors",
        evidence="the gap, against a third of the band, in nats a token",
        cause="Engine and trainer compute different log-probs: precision, temperature, template, a stale weight or another kernel.",
        advice="run 'gspo gap'; sample in float32, and never use the engine's log-probs as the old ones.",
    ),
    Rule(
        name="ratio_explosion",
        find=_ratio_explosion,
        metrics=("ratio/bounded", "log_s/std"),
        formula=f"`ratio/bounded` > 0, or `log_s/std` > {CEILING:g} nats, the widest clip range that is allowed",
        evidence="units held at 10 nats, against 0; else the spread of log s",
        cause="The policy left its rollouts within one step: a learning rate too high, or responses with a very unlikely token pushed down.",
        advice="lower optimizer.lr or optimizer.max_grad_norm, and look at log s of responses with A < 0.",
    ),
    Rule(
        name="clip_at_ceiling",
        find=_at_ceiling,
        metrics=(),
        formula=f"an event of `clip: auto` with low_held or high_held: ceiling, that is a measured distance above {CEILING:g}",
        evidence="the measured distance from ratio 1, against the ceiling",
        cause="Within one step the policy moves further than any range should allow; the ceiling holds it instead of the measured range.",
        advice="lower optimizer.lr, or use fewer trainer.minibatches, and measure again.",
        clear_steps=1,
    ),
    Rule(
        name="clip_against_advantage",
        find=_against_advantage,
        metrics=(),
        formula="an event of `clip: auto` in which the quantile that sets a side lies on the wrong side of 0, by more than float noise",
        evidence="the measured distance from ratio 1 along the advantage, against minus the noise floor",
        cause="What is rewarded becomes less likely: other responses' updates outweigh their own, as with a learning rate too high.",
        advice="lower optimizer.lr; check that reward and advantage have the sign you mean.",
        clear_steps=1,
    ),
)
