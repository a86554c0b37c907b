"""Runs whose every text is out of the corpus: names, prompts, responses, reasons, sources, tokens,
causes of alarms, settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gspo.recorders.base import ResponseRow
from gspo.types import Alarm
from tests.browser.corpus import CORPUS
from tests.browser.made_steps import made_step
from tests.browser.recorded import Recording, save_tokenizer

GROUP = 45  # responses; two groups hold the corpus once
NAME_CHARS, NAME_BYTES = 60, 200
SHORT = [text for text in CORPUS if 0 < len(text) < 2_000]
PIECES = [text.encode("utf-8", "replace").decode() for text in SHORT]


def hostile_run(folder: Path) -> Path:
    """Two steps: each response has another text. Row k of a step has CORPUS[k]."""
    with Recording(folder, "hostile", responses=2 * GROUP, group=GROUP, tokenizer=False) as run:
        save_tokenizer(run.path / "checkpoints" / "step-000000" / "model", PIECES)
        run.evaluate()
        for step in (1, 2):
            rows, stats = made_step(run.shape, step)
            run.run.step(step, stats, [_hostile(row, at) for at, row in enumerate(rows)])
        for text in CORPUS:
            run.run.alarm(Alarm(2, text[:100], 0.5, 0.1, text, text))
        run.run.event("clip_fixed", step=2, low=1e-3, high=1e-3, phase=SHORT[0], low_held=SHORT[8])
        run.run.event("stopped", step=2, reason=SHORT[0])
        _spoil(run.path)
    return run.path


def _hostile(row: ResponseRow, at: int) -> ResponseRow:
    text = CORPUS[at % len(CORPUS)]
    short = SHORT[at % len(SHORT)]
    return replace(
        row,
        prompt_id=short,
        source=short,
        prompt=CORPUS[(at + 1) % len(CORPUS)],
        text=text,
        tokens=[(at + k) % len(PIECES) for k in range(row.length)],
        parts={} if row.reward is None else {short: 1.0, "__proto__": 2.0},
        failure=text if row.reward is None or at % 3 else None,
        finish=short,
        skipped=short if row.logp is None else None,
    )


def _spoil(path: Path) -> None:
    """Settings and facts about the run."""
    info = json.loads((path / "run.json").read_text())
    info["versions"] = {text: text for text in SHORT[:30]}
    info |= {text: text for text in SHORT[30:]}
    (path / "run.json").write_text(json.dumps(info))
    lines = [f"  {json.dumps(text)}: {json.dumps(text)}\n" for text in PIECES]
    with (path / "recipe.yaml").open("a", encoding="utf-8") as file:
        file.writelines(["hostile:\n", *lines])


def hostile_names(folder: Path, of: Path) -> Iterator[Path]:
    """Copies of a run, small: each has a name, an alarm and a reason to stop out of the corpus."""
    for number, text in enumerate(CORPUS):
        path = folder / _name(number, text)
        path.mkdir()
        for name in ("run.json", "metrics.jsonl", "recipe.yaml"):
            shutil.copy(of / name, path / name)
        alarm = {"step": 1, "time": "2026-01-01T12:00:00.000+00:00", "rule": text[:80]}
        alarm |= {"value": 0.5, "threshold": 0.1, "cause": text, "advice": text}
        stopped = {"step": 2, "time": "2026-01-01T12:00:00.000+00:00", "kind": "stopped"}
        (path / "alarms.jsonl").write_text(json.dumps(alarm) + "\n")
        (path / "events.jsonl").write_text(json.dumps(stopped | {"reason": text}) + "\n")
        yield path


def _name(number: int, text: str) -> str:
    """As much of the text as a file system takes for one folder's name."""
    kept = text[:NAME_CHARS].replace("/", "\u2215").replace("\0", "\x01")
    while len(kept.encode("utf-8", "surrogatepass")) > NAME_BYTES:
        kept = kept[:-1]
    return f"{number} {kept.encode('utf-8', 'replace').decode()}"
