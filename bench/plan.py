"""Planned against measured memory: our trainer on small models, each in a process of its own.

python bench/plan.py                    all settings, a table, bench/results/plan.json
python bench/plan.py --only NAME        one of them

Peaks are VmHWM, set back where a stage begins: this needs Linux. Speed does not matter here, so that
a busy machine does no harm.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.versus.memory import field_mb, reset_peak

RESULTS = Path(__file__).parent / "results" / "plan.json"
MEGABYTE = 10**6
FIRST_CHARACTER = 0x10000  # from here on no code point is a surrogate
NUM_PROMPTS = 8
ALLOWED = 0.20  # of the measured peak
TIMEOUT_S = 600
COMMON = ("trainer.steps=2", "trainer.minibatches=2", "trainer.keep_checkpoints=1", "objective=gspo")
#: name -> words of the vocabulary, tokens of a prompt, settings.
SETTINGS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "31M": (
        8192, 32,
        ("model.hidden=512", "model.layers=9", "model.heads=8", "model.kv_heads=4",
         "model.intermediate=1408", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=96"),
    ),
    "31M, long": (
        8192, 256,
        ("model.hidden=512", "model.layers=9", "model.heads=8", "model.kv_heads=4",
         "model.intermediate=1408", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=384"),
    ),
    "62M": (
        32768, 48,
        ("model.hidden=640", "model.layers=9", "model.heads=10", "model.kv_heads=2",
         "model.intermediate=1792", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=64"),
    ),
    "62M, KL": (
        32768, 48,
        ("model.hidden=640", "model.layers=9", "model.heads=10", "model.kv_heads=2",
         "model.intermediate=1792", "rollout.prompts=4", "rollout.group=4", "rollout.max_tokens=64",
         "objective.kl.coefficient=0.01"),
    ),
    "62M, bfloat16 products": (
        32768, 48,
        ("model.hidden=640", "model.layers=9", "model.heads=10", "model.kv_heads=2",
         "model.intermediate=1792", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=64",
         "trainer.dtype=bfloat16"),
    ),
    "91M, 152k words": (
        151936, 64,
        ("model.hidden=384", "model.layers=15", "model.heads=6", "model.kv_heads=2",
         "model.intermediate=1536", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=128"),
    ),
    "135M": (
        49152, 64,
        ("model.hidden=576", "model.layers=30", "model.heads=9", "model.kv_heads=3",
         "model.intermediate=1536", "rollout.prompts=4", "rollout.group=8", "rollout.max_tokens=64"),
    ),
    "135M, bfloat16 weights": (
        49152, 64,
        ("model.hidden=576", "model.layers=30", "model.heads=9", "model.kv_heads=3",
         "model.intermediate=1536", "rollout.prompts=2", "rollout.group=8", "rollout.max_tokens=48",
         "model.dtype=bfloat16"),
    ),
}  # fmt: skip


class Peaks:
    """Most that was resident in each stage; what runs inside another is counted for itself."""

    def __init__(self) -> None:
        self.by_stage: dict[str, float] = {}
        self._open = ["rest"]

    def note(self) -> None:
        """The peak since the last note belongs to the innermost stage."""
        peak = field_mb(Path("/proc/self/status").read_text(), "VmHWM")
        stage = self._open[-1]
        self.by_stage[stage] = max(self.by_stage.get(stage, 0.0), peak)
        reset_peak()

    def watch(self, owner: type, name: str, stage: str) -> None:
        """Calls of this method are the stage."""
        method: Callable[..., Any] = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.note()
            self._open.append(stage)
            try:
                return method(*args, **kwargs)
            finally:
                self.note()
                self._open.pop()

        setattr(owner, name, watched)


def make_inputs(folder: Path, num_words: int, prompt_tokens: int) -> tuple[str, ...]:
    """A tokenizer of so many words and prompts of so many; the settings that name them."""
    from gspo.data.tokenizer import character_tokenizer

    characters = "".join(map(chr, range(FIRST_CHARACTER, FIRST_CHARACTER + num_words - 2)))
    character_tokenizer(characters).save_pretrained(folder / "tokenizer")
    with (folder / "prompts.jsonl").open("w", encoding="utf-8") as file:
        for number in range(NUM_PROMPTS):
            text = characters[number * prompt_tokens : (number + 1) * prompt_tokens]
            file.write(json.dumps({"prompt": text, "answer": "1"}) + "\n")
    (folder / "reward.py").write_text(
        "def reward(prompt, completion, **columns):\n    return float(sum(map(ord, completion)) % 97)\n"
    )
    return (
        f"model.tokenizer={folder / 'tokenizer'}",
        f"data={{path: {folder / 'prompts.jsonl'}, max_prompt_tokens: {prompt_tokens}}}",
        "verifier.kind=function",
        f"verifier.function={folder / 'reward.py'}:reward",
        f"record.folder={folder / 'runs'}",
        "model.max_positions=4096",
    )


def measure(overrides: list[str]) -> dict[str, Any]:
    """Train two steps in this process; peaks by stage in bytes."""
    from gspo.policy.hf import HFPolicy
    from gspo.recipes.load import load_recipe
    from gspo.recipes.train import Session, train
    from gspo.trainer.stream import RolloutStream

    peaks = Peaks()
    stages = [
        (Session, "__init__", "build"), (Session, "_save", "save"), (RolloutStream, "take", "rollout"),
        (HFPolicy, "score", "score"), (HFPolicy, "update", "update"),
    ]  # fmt: skip
    for owner, name, stage in stages:
        peaks.watch(owner, name, stage)
    recipe = load_recipe("demo", ["coldstart=null", *overrides])
    run = train(recipe)
    peaks.note()
    rows = run.metrics()
    return {
        "stages": {name: round(size * MEGABYTE) for name, size in peaks.by_stage.items()},
        "tokens": rows[-1].get("step/tokens"),
        "paths": [event for event in run.events() if event["kind"] == "paths"],
        "num_parameters": run.info["num_parameters"],
    }


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only")
    arguments.add_argument("--measure", nargs="+")
    given = arguments.parse_args()
    if given.measure:
        print("RESULT " + json.dumps(measure(given.measure)))
        return
    for name, (num_words, prompt_tokens, settings) in SETTINGS.items():
        if given.only and name != given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            made = make_inputs(Path(folder), num_words, prompt_tokens)
            overrides = [*made, *COMMON, *settings]
            words = [sys.executable, __file__, "--measure", *overrides]
            done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONUNBUFFERED": "1"})
            found = re.search("^RESULT (.*)$", done.stdout, re.M)
            if not found:
                print(name, done.stdout[-2000:], done.stderr[-3000:])
                continue
            r = json.loads(found[1])
            print(name, r["num_parameters"], {k: round(v / 1e6) for k, v in r["stages"].items()}, r["tokens"], r["paths"][0]["update"], "|", r["paths"][0]["sampling"], flush=True)


if __name__ == "__main__":
    main()
