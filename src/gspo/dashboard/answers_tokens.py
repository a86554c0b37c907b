"""Which tokens moved most in a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from gspo.dashboard.folder import RunFolderView
from gspo.dashboard.tables import SCALARS, TOKENS
from gspo.errors import DataError


def top_tokens(run: RunFolderView, step: int, limit: int = 40) -> dict[str, Any]:
    """Token ids by their share of all |log-ratio| of the step: of responses with an advantage, in
    minibatches after the first. mean: of their log-ratios, nats. Raises NotFoundError."""
    scalars, tokens = run.table(step, SCALARS), run.table(step, TOKENS)
    minibatch = scalars.column("minibatch").fill_null(0).to_numpy()
    keep = (minibatch >= 2) & (scalars.column("advantage").to_numpy() != 0)
    keep &= tokens.column("logp").is_valid().to_numpy()
    keep &= tokens.column("old_logp").is_valid().to_numpy()
    table = tokens.filter(keep)
    ids, lengths = _flat(table.column("tokens"), np.int64)
    logp, num_logp = _flat(table.column("logp"), np.float32)
    old_logp, num_old = _flat(table.column("old_logp"), np.float32)
    if not (np.array_equal(lengths, num_logp) and np.array_equal(lengths, num_old)):
        raise DataError(
            f"step {step} is damaged: a response has not one log-prob a token: take another step"
        )
    log_ratio = (logp - old_logp).astype(np.float64)
    response = np.repeat(np.arange(len(lengths)), lengths)
    finite = np.isfinite(log_ratio)
    return _ranked(run, ids[finite], log_ratio[finite], response[finite], limit)


def _flat(column: Any, dtype: type[np.generic]) -> tuple[np.ndarray, np.ndarray]:
    """All values one after another, and how many each row has."""
    lists = column.combine_chunks()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    if len(values) and np.issubdtype(dtype, np.integer) and not np.isfinite(values).all():
        raise DataError("a response is damaged: it has tokens without an id: take another step")
    return values.astype(dtype), lists.value_lengths().to_numpy(zero_copy_only=False)


def _ranked(
    run: RunFolderView, ids: np.ndarray, log_ratio: np.ndarray, response: np.ndarray, limit: int
) -> dict[str, Any]:
    known, which, count = np.unique(ids, return_inverse=True, return_counts=True)
    total = np.bincount(which, weights=log_ratio, minlength=len(known))
    size = np.bincount(which, weights=np.abs(log_ratio), minlength=len(known))
    pairs = np.unique(np.stack([which, response]), axis=1)
    num_responses = np.bincount(pairs[0], minlength=len(known))
    all_of_it = float(size.sum())
    order = np.argsort(-size, kind="stable")[:limit]
    texts = run.token_texts([int(i) for i in known[order]])
    rows = [
        {
            "id": int(known[k]),
            "text": None if texts is None else texts[rank],
            "count": int(count[k]),
            "mean": float(total[k] / count[k]),
            "sum_abs": float(size[k]),
            "share": float(size[k]) / all_of_it if all_of_it else 0.0,
            "responses": int(num_responses[k]),
        }
        for rank, k in enumerate(order)
    ]
    return {"rows": rows, "total_abs": all_of_it}
