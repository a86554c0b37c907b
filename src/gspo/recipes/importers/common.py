"""What the three trainers share on the way to a recipe, and the words for it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from gspo.recipes.importers.draft import MISSING_DATA, MISSING_MODEL, Draft

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")  # what a recipe may be called
DEFAULT_BUDGET = 8192  # tokens: what trainer.max_tokens_per_microbatch is by default

#: GRPO's range is about 500 times the paper's for GSPO.
TOKEN_RANGE = 0.1
WIDE_FOR_GSPO = (
    "a range for token ratios: log s of a whole response is far narrower (3e-4 / 4e-4 in the paper), so "
    "next to nothing is cut; objective.clip=auto measures a range"
)
ONE_UPDATE = (
    "one update a rollout batch: the policy is the one that sampled, every ratio is 1 and nothing is "
    "ever cut, under any objective"
)
OLD_POLICY = (
    "the ratio is anchored on the trainer's own log-probs of the policy that sampled, always scored "
    "anew; auto would take the engine's where that moves no decision"
)
SAMPLED_BY_TRAINER = (
    "corrects the gap between engine and trainer; here the trainer's own model samples, and "
    "`gspo gap` measures what is left of it"
)
EACH_ONCE = "each response is used in one update a step here; more updates are trainer.minibatches"
NOT_MASKED = (
    "a response that is cut off counts as it was judged here; the overlong verifier punishes length"
)
NO_ENTROPY = "the loss has no entropy term here; policy/entropy is recorded"
TAIL_CUT = (
    "samples are drawn from what is left of the tail, log-probs are of the whole distribution, there "
    "and here: the ratio is not that of the policy that sampled"
)


def clip(low: float, high: float) -> dict[str, Any]:
    """The setting of a band around ratio 1."""
    return {"objective.clip": {"low": low, "high": high}}


def model(draft: Draft, key: str) -> None:
    """The model's folder, or a name that has to become one."""
    name = draft[key]
    if name is None:
        why = "the file names no model; set model.path to its folder"
        draft.change(key, {"model.path": MISSING_MODEL}, why)
        return
    draft.take(
        key, {"model.path": str(name)}, "must be a folder here: a hub name is downloaded first"
    )


def no_data(draft: Draft, key: str) -> None:
    """A place for the prompts, which the file does not name."""
    why = "the file names no prompts; set data.path"
    draft.change(key, {"data.path": MISSING_DATA}, why)


def is_file(source: str) -> bool:
    """Whether a data set is one file, as data.path takes it: it has no splits."""
    return source.endswith((".jsonl", ".json", ".csv", ".parquet", ".arrow"))


def sampling(draft: Draft, key: str, setting: str, value: float | None = None) -> None:
    """top-p or top-k, with the word of caution where it is on. value: the key's own if None."""
    value = draft.number(key) if value is None else value
    off = (setting == "rollout.top_p" and value == 1) or (setting == "rollout.top_k" and value == 0)
    draft.take(key, {setting: value}, "" if off else TAIL_CUT)


def temperature(draft: Draft, key: str) -> None:
    """The same on both sides: it divides the logits of engine and trainer."""
    note = "divides the logits when sampling and in the trainer's log-probs, there and here"
    draft.take(key, {"rollout.temperature": draft.number(key)}, note)


def schedule(draft: Draft, key: str) -> str:
    """The form of the learning rate; returns ours."""
    name = str(draft[key])
    if name in ("constant", "constant_with_warmup"):
        draft.take(key, {"optimizer.schedule": "constant"})
        return "constant"
    if name == "cosine":
        draft.take(key, {"optimizer.schedule": "cosine"})
        return "cosine"
    falling = (
        "linear",
        "polynomial",
        "cosine_with_min_lr",
        "cosine_warmup_with_min_lr",
        "warmup_stable_decay",
    )
    if name not in falling:
        raise draft.error(
            key, f"{key} is {name!r}, which has no counterpart; here are constant and cosine"
        )
    why = (
        "a straight line down to 0; here the curve to 0 is a cosine, with the same mean"
        if name == "linear"
        else "here the rate falls along a cosine to 0, not to a share of it"
    )
    draft.change(key, {"optimizer.schedule": "cosine"}, why)
    return "cosine"


def every(draft: Draft, key: str, setting: str, updates: int) -> None:
    """An interval in optimizer steps becomes one in steps."""
    given = draft.number(key)
    steps = max(round(given / updates), 1)
    if steps * updates == given:
        draft.take(key, {setting: steps}, f"{given:g} optimizer steps of {updates} a step")
    else:
        why = f"counted in optimizer steps there; a step here has {updates} of them"
        draft.change(key, {setting: steps}, why)


def run_folder(draft: Draft, key: str) -> None:
    """The folder of one run there; here the folder of all runs, and a name in it."""
    folder, _, name = str(draft[key]).rstrip("/").rpartition("/")
    if NAME.fullmatch(name) and folder:
        draft.take(key, {"record.folder": folder, "name": name})
    elif NAME.fullmatch(name):
        draft.take(key, {"name": name}, "the run's folder lies in record.folder")
    else:
        draft.leave(key, "a run is a folder with a plain name in record.folder; set name")


def services(draft: Draft, key: str, names: list[Any]) -> None:
    """Where metrics go besides the run folder."""
    known = [name for name in names if name in ("tensorboard", "wandb", "trackio")]
    others = [name for name in names if name not in (*known, "none", "console")]
    if not draft.has(key) and known:
        draft.change(
            key, {"record.to": []}, "the run folder is whole without them; name them if wanted"
        )
    elif others:
        why = f"metrics go to tensorboard, wandb or trackio, not to {', '.join(map(str, others))}"
        draft.change(key, {"record.to": known}, why)
    else:
        draft.take(key, {"record.to": known})


def budget(draft: Draft, tokens: int | None = None) -> dict[str, int]:
    """Tokens of a micro-batch: what the file says, raised to the longest prompt and response."""
    response = draft.get("rollout.max_tokens")
    longest = response + (draft.get("data.max_prompt_tokens") or response)
    wanted = tokens or DEFAULT_BUDGET
    return {"trainer.max_tokens_per_microbatch": max(wanted, longest)}


def steps_of_epochs(
    draft: Draft, key: str, epochs: float, num_prompts: int | None, upper: str
) -> None:
    """Steps, where the file counts passes over its prompts. num_prompts: the most it takes of them,
    under the name `upper`."""
    per_step = draft.get("rollout.prompts")
    if num_prompts is None:
        steps = our_steps(draft)
        why = (
            f"{epochs:g} passes over N prompts are {epochs:g} x N / {per_step} steps of {per_step} prompts, "
            f"and N is not in the file: set trainer.steps, {steps} is only our default"
        )
        draft.change(key, {"trainer.steps": steps}, why)
        return
    steps = max(math.floor(epochs * (num_prompts // per_step)), 1)
    why = (
        f"{epochs:g} passes over {num_prompts} prompts ({upper}), {per_step} a step; fewer if the data "
        "hold fewer"
    )
    draft.change(key, {"trainer.steps": steps}, why)


def our_steps(draft: Draft) -> int:
    """trainer.steps as far as it is known, else our default."""
    from gspo.recipes.sections import TrainerSection

    return draft.get("trainer.steps") or TrainerSection().steps


def gspo_clip_remark(low: float, high: float) -> str:
    """A note where a token range is used on whole responses."""
    return WIDE_FOR_GSPO if max(low, high) >= TOKEN_RANGE else ""


def section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Settings of one section, with its name in front: {"kind": "math"} -> {"verifier.kind": ...}."""
    return {f"{name}.{key}": value for key, value in settings.items()}
