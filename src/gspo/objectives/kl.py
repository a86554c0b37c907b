"""Distance to a reference policy: k1 in the reward, k2 and k3 in the loss.

With d = ref_logp - logp of a sampled token, in nats, the estimators of KL(policy, reference) are

    k1 = -d        k2 = d^2 / 2        k3 = e^d - d - 1

Source: J. Schulman, "Approximating KL divergence" (2020); k3 as a loss term: arXiv 2402.03300,
equation 4. The gradient of k1 has mean zero, so as a loss it penalises nothing.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from gspo.errors import RecipeError
from gspo.ratios import MAX_LOG_RATIO, check_logp
from gspo.segments import Segments
from gspo.settings import Denominator, KLPenalty


def k2(logp: Float[Tensor, "N"], ref_logp: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Half the squared log-difference of each token; its gradient is logp - ref_logp."""
    check_logp(logp, ref_logp)
    return (logp - ref_logp.detach()).square() / 2


def k3(logp: Float[Tensor, "N"], ref_logp: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    """e^d - d - 1 of each token; its gradient is 1 - e^d.

    d is held at MAX_LOG_RATIO before exp, which would overflow: there the value is capped and the
    gradient zero. The other side needs no bound and keeps its pull towards the reference.
    """
    check_logp(logp, ref_logp)
    held = (ref_logp.detach() - logp).clamp(max=MAX_LOG_RATIO)
    return held.expm1() - held


def k1_reward(
    old_logp: Float[Tensor, "N"],
    ref_logp: Float[Tensor, "N"],
    segments: Segments,
    *,
    coefficient: float,
) -> Float[Tensor, "S"]:
    """What k1 adds to the reward of each response: -coefficient x mean_t(old_logp - ref_logp).

    The mean keeps a coefficient comparable over lengths and with k2 and k3. 0 for an empty
    response. Detached.
    """
    check_logp(old_logp, ref_logp)
    return -coefficient * segments.mean(old_logp.detach() - ref_logp.detach())


def kl_penalty(
    logp: Float[Tensor, "N"],
    ref_logp: Float[Tensor, "N"],
    segments: Segments,
    *,
    kl: KLPenalty,
    denominator: Denominator,
) -> Float[Tensor, "S"]:
    """Undivided penalty of each response, to be added to the loss of an objective with this
    denominator: mean over tokens where D counts responses, else the sum. It moves responses whose
    surrogate is dead as well, so `Objective.dead` cannot decide what to skip beside it.

    Raises RecipeError for k1.
    """
    if kl.estimator == "k1":
        raise RecipeError(
            "kl.estimator is 'k1', whose gradient has mean zero as a loss: "
            "fold it into the reward with k1_reward, or use 'k2' or 'k3'"
        )
    per_token = (k2 if kl.estimator == "k2" else k3)(logp, ref_logp)
    reduce = segments.mean if denominator == "responses" else segments.sum
    return kl.coefficient * reduce(per_token)
