"""Responses that say how far log s moves: off-policy, with an advantage, measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gspo.errors import DataError, nearest

if TYPE_CHECKING:
    from gspo.recorders.reader import Run

#: All that is read of a step; the texts and token lists stay on disk.
COLUMNS = ("group", "advantage", "length", "minibatch", "log_s", "cut_low", "cut_high")
NEEDED = ("log_s", "advantage", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """S responses, in order of their steps. log_s: nats. length: trained tokens, at least 1.
    group: from 0, the same number only for responses to one prompt in one step. cut: the run's
    own clip cut something of it."""

    step: Int[Tensor, "S"]
    group: Int[Tensor, "S"]
    advantage: Float[Tensor, "S"]
    length: Int[Tensor, "S"]
    log_s: Float[Tensor, "S"]
    cut: Bool[Tensor, "S"]

    @property
    def num_groups(self) -> int:
        """Groups that hold any of them."""
        return int(self.group.max()) + 1 if self.group.numel() else 0

    def where(self, rows: Bool[Tensor, "S"]) -> Samples:
        """These responses only; groups keep their numbers."""
        return Samples(
            step=self.step[rows],
            group=self.group[rows],
            advantage=self.advantage[rows],
            length=self.length[rows],
            log_s=self.log_s[rows],
            cut=self.cut[rows],
        )


def samples_of_run(run: Run) -> Samples:
    """Every step that can be read; the others are then in `run.damaged`."""
    steps: list[Mapping[str, Tensor]] = []
    for step, table in run.responses(COLUMNS):
        columns = {name: _tensor(table[name], name) for name in COLUMNS}
        steps.append(_select(columns | {"step": torch.full((table.num_rows,), float(step))}))
    return _join(steps)


def samples_of_records(records: Any) -> Samples:
    """Rows in memory: mappings, or a table with columns by name (pyarrow, pandas, a mapping).

    Columns as in steps/NNNNNN.parquet. log_s, advantage and length are needed; without minibatch
    all count as off-policy, without group each response is a group of its own. Raises DataError
    for a missing column.
    """
    columns = _columns(records)
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise DataError(
            f"records have no {missing[0]!r}; {nearest(missing[0], columns)}. Wanted are {', '.join(NEEDED)}, and group, step, minibatch where there are any"
        )
    tensors = {name: _tensor(values, name) for name, values in columns.items()}
    size = tensors["log_s"].numel()
    if uneven := [name for name, values in tensors.items() if values.numel() != size]:
        raise DataError(
            f"records have {size} values of log_s and {tensors[uneven[0]].numel()} of {uneven[0]}; wanted one a response"
        )
    zeros = torch.zeros(size, dtype=torch.float64)
    defaults = {"step": zeros, "cut_low": zeros, "cut_high": zeros, "minibatch": zeros + 2}
    own_group = torch.arange(size, dtype=torch.float64)
    return _join([_select({"group": own_group, **defaults, **tensors})])


def _columns(records: Any) -> dict[str, Any]:
    wanted = {*COLUMNS, "step"}
    if isinstance(records, Sequence):
        rows = [row for row in records if isinstance(row, Mapping)]
        if len(rows) != len(records) or not rows:
            raise DataError(
                f"records are {len(records)} values of which {len(rows)} are mappings; wanted one mapping a response"
            )
        return {name: [row.get(name) for row in rows] for name in wanted & rows[0].keys()}
    names = getattr(records, "column_names", None) or getattr(records, "columns", None)
    names = records.keys() if names is None else names
    return {name: records[name] for name in wanted & set(names)}


def _tensor(values: Any, name: str) -> Float[Tensor, "S"]:
    """float64; null is NaN. Accepts lists, tensors, numpy, pandas and Arrow columns."""
    import numpy as np

    if isinstance(values, Tensor):
        return values.detach().double()
    try:
        return torch.tensor(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name!r} does not hold numbers: {error}") from error


def _select(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    rows = (
        (columns["minibatch"] > 1)
        & (columns["advantage"] != 0)
        & columns["advantage"].isfinite()
        & columns["log_s"].isfinite()
        & (columns["length"] > 0)
    )
    return {name: values[rows] for name, values in columns.items()}


def _join(steps: Sequence[Mapping[str, Tensor]]) -> Samples:
    empty = torch.zeros(0, dtype=torch.float64)
    names = (*COLUMNS, "step")
    joined = {name: torch.cat([empty, *(part[name] for part in steps)]) for name in names}
    place = torch.stack([joined["step"], joined["group"]], dim=1)
    _, group = place.unique(dim=0, return_inverse=True) if len(place) else (None, empty.long())
    return Samples(
        step=joined["step"].long(),
        group=group,
        advantage=joined["advantage"],
        length=joined["length"].long(),
        log_s=joined["log_s"],
        cut=(joined["cut_low"] + joined["cut_high"]) > 0,
    )
