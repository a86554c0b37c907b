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
    from gspo.types import Prompt, Rollout
    from gspo.verifiers.base import Verifier

OWN_COLUMNS = ("id", "prompt", "answer", "completion")


class Kind(StrEnum):
    """Verifiers that can be tried; the last two are those of the tasks."""

    exact = "exact"
    math = "math"
    code = "code"
    function = "function"
    regex = "regex"
    form = "format"
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
    function: Annotated[str | None, typer.Option(help="function: file.py:name.")] = None,
    marker: Annotated[
        str | None, typer.Option(help="exact: text the answer stands behind.")
    ] = None,
    pattern: Annotated[str | None, typer.Option(help="regex: the pattern.")] = None,
    answer_in: Annotated[
        str | None, typer.Option(help="math: any, box, tag, hash, phrase or bare.")
    ] = None,
    exact_form: Annotated[
        bool | None, typer.Option("--exact-form", help="math: the strict comparison.")
    ] = None,
    sandbox: Annotated[
        str | None, typer.Option(help="code: auto, gvisor, bubblewrap, kernel or none.")
    ] = None,
    limit_s: Annotated[
        float | None, typer.Option(help="function, math, code, regex: seconds a verdict.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Judge written responses of a file."""
    settings = {
        "function": function,
        "marker": marker,
        "pattern": pattern,
        "answer_in": answer_in,
        "exact_form": exact_form,
        "sandbox": sandbox,
        "limit_s": limit_s,
    }
    with stdout_kept_clean():
        verifier = _verifier(kind, {name: v for name, v in settings.items() if v is not None})
        verdicts = list(_judged(verifier, file, kind))
    if json:
        print_json({"verdicts": verdicts})
    else:
        header = tuple(verdicts[0])
        print_table(header, [tuple(verdict.values()) for verdict in verdicts])


def _verifier(kind: Kind, settings: dict[str, Any]) -> Verifier:
    from pydantic import ValidationError

    from gspo.data.tasks import make_task
    from gspo.recipes.judges import build_grader
    from gspo.recipes.verifier_section import NEEDED, SETTINGS_OF, GraderSection

    for name in settings:
        option = f"--{name.replace('_', '-')}"
        if kind not in SETTINGS_OF[name]:
            raise RecipeError(
                f"{option} is of kind {' or '.join(SETTINGS_OF[name])}, not of {kind}; leave it out"
            )
    if kind in TASKS:
        return build_grader(GraderSection(kind="task"), 0, make_task(kind), [])
    for name in NEEDED.get(kind.value, ()):
        if name not in settings:
            what = " file.py:name" if name == "function" else " TEXT"
            raise RecipeError(f"kind {kind} needs --{name.replace('_', '-')}{what}")
    try:
        section = GraderSection.model_validate({"kind": kind.value, **settings})
    except ValidationError as error:
        first = error.errors()[0]
        raise RecipeError(
            f"--{str(first['loc'][0]).replace('_', '-')} is {first['input']!r}: {first['msg']}"
        ) from None
    return build_grader(section, 0, None, [])


def _judged(verifier: Verifier, file: Path, kind: Kind) -> Iterator[dict[str, Any]]:
    from gspo.data.files import read_rows

    num_rows = 0
    for row in read_rows(file):
        num_rows += 1
        prompt, rollout = _written(row)
        if kind in TASKS and isinstance(prompt.answer, int):
            prompt = replace(prompt, answer=str(prompt.answer))  # tasks write their answers as text
        yield {"id": row.values.get("id", row.number), **_verdict(verifier, prompt, rollout)}
    if num_rows == 0:
        raise DataError(f"{file} holds no row; wanted rows with id, completion and answer")


def _verdict(verifier: Verifier, prompt: Prompt, rollout: Rollout) -> dict[str, Any]:
    """A row that the verifier cannot take is a failed one; the others are judged all the same. Why
    there is no reward of 1, where the verifier can say it."""
    from gspo.verifiers.base import Explains, check_prompts

    explains = isinstance(verifier, Explains)
    try:
        check_prompts(verifier, [prompt])
    except DataError as error:
        failed = {"reward": None, "failure": str(error)}
        return {**failed, "reason": None} if explains else failed
    if explains:
        verdict, reason = verifier.explained(prompt, rollout)
        return {"reward": verdict.reward, "failure": verdict.failure, "reason": reason}
    verdict = verifier.judge(prompt, [rollout])[0]
    return {"reward": verdict.reward, "failure": verdict.failure}


def _written(row: Row) -> tuple[Prompt, Rollout]:
    """A row as a prompt and a response that nobody sampled."""
    from gspo.types import Prompt
    from gspo.verifiers.written import written

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
    return prompt, written(completion)
