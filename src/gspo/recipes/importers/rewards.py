"""Reward functions by the names other trainers give them, and our verifiers. None is run here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from gspo.recipes.importers.common import section
from gspo.recipes.importers.draft import MISSING, MISSING_REWARD, Draft

#: What TRL's think_format_reward matches, so that the way back knows it again.
THINK_PATTERN = r"^<think>(?!.*<think>)(.*?)</think>.*$"
#: The length that `trl grpo` gives its overlong punishment, whatever max_completion_length is.
TRL_OVERLONG_TOKENS, TRL_OVERLONG_BUFFER = 1280, 256

#: TRL's name -> our verifier, and what differs.
TRL_REWARDS: Mapping[str, tuple[dict[str, Any], str]] = {
    "accuracy_reward": (
        {"kind": "math"},
        "the final answer equals the answer as mathematics, there and here; TRL reads the column solution "
        "(data.columns={answer: solution}), and skips a row whose solution it cannot read",
    ),
    "reasoning_accuracy_reward": (
        {"kind": "math"},
        "there only what follows the reasoning is searched for the answer, here the whole response",
    ),
    "think_format_reward": ({"kind": "regex", "pattern": THINK_PATTERN}, "the same pattern"),
    "get_soft_overlong_punishment": (
        {"kind": "overlong", "buffer_tokens": TRL_OVERLONG_BUFFER},
        f"`trl grpo` punishes from {TRL_OVERLONG_TOKENS} - {TRL_OVERLONG_BUFFER} tokens on, here from "
        f"rollout.max_tokens - {TRL_OVERLONG_BUFFER}",
    ),
}
NO_LIMIT = 100.0  # the largest rollout.dynamic_sampling.max_factor
OVERLONG = "get_soft_overlong_punishment"
OVERLONG_ARGUMENTS = ("max_completion_len", "soft_punish_cache")
_OVERLONG_MADE = re.compile(rf"{OVERLONG}\((\d+), (\d+)\)")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PLAIN_FILE = re.compile(r"(?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py:[A-Za-z_]\w*")


def dotted_as_file(name: str) -> str:
    """`lib.rewards.f` -> `lib/rewards.py:f`."""
    module, _, function = name.rpartition(".")
    return f"{module.replace('.', '/')}.py:{function}"


def file_as_dotted(place: str) -> str | None:
    """`lib/rewards.py:f` -> `lib.rewards.f`; None where the path is no module."""
    if not _PLAIN_FILE.fullmatch(place):
        return None
    path, _, function = place.partition(":")
    return f"{PurePosixPath(path).with_suffix('').as_posix().replace('/', '.')}.{function}"


def trl_verifier(name: str) -> tuple[dict[str, Any], str]:
    """Our verifier for one entry of reward_funcs, and what to know."""
    if made := _OVERLONG_MADE.fullmatch(name):
        length, buffer = int(made[1]), int(made[2])
        why = (
            f"there from {length} - {buffer} tokens on, here from rollout.max_tokens - {buffer}: the "
            "same where max_completion_length is that number"
        )
        return {"kind": "overlong", "buffer_tokens": buffer}, why
    if name in TRL_REWARDS:
        return TRL_REWARDS[name]
    if _MODULE.fullmatch(name):
        kind = {"kind": "function", "function": dotted_as_file(name)}
        return kind, "TRL's signature is taken as it is; the file is read when the run starts"
    if ":" in name:  # a function of the script itself
        script, _, function = name.rpartition(":")
        kind = {"kind": "function", "function": f"{MISSING}/reward.py:{function}"}
        return kind, (
            f"{function} stands in {script}, and loading that would start the training in it: move it into "
            "a file of its own"
        )
    raise ValueError(name)


def trl_rewards(draft: Draft) -> None:
    """reward_funcs and reward_weights as `verifier`."""
    names = draft["reward_funcs"]
    if not names:
        no_reward(draft, "reward_funcs")
        draft.also("reward_weights")
        return
    names = names if isinstance(names, list) else [names]
    try:
        found = [trl_verifier(str(name)) for name in names]
    except ValueError as error:
        text = f"reward_funcs names {error}; wanted one of TRL's own, or module.function"
        raise draft.error("reward_funcs", text) from error
    weights = draft["reward_weights"] or [1.0] * len(names)
    if not isinstance(weights, list) or len(weights) != len(names):
        text = f"it is {weights!r}; wanted one number for each of {len(names)} reward_funcs"
        raise draft.error("reward_weights", text)
    why = "; ".join(dict.fromkeys(note for _, note in found))
    if len(found) == 1 and weights[0] == 1:
        settings = section(found[0][0], "verifier")
    else:
        parts = [
            {**kind, "name": _part_name(str(name)), "weight": weight}
            for name, (kind, _), weight in zip(names, found, weights, strict=True)
        ]
        settings = {"verifier.parts": parts}
    draft.change("reward_funcs", settings, why)
    draft.also("reward_weights")


def _part_name(name: str) -> str:
    return re.split(r"[.:]", name.partition("(")[0])[-1]


def no_reward(draft: Draft, key: str, why: str = "the file names no reward") -> None:
    """A verifier that says at the start of a run that it is still to be set."""
    settings = {"kind": "function", "function": MISSING_REWARD}
    draft.change(key, section(settings, "verifier"), f"{why}; set the section verifier")


def with_overlong(draft: Draft, buffer: int, weight: float) -> dict[str, Any]:
    """The verifier as it is, and DAPO's punishment for length beside it."""
    own = {
        "kind": draft.get("verifier.kind"),
        "function": draft.get("verifier.function"),
        "weight": 1.0,
    }
    part = {"kind": "overlong", "buffer_tokens": buffer, "weight": weight}
    draft.drop("verifier")
    return {"verifier.parts": [own, part]}
