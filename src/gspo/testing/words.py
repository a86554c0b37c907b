"""Sentences for what `formula` recognised, and which trap each deviation is."""

from __future__ import annotations

import math
import statistics

from gspo.testing.batches import ADVANTAGES, LENGTHS, WIDTH
from gspo.testing.formula import TOLERANCE, Match, own_style
from gspo.testing.probes import Told
from gspo.testing.wanted import Wanted

LEVELS = {
    "sequence": "one ratio a response, exp of the mean log-ratio",
    "token": "a ratio and a clip decision for every token",
    "geometric": "exp of the mean of token log-ratios that were clipped one by one",
    "weight": "a clipped, detached token ratio times log pi",
    "gate": "a sigmoid of the token ratio",
    "held": "a clipped, detached ratio of the response times log pi",
    "product": "exp of the sum of log-ratios, not divided by the length",
    "width": "exp of the sum of log-ratios over the padded width",
    "arithmetic": "the mean of the token ratios, not exp of the mean log-ratio",
    "one": "ratio 1 for every token",
    "column": "the advantage of response t on token t",
    "pairs": "every response with the advantages of all responses",
    "trained_pairs": "every response with the advantages of the first responses",
}
LEVEL_NAMES = {
    "sequence": 'GSPO\'s ratio: TRL importance_sampling_level="sequence"',
    "token": 'the token ratio of GRPO, DAPO and PPO: TRL importance_sampling_level="token"',
    "geometric": "GMPO: verl loss_mode=geo_mean",
    "weight": "CISPO",
    "gate": "SAPO",
    "held": "CISPO's form at the level of a response",
    "product": "the importance weight of the whole response, as for correcting a sampler",
}
LEVEL_TRAPS = {
    "one": "own_anchor",
    "width": "pad_width",
    "column": "broadcast",
    "pairs": "broadcast",
    "trained_pairs": "broadcast",
}
STYLES = {
    "by_sign": "what moved past the range to where A pushes is cut",
    "never": "nothing is cut",
    "both_sides": "all outside the range is cut, whatever the sign of A",
    "wrong_sign": "the clip stops the side that A pulls back from, as max() instead of min() does",
    "exchanged": "the distances below and above have changed places",
    None: "other tokens are cut than the range says",
}
STYLE_NAMES = {
    "never": "no clip at all, a range that is far too wide (GRPO's 0.2 under GSPO), or the weight of a policy gradient",
    "both_sides": "clamp() alone, without minimum() against the unclipped term",
}

OVER_RESPONSES = (
    'mean over tokens, then over responses: TRL loss_type="grpo", verl seq-mean-token-mean'
)
SUMS = (
    'the sum over a response, then the mean: LUSPO, TRL loss_type="luspo", verl seq-mean-token-sum'
)
OVER_TOKENS = (
    "the token-mean aggregation: TRL's default loss_type=\"dapo\", verl's default token-mean"
)
ALL_ADDED = "the sum over all tokens: verl token-sum"
RESPONSES_ADDED = "the sum over responses"


def deviations(wanted: Wanted, match: Match) -> dict[str, Told]:
    """Trap -> what was expected and what came, for each way in which the formula is another."""
    found: dict[str, Told] = {}
    if match.level != wanted.level:
        trap = LEVEL_TRAPS.get(match.level, "ratio")
        found[trap] = Told(LEVELS[wanted.level], LEVELS[match.level], LEVEL_NAMES.get(match.level))
    if match.advantage != "given":
        came = f"they were {match.advantage} over the {'response' if wanted.per_token else 'batch'} once more"
        found["advantage"] = Told("advantages as given", came)
    own = own_style(wanted)
    if match.level == wanted.level and match.style != own:
        found["clip"] = Told(STYLES[own], STYLES[match.style], STYLE_NAMES.get(match.style or ""))
    for trap, told in _denominator(wanted, match).items():
        found.setdefault(trap, told)
    return found


def _denominator(wanted: Wanted, match: Match) -> dict[str, Told]:
    num_responses, num_tokens = len(LENGTHS), sum(LENGTHS)
    right = wanted.divisor(num_responses, num_tokens)
    if match.level == "product" and _equal(match.divisor, num_responses):
        return {}  # a sum has no 1 / L to pass on: this is its mean over responses
    if match.shape == wanted.shape and _equal(match.divisor, right):
        return {}
    expected = f"mean over {'the tokens of each response, then over responses' if wanted.shape == 'mean' else 'all tokens'}"
    if wanted.max_tokens is not None:
        expected = "the sum divided by responses x max_tokens"
    if match.shape == wanted.shape and _equal(match.divisor, -right):
        return {"scale": Told("a loss to be minimised", "the gradient has the opposite sign")}
    for divisor, (trap, name) in _known(wanted, match.shape).items():
        if _equal(match.divisor, divisor):
            return {
                trap: Told(
                    expected,
                    f"a denominator of {divisor:.4g} for {num_responses} responses of {num_tokens} tokens",
                    name,
                )
            }
    if match.shape != wanted.shape:
        each = "each response" if match.shape == "mean" else "each token"
        came = f"{each} weighs the same, divided by {match.divisor:.4g}"
        return {"aggregation": Told(expected, came)}
    factor = right / match.divisor
    return {
        "scale": Told(
            expected,
            f"{factor:.4g} times the gradient, from {num_responses} responses of {num_tokens} tokens",
        )
    }


def _known(wanted: Wanted, shape: str) -> dict[float, tuple[str, str]]:
    """Denominators that have a name, on the ordinary batch."""
    num_responses, num_tokens = len(LENGTHS), sum(LENGTHS)
    if shape == "uniform":
        known = {
            num_tokens: ("aggregation", OVER_TOKENS),
            num_responses: ("aggregation", SUMS),
            1: ("aggregation", ALL_ADDED),
            num_responses * WIDTH: ("pad_width", "a mean over the padded width"),
        }
        if wanted.max_tokens is not None:
            known[num_responses * wanted.max_tokens] = (
                "aggregation",
                'Dr. GRPO: TRL loss_type="dr_grpo"',
            )
        return {float(key): value for key, value in known.items()}
    with_advantage = sum(value != 0 for value in ADVANTAGES)
    return {
        float(num_responses): ("aggregation", OVER_RESPONSES),
        1.0: ("scale", RESPONSES_ADDED),
        float(with_advantage): (
            "dead_rows",
            "responses of advantage 0 left out of the denominator",
        ),
        float(with_advantage - 2): (
            "dead_rows",
            "responses that were cut left out of the denominator",
        ),
        num_responses * statistics.pstdev(ADVANTAGES): (
            "advantage",
            "divided by their spread once more",
        ),
        num_responses * statistics.stdev(ADVANTAGES): (
            "advantage",
            "divided by their spread once more",
        ),
    }


def _equal(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=10 * TOLERANCE)
