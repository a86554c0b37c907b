"""`gspo verify`: try a verifier by hand on written responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean
from gspo.errors import DataError, RecipeError

if TYPE_CHECKING:
    from gspo.data.files import Row
    from gspo.types import Prompt, Rollout, Verdict
    from gspo.verifiers.exact import ExactVerifier
    from gspo.verifiers.function import FunctionVerifier

OWN_COLUMNS = ("id", "prompt", "answer", "completion")


class Kind(StrEnum):
    """Verifiers that can be tried; the last two are those of the tasks."""

    exact = "exact"
    function = "function"
    addition = "addition"
    countdown = "countdown"


TASKS = (Kind.addition, Kind.countdown)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify)


def verify(
    kind: Annotated[Kind, typer.Argument(help="Which verifier.")],
    file: Annotated[
        Path,
        typer.Argument(
            help="JSONL: a row has completion, id, and the columns the verifier reads, as answer."
        ),
    ],
    function: Annotated[str | None, typer.Option(help="file.py:name, for kind function.")] = None,
    marker: Annotated[
        str | None, typer.Option(help="Text the answer stands behind, for kind exact.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Judge written responses of a file."""
    with stdout_kept_clean():
        verifier = _verifier(kind, function, marker)
        verdicts = [
            {"id": row_id, "reward": verdict.reward, "failure": verdict.failure}
            for row_id, verdict in _judged(verifier, file, kind)
        ]
    if json:
        print_json({"verdicts": verdicts})
    else:
        print_table(("id", "reward", "failure"), [tuple(verdict.values()) for verdict in verdicts])


def _verifier(
    kind: Kind, function: str | None, marker: str | None
) -> ExactVerifier | FunctionVerifier:
    from gspo.data.tasks import make_task
    from gspo.verifiers.exact import ExactVerifier
    from gspo.verifiers.function import FunctionVerifier
    from gspo.verifiers.loading import load_function

    for name, value, owner in (
        ("--function", function, Kind.function),
        ("--marker", marker, Kind.exact),
    ):
        if value is not None and kind is not owner:
            raise RecipeError(f"{name} is of kind {owner}, not of {kind}; leave it out")
    if kind is Kind.exact:
        return ExactVerifier(marker)
    if kind is Kind.function:
        if function is None:
            raise RecipeError("kind function needs --function file.py:name")
        return FunctionVerifier(load_function(function).function, function)
    return FunctionVerifier(make_task(kind).reward, kind)


def _judged(
    verifier: ExactVerifier | FunctionVerifier, file: Path, kind: Kind
) -> Iterator[tuple[Any, Verdict]]:
    from gspo.data.files import read_rows

    num_rows = 0
    for row in read_rows(file):
        num_rows += 1
        prompt, rollout = _written(row)
        if kind in TASKS and isinstance(prompt.answer, int):
            prompt = replace(prompt, answer=str(prompt.answer))  # tasks write their answers as text
        yield row.values.get("id", row.number), _verdict(verifier, prompt, rollout)
    if num_rows == 0:
        raise DataError(f"{file} holds no row; wanted rows with id, completion and answer")


def _verdict(
    verifier: ExactVerifier | FunctionVerifier, prompt: Prompt, rollout: Rollout
) -> Verdict:
    """A row that the verifier cannot take is a failed one; the others are judged all the same."""
    from gspo.types import Verdict

    try:
        verifier.check(prompt)
    except DataError as error:
        return Verdict.failed(str(error))
    return verifier.judge(prompt, [rollout])[0]


def _written(row: Row) -> tuple[Prompt, Rollout]:
    """A row as a prompt and a response that nobody sampled."""
    from gspo.types import Prompt, Rollout

    values = row.values
    completion = values.get("completion")
    if not isinstance(completion, str):
        raise DataError(
            f"{row.where}: completion is {completion!r}, wanted text; the row has "
            f"{', '.join(sorted(values))}"
        )
    asked = values.get("prompt", "")
    prompt = Prompt(
        id=str(values.get("id", row.number)),
        text=asked if isinstance(asked, str) else "",
        ids=(),
        answer=values.get("answer"),
        messages=asked if isinstance(asked, list) else None,
        columns={
            name: value
            for name, value in values.items()
            if name not in OWN_COLUMNS and value is not None
        },
    )
    rollout = Rollout(
        prompt_ids=(),
        response_ids=(),
        trained=(),
        engine_logp=(),
        text=completion,
        finish="stop",
        version=0,
    )
    return prompt, rollout
