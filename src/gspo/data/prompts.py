"""Rows to prompts.

`data.columns` of the recipe says which columns hold the prompt and the answer; every other column
goes to the verifier under its own name. `id`, if there is one, names the prompt. A null counts as a
missing column. What is wrong with a row is named by file and row, and is an error, or drops the row
and is counted. A prompt that comes again is kept, and counted in the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gspo.data.files import Row
from gspo.data.layouts import ColumnMap, RowError, named_columns, no_column
from gspo.data.report import DataReport, Tally
from gspo.data.sources import source_rows
from gspo.errors import DataError
from gspo.types import Prompt

DIGEST_CHARACTERS = 8
BadRows = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class LoadedPrompts:
    """Prompts in the order of their rows; `ids` are empty until a tokenizer fills them."""

    prompts: list[Prompt]
    report: DataReport


def load_prompts(
    source: str | Path,
    *,
    columns: ColumnMap | None = None,
    subset: str | None = None,
    split: str | None = None,
    bad_rows: BadRows = "error",
) -> LoadedPrompts:
    """All prompts of a file, a folder or a hub data set.

    columns: our name -> the data's; {"answer": None}: there are no answers. bad_rows: what happens
    to a row without prompt or answer, or with an id that came before. DataError: what a file can
    have wrong, and no row left.
    """
    collected = _Collected(columns or {}, Path(source).stem, bad_rows)
    for row in source_rows(str(source), subset=subset, split=split):
        collected.add(row)
    prompts = collected.finished()
    if not collected.num_rows:
        raise DataError(f"{source} holds no row; wanted at least one prompt")
    report = DataReport(
        source=str(source),
        rows=collected.num_rows,
        kept=len(prompts),
        dropped=collected.dropped.counted(),
        notes=collected.notes.counted(),
    )
    if not prompts:
        raise DataError("no row is left:\n" + "\n".join(report.lines()))
    return LoadedPrompts(prompts, report)


@dataclass(slots=True)
class _Collected:
    """Prompts so far, and what their rows had wrong."""

    columns: ColumnMap
    source: str
    bad_rows: BadRows
    num_rows: int = 0
    dropped: Tally = field(default_factory=Tally)
    notes: Tally = field(default_factory=Tally)
    _kept: list[tuple[Row, Prompt]] = field(default_factory=list[tuple[Row, Prompt]])
    _row_of_id: dict[str, str] = field(default_factory=dict[str, str])
    _before: dict[bytes, tuple[str, bytes]] = field(default_factory=dict[bytes, tuple[str, bytes]])

    def add(self, row: Row) -> None:
        """One more row."""
        self.num_rows += 1
        try:
            prompt = _prompt(row, self.columns, self.source)
            if prompt.id in self._row_of_id:
                raise RowError(
                    "the id was given before",
                    row,
                    f"id {prompt.id!r} was given before, at {self._row_of_id[prompt.id]}; ids name prompts in every record and must differ",
                )
        except RowError as error:
            self._refuse(error)
            return
        self._row_of_id[prompt.id] = row.where
        self._kept.append((row, prompt))

    def finished(self) -> list[Prompt]:
        """All prompts: with answers, or none of them with one."""
        answered = any(prompt.answer is not None for _, prompt in self._kept)
        prompts: list[Prompt] = []
        for row, prompt in self._kept:
            if answered and prompt.answer is None:
                self._refuse(no_column(row, "answer"))
                continue
            self._note_repeat(row, prompt)
            prompts.append(prompt)
        return prompts

    def _refuse(self, error: RowError) -> None:
        if self.bad_rows == "error":
            raise error
        self.dropped.add(error.kind, str(error))

    def _note_repeat(self, row: Row, prompt: Prompt) -> None:
        content, answer = _digest(prompt.messages or prompt.text), _digest(prompt.answer)
        if content not in self._before:
            self._before[content] = row.where, answer
            return
        where, before = self._before[content]
        what = "the prompt came before" + ("" if answer == before else ", with another answer")
        self.notes.add(what, f"{row.where}, as {where}")


def _prompt(row: Row, columns: ColumnMap, source: str) -> Prompt:
    values = named_columns(row, columns)
    if "prompt" not in values:
        raise no_column(row, "prompt")
    content = values.pop("prompt")
    answer = None if columns.get("answer", "answer") is None else values.pop("answer", None)
    if isinstance(answer, str) and not answer.strip():
        raise RowError(
            "the answer is empty", row, "column 'answer' is empty; wanted an answer (data.columns)"
        )
    messages = None if isinstance(content, str) else _messages(content, row)
    last = content if messages is None else messages[-1].get("content")
    if not isinstance(last, str) or not last.strip():
        raise RowError(
            "the prompt is empty",
            row,
            f"the prompt is {last!r}; wanted text that is not blank (data.columns.prompt)",
        )
    name, named_source = values.pop("id", None), values.get("data_source")
    return Prompt(
        id=_row_id(row, content) if name is None else str(name),
        text=content if isinstance(content, str) else "",
        ids=(),
        answer=answer,
        source=named_source if isinstance(named_source, str) else source,
        messages=messages,
        columns=values,
    )


def _messages(content: Any, row: Row) -> Sequence[Mapping[str, Any]]:
    """A conversation that waits for an answer. Keys that hold null are left out, as the tables of
    Parquet fill them in."""
    if not isinstance(content, list) or not content:
        raise RowError(
            "the prompt is neither text nor messages",
            row,
            f"the prompt is {content!r}; wanted text or a list of messages",
        )
    for message in content:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise RowError(
                "a message without role or content",
                row,
                f"a message is {message!r}; wanted an object with 'role' and 'content'",
            )
    if content[-1]["role"] == "assistant":
        raise RowError(
            "the last message is the assistant's",
            row,
            f"the last message's role is {content[-1]['role']!r}; wanted a prompt that waits for the assistant's answer",
        )
    return [{key: v for key, v in message.items() if v is not None} for message in content]


def _row_id(row: Row, content: Any) -> str:
    """Row number and a digest of the prompt: another file's row of this number is another id."""
    return f"{row.number}-{_digest(content).hex()[:DIGEST_CHARACTERS]}"


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).digest()


def repeated(prompts: Iterable[Prompt], others: Iterable[Prompt]) -> list[str]:
    """Ids of those prompts that are among the others too, whatever they are called there."""
    seen = {_digest(prompt.messages or prompt.text) for prompt in others}
    return [p.id for p in prompts if _digest(p.messages or p.text) in seen]
