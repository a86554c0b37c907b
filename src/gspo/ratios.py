"""The log-ratio between two policies: per token, or per response as the mean over its tokens.

It stays in log space until an objective's last line. Its mean is taken first and held second:
holding single tokens first would turn the log-ratios [100, -100], whose mean is exactly 0, into
something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gspo.errors import GspoError, NumericsError
from gspo.segments import Segments

#: nats: e^10 = 22026 still fits float16, and an update that moved a policy this far is no longer
#: a step inside any trust region.
MAX_LOG_RATIO = 10.0

PRECISE = (torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Log-ratios of U units (tokens or responses), in nats.

    raw: as measured, detached. held: raw kept within +-MAX_LOG_RATIO, on the graph; its gradient
    is exactly zero beyond. bounded: where raw lies beyond.
    """

    raw: Float[Tensor, "U"]
    held: Float[Tensor, "U"]
    bounded: Bool[Tensor, "U"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Log-ratios after the clip, and where it acted: there they sit on the band's edge and pass
    no gradient."""

    log_ratio: Float[Tensor, "U"]
    low: Bool[Tensor, "U"]
    high: Bool[Tensor, "U"]


def hold(log_ratio: Float[Tensor, "U"]) -> LogRatio:
    """Keep log-ratios within +-MAX_LOG_RATIO, so that exp and its gradient are finite."""
    raw = log_ratio.detach()
    return LogRatio(raw, log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO), raw.abs() > MAX_LOG_RATIO)


def token_log_ratio(logp: Float[Tensor, "N"], old_logp: Float[Tensor, "N"]) -> LogRatio:
    """log r_t = logp_t - old_logp_t, held token by token. old_logp is a constant.

    Raises NumericsError for log-probs coarser than float32.
    """
    return hold(_difference(logp, old_logp))


def response_log_ratio(
    logp: Float[Tensor, "N"], old_logp: Float[Tensor, "N"], segments: Segments
) -> LogRatio:
    """log s_i = mean over the tokens of response i of log r_t; the mean is held. 0 when empty.

    Raises NumericsError for log-probs coarser than float32.

    >>> segments = Segments.from_lengths([2])
    >>> response_log_ratio(torch.tensor([0.0, -200.0]), torch.tensor([-100.0, -100.0]), segments).held
    tensor([0.])
    """
    return hold(segments.mean(_difference(logp, old_logp)))


def cut_gain(
    log_ratio: Float[Tensor, "U"],
    advantage: Float[Tensor, "U"],
    low: float | Float[Tensor, "U"],
    high: float | Float[Tensor, "U"],
) -> Cut:
    """PPO's pessimistic clip, decided in log space.

    min(r A, clip(r, e^low, e^high) A) = e^k A, where k is log r, or the band's edge where r has
    already moved past it in the direction that A rewards. low, high: the band, in nats.
    """
    low_edge = torch.as_tensor(low, dtype=log_ratio.dtype, device=log_ratio.device)
    high_edge = torch.as_tensor(high, dtype=log_ratio.dtype, device=log_ratio.device)
    cut_low = (log_ratio < low_edge) & (advantage < 0)
    cut_high = (log_ratio > high_edge) & (advantage > 0)
    at_edges = torch.where(cut_high, high_edge, torch.where(cut_low, low_edge, log_ratio))
    return Cut(at_edges, cut_low, cut_high)


def check_logp(logp: Tensor, reference: Tensor) -> None:
    """Two sets of log-probs of the same tokens, fine enough to subtract.

    Raises GspoError for different shapes, NumericsError for log-probs coarser than float32.
    """
    if logp.ndim != 1 or logp.shape != reference.shape:
        raise GspoError(
            f"log-probs have shapes {tuple(logp.shape)} and {tuple(reference.shape)}; "
            "wanted one number per trained token in both: take them with Segments.take"
        )
    for values in (logp, reference):
        if values.dtype not in PRECISE:
            raise NumericsError(
                too_coarse(values.dtype) + ": take logits.float() before log_softmax"
            )


def too_coarse(dtype: torch.dtype) -> str:
    """What is wrong with log-probs of this type."""
    name = str(dtype).removeprefix("torch.")
    steps = f" (steps of {torch.finfo(dtype).eps:.1g} at -1)" if dtype.is_floating_point else ""
    return f"log-probs are {name}{steps}, and a clip range can be 0.0003"


def _difference(logp: Float[Tensor, "N"], old_logp: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
    check_logp(logp, old_logp)
    return logp - old_logp.detach()
