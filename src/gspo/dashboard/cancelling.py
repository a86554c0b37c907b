"""Pairs of tokens that pull a response's ratio in opposite directions.

As in `gspo.diagnostics.attribution`: of all pairs of opposite sign the largest is the one whose
smaller |d| is largest, and of those the one whose sum is nearest to 0; d = logp - old_logp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Position of the positive token, of the negative one, and what cancels: the smaller |d|, nats.
Pair = tuple[int, int, float]


def cancelling_pairs(
    logp: Sequence[float | None] | None, old_logp: Sequence[float | None] | None, most: int
) -> list[Pair]:
    """The largest pairs, largest first; each token stands in one of them at most.

    >>> cancelling_pairs([0.5, -0.25, 0.25], [0.0, 0.0, 0.0], most=20)
    [(2, 1, 0.25)]
    """
    if logp is None or old_logp is None or len(logp) != len(old_logp):
        return []
    # Log-probs are float32: their difference is taken as the trainer takes it.
    new, old = np.array(logp, dtype=np.float32), np.array(old_logp, dtype=np.float32)
    log_ratio = np.nan_to_num((new - old).astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    up, down = np.maximum(log_ratio, 0.0), np.maximum(-log_ratio, 0.0)
    pairs: list[Pair] = []
    while len(pairs) < most and len(log_ratio):
        cancelled = float(min(up.max(), down.max()))
        if cancelled == 0:
            break
        i, j = _nearest(up, cancelled), _nearest(down, cancelled)
        pairs.append((i, j, cancelled))
        up[i] = down[j] = 0.0
    return pairs


def _nearest(side: np.ndarray, least: float) -> int:
    """The smallest token of this side that is at least this large, the first among equals."""
    return int(np.where(side >= least, side, np.inf).argmin())
