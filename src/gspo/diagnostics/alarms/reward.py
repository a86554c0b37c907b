"""Rules about the reward: it collapses, it is gamed, most of it teaches nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from gspo.diagnostics.alarms.history import Change, History, change_of, error_of
from gspo.diagnostics.alarms.rule import SURE, Finding, Rule

COLLAPSE_STEPS = 10
COLLAPSE_SHARE = 0.5  # of the best: half is beyond any noise of prompts that differ in difficulty
#: Standard errors; more than SURE, for the best of ten is chosen after the fact.
COLLAPSE_SURE = 4.0

BLOCK_STEPS = 5  # steps in a mean: one step's prompts are too few, ten would see a change late
HACK_LAGS = (10, 20, 40)  # steps between the two means: fast changes and slow ones
#: Share of the training reward's rise. A strict grader that is only harder rises later, but it
#: rises; below a quarter most of the rise is what the strict grader does not count.
FLAT_SHARE = 0.25

NO_ANSWER_SHARE = 0.95  # of the responses: a reward that hardly any of them can earn
PART = "reward/part/"
NO_ANSWER = "no_answer"  # the part of a verifier that found no final answer

WASTED_SHARE = 0.8  # of groups: then four in five responses were sampled for nothing


def _reward_collapse(history: History) -> Finding | None:
    rows = [row for row in history.steps[-COLLAPSE_STEPS - 1 :] if "reward/mean" in row[1]]
    if len(rows) < 2 or rows[-1] is not history.steps[-1]:
        return None
    rewards = [values["reward/mean"] for _, values in rows]
    best = max(range(len(rows) - 1), key=rewards.__getitem__)
    errors = error_of(rows[best][1], "reward/mean"), error_of(rows[-1][1], "reward/mean")
    if errors[0] is None or errors[1] is None:
        return None
    lowest = min(0.0, *(values.get("reward/min", 0.0) for _, values in rows))
    threshold = lowest + COLLAPSE_SHARE * (rewards[best] - lowest)
    sure = rewards[best] - rewards[-1] > COLLAPSE_SURE * math.hypot(errors[0], errors[1])
    return Finding(
        value=rewards[-1],
        threshold=threshold,
        raised=rewards[-1] < threshold and sure,
        detail=f"Best was {rewards[best]:.3g} at step {rows[best][0]}. {_culprit(rows[best:])}",
    )


def _culprit(rows: list[tuple[int, Mapping[str, float]]]) -> str:
    """The steepest fall between two steps. What was sampled with the weights of a step's updates
    is rewarded in the next one, so the earlier of the two did it."""
    rewards = [values["reward/mean"] for _, values in rows]
    falls = [before - after for before, after in pairwise(rewards)]
    step, values = rows[falls.index(max(falls))]
    said = [f"grad norm up to {norm:.3g}"] if (norm := values.get("grad/norm_max")) else []
    return f"The updates of step {step} did it{_in_brackets(said + _moved_most(values))}."


def _moved_most(values: Mapping[str, float]) -> list[str]:
    """The update after which log s of the next minibatch grew most; a step's last update shows in
    no minibatch of its own."""
    rms = [0.0]
    while (mean := values.get(f"log_s/mean_mb{len(rms) + 1}")) is not None:
        rms.append(math.hypot(mean, values.get(f"log_s/std_mb{len(rms) + 1}", 0.0)))
    if len(rms) < 2:
        return []
    grown = [after - before for before, after in pairwise(rms)]
    number = 1 + grown.index(max(grown))
    return [f"minibatch {number} moved log s most, to rms {rms[number]:.3g}"]


def _in_brackets(parts: list[str]) -> str:
    return f" ({'; '.join(parts)})" if parts else ""


def _reward_hacking(history: History) -> Finding | None:
    found = None
    for lag in HACK_LAGS:
        reward = history.change("reward/mean", BLOCK_STEPS, lag)
        before = history.mean("reward/strict_mean", BLOCK_STEPS, lag)
        now = history.mean("reward/strict_mean", BLOCK_STEPS)
        if reward is None or before is None or now is None:
            continue
        found = Finding(
            value=now - before,
            threshold=FLAT_SHARE * reward.difference,
            raised=_outran(reward, now - before),
            detail=f"In {lag} steps the reward rose by {reward.difference:.3g}, the strict one by {now - before:.3g}.",
        )
        if found.raised:
            break
    return found


def _outran(reward: Change, other: float) -> bool:
    """The reward rose, the other by less than FLAT_SHARE of that, and the difference of the two
    is more than chance."""
    flat = other < FLAT_SHARE * reward.difference
    return flat and min(reward.difference, reward.difference - other) > SURE * reward.error


def _greedy_falls(history: History) -> Finding | None:
    evaluations = [event for event in history.events if event["kind"] == "evaluated"]
    findings = [_since(history, before, evaluations[-1]) for before in evaluations[:-1]]
    measured = [finding for finding in findings if finding is not None]
    return next((f for f in measured if f.raised), measured[-1] if measured else None)


def _since(history: History, before: Mapping[str, Any], now: Mapping[str, Any]) -> Finding | None:
    """Greedy accuracy of two evaluations, against the pass rate of the steps after the first and
    before the second."""
    between = [v for step, v in history.steps if before["step"] < step <= now["step"]]
    if len(between) < 2 * BLOCK_STEPS:
        return None
    sampled = change_of(between[:BLOCK_STEPS], between[-BLOCK_STEPS:], "reward/pass_rate")
    old, new = before["eval/greedy"], now["eval/greedy"]
    if sampled is None:
        return None
    error = math.sqrt(
        old * (1 - old) / before["num_prompts"] + new * (1 - new) / now["num_prompts"]
    )
    had_room = 1 - old >= sampled.difference
    threshold = old + FLAT_SHARE * sampled.difference if had_room else old - SURE * error
    rose = sampled.difference > SURE * sampled.error
    ahead = sampled.difference - (new - old) > SURE * math.hypot(error, sampled.error)
    return Finding(
        value=new,
        threshold=threshold,
        raised=rose and ahead and new < threshold,
        detail=f"Since step {before['step']} the sampled pass rate rose by {sampled.difference:.3g}, greedy accuracy went from {old:.3g} to {new:.3g}.",
    )


def _zero_variance(history: History) -> Finding | None:
    share = history.mean("groups/zero_variance", BLOCK_STEPS)
    if share is None:
        return None
    solved = history.mean("groups/all_solved", BLOCK_STEPS) or 0.0
    failed = history.mean("groups/all_failed", BLOCK_STEPS) or 0.0
    said = f"All solved: {solved:.0%} of the groups, all failed: {failed:.0%}."
    return Finding(share, WASTED_SHARE, share > WASTED_SHARE, said)


def _no_answer(history: History) -> Finding | None:
    """The worst of the verifiers that report it, alone or as a part of a sum."""
    newest = history.steps[-1][1] if history.steps else {}
    names = [n for n in newest if n.startswith(PART) and n.split("/")[-1] == NO_ANSWER]
    shares = {name: history.mean(name, BLOCK_STEPS) for name in names}
    measured = {name: share for name, share in shares.items() if share is not None}
    if not measured:
        return None
    name = max(measured, key=measured.__getitem__)
    said = f"{measured[name]:.1%} of the responses have no final answer ({name})."
    return Finding(measured[name], NO_ANSWER_SHARE, measured[name] > NO_ANSWER_SHARE, said)


RULES = (
    Rule(
        name="reward_collapse",
        find=_reward_collapse,
        metrics=(
            "reward/mean",
            "reward/std",
            "reward/min",
            "step/responses",
            "grad/norm_max",
            "log_s/mean_mb{minibatch}",
            "log_s/std_mb{minibatch}",
        ),
        formula=f"`reward/mean` < {COLLAPSE_SHARE:g} x its best of the {COLLAPSE_STEPS} steps before, and below it by more than {COLLAPSE_SURE:g} standard errors. Rewards below 0: half of the way down to the lowest one",
        evidence="the reward, against half of the best; and the step whose updates came before the steepest fall",
        cause="One update moved the policy too far: learning rate too high for the clip range, or a range that held nothing.",
        advice="resume from the checkpoint before it with a lower optimizer.lr, and look at that step's responses.",
    ),
    Rule(
        name="reward_hacking",
        find=_reward_hacking,
        metrics=("reward/mean", "reward/std", "step/responses", "reward/strict_mean"),
        formula=f"over {', '.join(map(str, HACK_LAGS))} steps (means of {BLOCK_STEPS}), `reward/mean` rises and `reward/strict_mean` by less than {FLAT_SHARE:g} of that, the difference being more than {SURE:g} standard errors",
        evidence=f"the rise of the strict reward, against {FLAT_SHARE:g} x that of the training reward",
        cause="The policy earns what the training grader gives away and the strict one does not.",
        advice="read responses with a high reward and a strict one of 0, and close the gap in the training grader.",
    ),
    Rule(
        name="greedy_falls",
        find=_greedy_falls,
        metrics=("reward/pass_rate", "step/responses"),
        formula=f"since an earlier evaluation, `reward/pass_rate` rises by more than {SURE:g} standard errors while `eval/greedy` falls by as many; or rises by less than {FLAT_SHARE:g} of that where it had room",
        evidence="greedy accuracy, against what it would have to exceed",
        cause="Only the sampling gets safer: probability moves to answers that were already the likeliest, or training prompts are learnt by heart.",
        advice="use a lower optimizer.lr, more and harder prompts, or fewer steps; keep the checkpoint with the best greedy accuracy.",
        after="evaluation",
        clear_steps=1,
    ),
    Rule(
        name="no_answer",
        find=_no_answer,
        metrics=(PART + "{part}",),
        formula=f"mean of `reward/part/no_answer`, or of a part's own `no_answer`, over {BLOCK_STEPS} steps > {NO_ANSWER_SHARE:g}",
        evidence="the share of responses without a final answer, the largest where several verifiers report one",
        cause="Responses end before their answer (rollout.max_tokens), or write it in another form than verifier.answer_in asks for.",
        advice="read some responses, then raise rollout.max_tokens, change the form, or ask for it in the prompt; 'gspo verify math' tries a form.",
    ),
    Rule(
        name="zero_variance_groups",
        find=_zero_variance,
        metrics=("groups/zero_variance", "groups/all_solved", "groups/all_failed"),
        formula=f"mean of `groups/zero_variance` over {BLOCK_STEPS} steps > {WASTED_SHARE:g}",
        evidence="the share of groups whose rewards do not differ",
        cause="Prompts are too easy (all solved), too hard (all failed), or the reward is constant: no advantage, no gradient.",
        advice="choose prompts that are solved sometimes, raise rollout.group, or try the verifier with 'gspo verify'.",
    ),
)
