"""What a recipe may say and rarely means: one line each, with the fix, before the run. Never a
refusal; what cannot work at all is in checks.py.

Four faults of other trainers cannot be written in a recipe, so nothing guards against them: engine
and trainer read the one `rollout.temperature`; every objective with a ratio per response divides
by responses; `dual_clip` is a setting of ppo alone; there is no entropy term.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from transformers import AutoConfig

from gspo.recipes.objective_section import Band, GSPOSection, LengthFairBand
from gspo.recipes.schema import Recipe
from gspo.recipes.sections import SavedModel
from gspo.settings import PAPER_CLIP

#: From ratio 1: token ranges begin here, and `clip: auto` never goes beyond.
WIDE_CLIP = 0.1

#: Nats. Spread of log s between two bfloat16 passes over the same tokens, 64 a response, measured
#: on SmolLM2-135M.
BFLOAT16_NOISE = 6.6e-3
NOISE_MARGIN = 10  # a range below this many spreads of the noise cuts noise

DROPOUT_SETTINGS = (
    "attention_dropout",
    "attn_pdrop",
    "dropout",
    "embd_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
)


@dataclass(frozen=True, slots=True)
class Guard:
    """rule: its name in docs/alarms.md. text: one line, with the fix."""

    rule: str
    text: str


def guards(recipe: Recipe) -> list[Guard]:
    """Everything worth a line about this recipe. Reads the model's config where there is one."""
    return [Guard(name, text) for name, rule in RULES.items() for text in rule(recipe)]


def _wide_clip(recipe: Recipe) -> Iterator[str]:
    band = _distances(recipe)
    if band is not None and max(band) >= WIDE_CLIP:
        yield (
            f"objective.clip reaches {max(band):.3g} from ratio 1: a range for token ratios. A "
            f"{recipe.objective.name} ratio is a mean over the response and moves far less, so "
            "nothing will be cut; `objective.clip=auto` measures"
        )


def _distances(recipe: Recipe) -> tuple[float, float] | None:
    """How far the ratio of a longest response may move from 1, below and above, where the recipe
    says so for a ratio per response."""
    if not isinstance(recipe.objective, GSPOSection):
        return None
    match recipe.objective.clip:
        case Band(low=low, high=high):
            return low, high
        case LengthFairBand(length_fair=band):
            root = math.sqrt(recipe.rollout.max_tokens)
            return -math.expm1(-band.low / root), math.expm1(band.high / root)
        case "paper":
            return PAPER_CLIP.low, PAPER_CLIP.high
        case _:
            return None


def _one_update(recipe: Recipe) -> Iterator[str]:
    if recipe.trainer.minibatches == 1:
        what = "gspo is grpo then, and" if isinstance(recipe.objective, GSPOSection) else "so"
        yield (
            "trainer.minibatches is 1: one update a step, in which every ratio is 1; "
            f"{what} the clip has nothing to cut or measure; 4 is usual"
        )


def _low_precision(recipe: Recipe) -> Iterator[str]:
    exact = {"model": "float32", "trainer": "model"}
    low = [name for name in exact if getattr(recipe, name).dtype == "bfloat16"]
    if not low or not isinstance(recipe.objective, GSPOSection):
        return
    band = _distances(recipe)
    if band is None:
        range_in_use = "objective.clip=auto would measure that noise"
    elif min(band) < NOISE_MARGIN * BFLOAT16_NOISE:
        range_in_use = f"objective.clip is {min(band):.3g}"
    else:
        return
    yield (
        f"{low[0]}.dtype is bfloat16: its rounding alone moves log s by {BFLOAT16_NOISE:g}, and "
        f"{range_in_use}; `{low[0]}.dtype={exact[low[0]]}`"
    )


def _cut_tail(recipe: Recipe) -> Iterator[str]:
    if recipe.rollout.top_p < 1 or recipe.rollout.top_k > 0:
        yield (
            "rollout.top_p / top_k cut the tail: the responses do not come from the policy that is "
            "trained, and the ratio does not know; 1.0 and 0 are off"
        )


def _dropout(recipe: Recipe) -> Iterator[str]:
    if not isinstance(recipe.model, SavedModel):
        return
    try:
        config = AutoConfig.from_pretrained(recipe.model.path, local_files_only=True)
    except (OSError, ValueError):
        return  # `prepare` says what is wrong with the folder
    text = config.get_text_config()
    found = [(n, v) for n in DROPOUT_SETTINGS if (v := getattr(text, n, None))]
    if found:
        said = ", ".join(f"{name} {value:g}" for name, value in found)
        yield (
            f"the model's config has {said}: dropout is off here, in scoring as in training, for it "
            "moves every ratio; make it 0 in config.json, for trainers that leave it on"
        )


def _no_skipping(recipe: Recipe) -> Iterator[str]:
    kl = recipe.objective.kl
    if kl is None:
        return
    if kl.estimator == "k1":
        what = "an advantage, also in groups whose rewards are all equal"
    else:
        what = "a gradient, also what the clip cut, which therefore stops no response any more"
    yield (
        f"objective.kl ({kl.estimator}) gives every response {what}: none can be skipped; "
        "`objective.kl=null` unless you need the anchor"
    )


def _advantage_scale(recipe: Recipe) -> Iterator[str]:
    if recipe.objective.name == "dr_grpo" and recipe.advantage.scale == "std":
        yield (
            "objective dr_grpo is meant for advantages without division by their standard "
            "deviation; `advantage.scale=none`"
        )


def _same_grader(recipe: Recipe) -> Iterator[str]:
    section = recipe.verifier
    trained = {g.function if g.kind == "function" else g.kind for _, g in section.graders}
    exact = any(grader.kind == "math" and grader.exact_form for _, grader in section.graders)
    if section.strict in trained - ({"math"} if not exact else set()):
        yield (
            "verifier.strict is the training grader itself, so the two never part; name a stricter "
            "one, or null"
        )


#: Name in docs/alarms.md -> lines that the recipe earns.
RULES = {
    "wide_clip": _wide_clip,
    "one_update": _one_update,
    "low_precision": _low_precision,
    "cut_tail": _cut_tail,
    "dropout": _dropout,
    "no_skipping": _no_skipping,
    "advantage_scale": _advantage_scale,
    "same_grader": _same_grader,
}
