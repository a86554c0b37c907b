"""The pass rate of each training prompt under the policy a run would start from.

Two files: the rates of all prompts, a row as soon as it is measured, from which an interrupted
measurement goes on; and the prompts of the middle range, for `data.only`, or as data of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gspo.diagnostics.rollouts import PASS_REWARD
from gspo.engines.base import Engine, Sampling
from gspo.errors import DataError
from gspo.recipes.prepare import Prepared
from gspo.recipes.schema import FileData, Recipe
from gspo.recorders.console import Advance
from gspo.recorders.durable import new_folder, write_text
from gspo.recorders.jsonl import JsonLines, line
from gspo.trainer.clock import Clock
from gspo.trainer.judge import StepJudge
from gspo.types import Group, Prompt

STREAM = "prompts"  # of random numbers: apart from training's and evaluation's


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRate:
    """One prompt. scored: of its `samples` responses, those with a verdict; pass_rate is of these,
    None without any. of: digest of all it depends on."""

    id: str
    pass_rate: float | None
    reward_mean: float | None
    scored: int
    samples: int
    truncated: int
    mean_tokens: float
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the two files go."""

    rates: Path
    middle: Path


def places(recipe: Recipe, to: Path | None) -> Places:
    """Beside the data; for data that are no local file, in the working folder. `to`: of the prompts
    of the middle range; the rates lie beside it."""
    data = recipe.data
    if to is not None:
        if to.suffix != ".jsonl":
            raise DataError(f"--to is {to}, wanted a name that ends in .jsonl")
        found = Places(rates=to.with_suffix(".rates.jsonl"), middle=to)
    else:
        local = isinstance(data, FileData) and Path(data.path).is_file()
        named = Path(data.path or data.task or "")
        stem = named.with_suffix("") if local else Path(named.name)
        found = Places(
            rates=stem.with_name(f"{stem.name}.rates.jsonl"),
            middle=stem.with_name(f"{stem.name}.middle.jsonl"),
        )
    for path in (found.rates, found.middle):
        _refuse_others(path)
    return found


def _refuse_others(path: Path) -> None:
    """What is there may only be an earlier measurement."""
    if path.exists() and any("pass_rate" not in row for row in _rows(path)[:1]):
        raise DataError(
            f"{path} holds something else than pass rates; choose another name with --to"
        )


def measure(
    engine: Engine,
    recipe: Recipe,
    prepared: Prepared,
    sampling: Sampling,
    path: Path,
    advance: Advance,
) -> list[PassRate]:
    """Every prompt's rate, in data order. Rows of `path` that were measured in the same way are
    taken over; the others are measured now and appended, one by one."""
    setting = _setting(recipe, prepared, sampling)
    keys = {prompt.id: _key(setting, prompt) for prompt in prepared.prompts}
    found = {row["id"]: PassRate(**row) for row in _rows(path) if keys.get(row["id"]) == row["of"]}
    new_folder(path.parent)
    write_text(path, "".join(line(asdict(rate)) for rate in found.values()))
    advance(len(found))
    judge = StepJudge(prepared.verifier, Clock(), (), recipe.verifier.max_failed_share)
    left = [prompt for prompt in prepared.prompts if prompt.id not in found]
    file = JsonLines(path)
    try:
        for group in engine.generate(left, sampling) if left else ():
            (judged,) = judge([group])
            rate = _rate(judged, keys[group.prompt.id])
            file.append(asdict(rate))
            found[rate.id] = rate
            advance(1)
    finally:
        file.close()
    return [found[prompt.id] for prompt in prepared.prompts]


def in_range(rate: PassRate, kept_range: tuple[float, float]) -> bool:
    """Measured, and strictly between."""
    above, below = kept_range
    return rate.pass_rate is not None and above < rate.pass_rate < below


def write_middle(
    path: Path,
    prompts: Sequence[Prompt],
    rates: Sequence[PassRate],
    kept_range: tuple[float, float],
    *,
    with_columns: bool,
) -> None:
    """Rows of the prompts in the range, as a file of data with the column pass_rate."""
    rows = [
        _row(prompt, rate, with_columns)
        for prompt, rate in zip(prompts, rates, strict=True)
        if in_range(rate, kept_range)
    ]
    write_text(
        path, "".join(json.dumps(row, ensure_ascii=False, default=_refuse) + "\n" for row in rows)
    )


def _refuse(value: object) -> None:
    raise DataError(
        f"the data hold a {type(value).__name__}, {repr(value)[:40]}, which no JSONL file can; write that column as text or numbers"
    )


def _row(prompt: Prompt, rate: PassRate, with_columns: bool) -> dict[str, Any]:
    answer = {} if prompt.answer is None else {"answer": prompt.answer}
    return {
        **(prompt.columns if with_columns else {}),
        "id": prompt.id,
        "prompt": prompt.messages or prompt.text,
        **answer,
        "pass_rate": rate.pass_rate,
    }


def _rate(group: Group, key: str) -> PassRate:
    rewards, lengths = group.rewards, [len(r.response_ids) for r in group.rollouts]
    passes = sum(reward > PASS_REWARD for reward in rewards)
    return PassRate(
        id=group.prompt.id,
        pass_rate=passes / len(rewards) if rewards else None,
        reward_mean=sum(rewards) / len(rewards) if rewards else None,
        scored=len(rewards),
        samples=len(group.rollouts),
        truncated=sum(rollout.finish == "length" for rollout in group.rollouts),
        mean_tokens=sum(lengths) / len(lengths),
        of=key,
    )


def _setting(recipe: Recipe, prepared: Prepared, sampling: Sampling) -> dict[str, Any]:
    """All that a rate depends on, beside the prompt."""
    folder = recipe.model.path
    files = sorted(Path(folder).glob("*")) if folder else []
    cold = recipe.coldstart
    return {
        "model": recipe.model.model_dump(mode="json"),
        "files": [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files],
        "coldstart": None if cold is None else cold.model_dump(mode="json", exclude={"cache"}),
        "options": recipe.data.model_dump(mode="json").get("options"),
        "verifier": recipe.verifier.model_dump(mode="json"),
        "function": prepared.verifier_digest,
        "tokenizer": prepared.tokenizer_digest(),
        "sampling": asdict(sampling),
    }


def _key(setting: Mapping[str, Any], prompt: Prompt) -> str:
    content = [setting, list(prompt.ids), prompt.answer, dict(prompt.columns)]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rows(path: Path) -> list[dict[str, Any]]:
    """Whole rows; what a kill cut short is none."""
    rows: list[dict[str, Any]] = []
    for text in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            row = json.loads(text)
        except ValueError:
            continue
        rows += [row] if isinstance(row, dict) else []
    return rows
