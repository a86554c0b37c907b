"""Files of rows to prompts: JSONL, CSV and Parquet.

The column that holds the prompt and the one that holds the answer are named by the recipe; every
other column goes to the verifier under its own name. `id`, if there is one, names the prompt. A
null counts as a missing column. Every error names the file and the row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gspo.data.files import Row, read_rows
from gspo.errors import DataError
from gspo.types import Prompt

DIGEST_CHARACTERS = 8


def load_prompts(
    path: str | Path, *, prompt: str = "prompt", answer: str | None = "answer", source: str = ""
) -> list[Prompt]:
    """All prompts of a file, in its order; `ids` are empty until a tokenizer fills them.

    prompt, answer: names of columns; None: there are no answers. source: recorded with every
    response, the file's name without it. DataError: what a file can have wrong, no row, a missing
    column, an empty prompt or answer, an id that comes twice.
    """
    path = Path(path)
    prompts = prompts_of(read_rows(path), prompt, answer, source or path.stem)
    if not prompts:
        raise DataError(f"{path} holds no row; wanted at least one prompt")
    return prompts


def prompts_of(
    rows: Iterable[Row], prompt_column: str, answer_column: str | None, source: str
) -> list[Prompt]:
    """One prompt a row."""
    prompts: list[Prompt] = []
    place_of: dict[str, str] = {}
    for row in rows:
        prompt = _prompt(row, prompt_column, answer_column, source)
        if prompt.id in place_of:
            raise DataError(
                f"{row.where}: id {prompt.id!r} was given before, at {place_of[prompt.id]}; ids name prompts in every record and must differ"
            )
        place_of[prompt.id] = row.where
        prompts.append(prompt)
    return prompts


def _prompt(row: Row, prompt_column: str, answer_column: str | None, source: str) -> Prompt:
    columns = {name: value for name, value in row.values.items() if value is not None}
    content = _taken(columns, prompt_column, row)
    answer = None if answer_column is None else _taken(columns, answer_column, row)
    if isinstance(answer, str) and not answer.strip():
        raise DataError(f"{row.where}: column {answer_column!r} is empty; wanted an answer")
    messages = None if isinstance(content, str) else _messages(content, row)
    last = content if messages is None else messages[-1]["content"]
    if not isinstance(last, str) or not last.strip():
        raise DataError(
            f"{row.where}: the prompt is {last!r}; wanted text that is not blank (column {prompt_column!r})"
        )
    name = columns.pop("id", None)
    return Prompt(
        id=_row_id(row, content) if name is None else str(name),
        text=content if isinstance(content, str) else "",
        ids=(),
        answer=answer,
        source=source,
        messages=messages,
        columns=columns,
    )


def _taken(columns: dict[str, Any], name: str, row: Row) -> Any:
    """The value of a column that must be there, taken out of the rest."""
    if name not in columns:
        raise DataError(
            f"{row.where}: no column {name!r}; the row has {', '.join(sorted(row.values)) or 'none'}"
        )
    return columns.pop(name)


def _messages(content: Any, row: Row) -> Sequence[Mapping[str, Any]]:
    """A conversation that waits for an answer."""
    if not isinstance(content, list) or not content:
        raise DataError(
            f"{row.where}: the prompt is {content!r}; wanted text or a list of messages"
        )
    for message in content:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise DataError(
                f"{row.where}: a message is {message!r}; wanted an object with 'role' and 'content'"
            )
    if content[-1]["role"] == "assistant":
        raise DataError(
            f"{row.where}: the last message's role is {content[-1]['role']!r}; wanted a prompt that waits for the assistant's answer"
        )
    return content


def _row_id(row: Row, content: Any) -> str:
    """Row number and a digest of the prompt: another file's row of this number is another id."""
    text = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{row.number}-{digest[:DIGEST_CHARACTERS]}"
