"""The responses of a step: a table that can be searched and sorted, and each of them whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gspo.dashboard.answers_units import units
from gspo.dashboard.cancelling import cancelling_pairs
from gspo.dashboard.folder import NotFoundError, RunFolderView
from gspo.dashboard.plain import finite, finite_list, short
from gspo.dashboard.tables import SCALARS, TEXTS, TOKENS

ROW_CHARS = 400
DETAIL_CHARS = 2**16
FULL_CHARS = 4_000_000
NUM_PAIRS = 20
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet run a cell
CSV_WORDS = ("prompt_id", "source", "finish", "skipped", "failure", "prompt", "text")

Sort = Literal["row", "reward", "advantage", "length", "log_s", "group"]
Unit = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseQuery:
    """Which responses, in which order; None takes all. search: plain text, whatever the case, in
    prompt, response, prompt_id and failure."""

    search: str | None = None
    group: int | None = None
    finish: str | None = None
    cut: Literal["low", "high", "any", "none"] | None = None
    advantage: Literal["positive", "negative", "zero"] | None = None
    verdict: Literal["failed", "scored"] | None = None
    reward_min: float | None = None
    reward_max: float | None = None
    length_min: float | None = None
    length_max: float | None = None
    minibatch: int | None = None
    sort: Sort = "row"
    descending: bool = False
    offset: int = 0
    limit: int = 50


def responses(run: RunFolderView, step: int, query: ResponseQuery) -> dict[str, Any]:
    """A page of the table. Raises NotFoundError."""
    columns = units(run, step)
    rows = _rows(columns)
    found = [row for row in rows if all(test(query, row) for test in TESTS)]
    if query.search:
        found = _searched(run, step, query.search, found)
    page = _sorted(found, query)[query.offset : query.offset + query.limit]
    texts = run.table(step, TEXTS)
    return {
        "total": len(rows),
        "matched": len(found),
        "offset": query.offset,
        "rows": [row | _texts(texts, row["row"], ROW_CHARS, ROW_CHARS) for row in page],
    }


def response(run: RunFolderView, step: int, row: int, full: bool = False) -> dict[str, Any]:
    """One response with its tokens, their log-probs, and the pairs of them that cancel. Raises
    NotFoundError."""
    rows = _rows(units(run, step))
    if not 0 <= row < len(rows):
        raise NotFoundError(f"step {step} has no response {row}: it has 0 to {len(rows) - 1}")
    chars = FULL_CHARS if full else DETAIL_CHARS
    texts, table = run.table(step, TEXTS), run.table(step, TOKENS)
    tokens = {name: table.column(name)[row].as_py() for name in TOKENS}
    ids: list[int] = [-1 if i is None else i for i in tokens["tokens"]]
    logp = {name: None if v is None else finite_list(v) for name, v in tokens.items()}
    failure = run.table(step, SCALARS).column("failure")[row].as_py()
    return {
        **rows[row],
        **_texts(texts, row, chars, chars),
        "failure": failure if failure is None else failure[:chars],
        "tokens": {
            "id": ids,
            "text": run.token_texts(ids),
            "logp": logp["logp"],
            "old_logp": logp["old_logp"],
            "engine_logp": logp["engine_logp"],
        },
        "pairs": cancelling_pairs(tokens["logp"], tokens["old_logp"], NUM_PAIRS),
    }


def responses_csv(run: RunFolderView, step: int) -> str:
    """Every response of a step as comma-separated values, whole. Raises NotFoundError."""
    columns = units(run, step) | {"prompt": [], "text": []}
    for name in CSV_WORDS:
        table = run.table(step, TEXTS if name in TEXTS else SCALARS)
        columns[name] = [_harmless(cell) for cell in table.column(name).to_pylist()]
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def _harmless(cell: str | None) -> str | None:
    return f"'{cell}" if cell and cell.startswith(FORMULA) else cell


def _rows(columns: dict[str, list[Any]]) -> list[Unit]:
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _texts(table: Any, row: int, prompt_chars: int, text_chars: int) -> dict[str, Any]:
    prompt, text, parts = (table.column(name)[row].as_py() for name in TEXTS)
    return {
        "prompt": prompt[:prompt_chars],
        "prompt_num_chars": len(prompt),
        "text": text[:text_chars],
        "num_chars": len(text),
        "parts": {short(name): finite(value) for name, value in parts},
    }


def _searched(run: RunFolderView, step: int, search: str, rows: list[Unit]) -> list[Unit]:
    wanted = search.casefold()
    table = run.table(step, TEXTS)
    prompts, texts = (table.column(name).to_pylist() for name in ("prompt", "text"))

    def has(row: Unit) -> bool:
        fields = (prompts[row["row"]], texts[row["row"]], row["prompt_id"], row["failure"])
        return any(field is not None and wanted in field.casefold() for field in fields)

    return [row for row in rows if has(row)]


def _sorted(rows: list[Unit], query: ResponseQuery) -> list[Unit]:
    """In order of the column, then of the rows; those without a value come last either way."""
    filled = [row for row in rows if row[query.sort] is not None]
    empty = [row for row in rows if row[query.sort] is None]
    sign = -1 if query.descending else 1
    return sorted(filled, key=lambda row: sign * row[query.sort]) + empty


def _cut(query: ResponseQuery, row: Unit) -> bool:
    low, high = row["cut_low"] > 0, row["cut_high"] > 0
    cuts = {None: True, "low": low, "high": high, "any": low or high, "none": not (low or high)}
    return cuts[query.cut]


def _advantage(query: ResponseQuery, row: Unit) -> bool:
    advantage = row["advantage"] or 0.0
    signs = {None: True, "positive": advantage > 0, "negative": advantage < 0}
    return signs.get(query.advantage, advantage == 0)


def _verdict(query: ResponseQuery, row: Unit) -> bool:
    return query.verdict is None or (row["reward"] is None) == (query.verdict == "failed")


def _between(name: str) -> Callable[[ResponseQuery, Unit], bool]:
    """Both ends belong to it; without a value it is in no range."""

    def test(query: ResponseQuery, row: Unit) -> bool:
        low, high = getattr(query, f"{name}_min"), getattr(query, f"{name}_max")
        if low is None and high is None:
            return True
        value = row[name]
        return (
            value is not None and (low is None or value >= low) and (high is None or value <= high)
        )

    return test


def _equal(name: str) -> Callable[[ResponseQuery, Unit], bool]:
    return lambda query, row: getattr(query, name) in (None, row[name])


TESTS: Sequence[Callable[[ResponseQuery, Unit], bool]] = (
    _equal("group"),
    _equal("finish"),
    _equal("minibatch"),
    _cut,
    _advantage,
    _verdict,
    _between("reward"),
    _between("length"),
)
