"""How far log s moved: moments, quantiles and a histogram.

log s is the mean over a response's tokens of log pi_now - log pi_old. In the first minibatch it
is 0 by construction, so the headline is about off-policy minibatches alone. Responses of zero
advantage are left out everywhere: an update may skip them, and then their log s is not known.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from gspo.diagnostics.clipping import UpdatedResponses
from gspo.diagnostics.lengths import present_buckets
from gspo.stats import Histogram, Max, Mean, Min, Quantile, Spread, Stats, Sum

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def log_s_stats(responses: UpdatedResponses) -> Stats:
    """Every `log_s/*` statistic of one step, response-weighted, in nats."""
    measured = responses.signal & responses.log_s.isfinite()
    headline = measured & responses.off_policy
    log_s, advantage = responses.log_s, responses.advantage
    stats = _distribution(log_s[headline], "") | _distribution(log_s[measured], "_all")
    stats["log_s/unmeasured"] = Sum((responses.signal & ~measured).sum())
    stats |= _moments(log_s[headline & (advantage > 0)], "_positive")
    stats |= _moments(log_s[headline & (advantage < 0)], "_negative")
    for suffix, rows in _parts(responses, measured, headline).items():
        stats |= _moments(log_s[rows], suffix)
        stats[f"log_s/count{suffix}"] = Sum(rows.sum())
    return stats


def _parts(
    responses: UpdatedResponses, measured: Bool[Tensor, "S"], headline: Bool[Tensor, "S"]
) -> dict[str, Bool[Tensor, "S"]]:
    """Suffix -> responses: minibatches (the first one too: it has to be 0), then lengths."""
    parts = {f"_mb{k}": measured & rows for k, rows in responses.minibatches().items()}
    for bucket, rows in present_buckets(responses.lengths).items():
        parts[f"/len_{bucket}"] = headline & rows
    return parts


def _distribution(values: Float[Tensor, "R"], suffix: str) -> Stats:
    """Moments, extrema, quantiles and histogram of these values."""
    some = values.numel() > 0
    stats = _moments(values, suffix)
    stats[f"log_s/min{suffix}"] = Min(values.min() if some else None)
    stats[f"log_s/max{suffix}"] = Max(values.max() if some else None)
    for q in QUANTILES:
        stats[f"log_s/q{round(100 * q):02d}{suffix}"] = Quantile(values, q)
    stats[f"log_s/histogram{suffix}"] = Histogram.of(values)
    return stats


def _moments(values: Float[Tensor, "R"], suffix: str) -> Stats:
    return {
        f"log_s/mean{suffix}": Mean(values.double().sum(), values.numel()),
        f"log_s/std{suffix}": Spread(values),
    }
