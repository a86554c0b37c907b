"""Planned against measured memory: our trainer on small models, each in a process of its own.

python bench/plan.py                    all settings, a table, bench/results/plan.json
python bench/plan.py --only NAME        one of them

Peaks are VmHWM, set back where a stage begins: this needs Linux. Speed does not matter here, so that
a busy machine does no harm.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import count
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
MARK = "RESULT "
COMMON = (
    "coldstart=null",
    "trainer.minibatches=2",
    "trainer.keep_checkpoints=1",
)
#: Shapes: hidden, layers, heads, kv heads, width of the MLP.
SHAPES = {
    "31M": (512, 9, 8, 4, 1408),
    "62M": (640, 9, 10, 2, 1792),
    "91M": (384, 15, 6, 2, 1536),
    "135M": (576, 30, 9, 3, 1536),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """shape: a name of SHAPES. prompt, response: tokens. steps: of two minibatches each, so that even
    one has an update with Adam's moments in memory. more: other settings of the recipe."""

    name: str
    shape: str
    words: int
    prompt: int
    response: int
    prompts: int
    group: int
    steps: int = 2
    more: tuple[str, ...] = ()

    def overrides(self) -> list[str]:
        """Settings of a recipe."""
        sizes = zip(
            ("hidden", "layers", "heads", "kv_heads", "intermediate"),
            SHAPES[self.shape],
            strict=True,
        )
        model = [f"model.{name}={size}" for name, size in sizes]
        batch = {"prompts": self.prompts, "group": self.group, "max_tokens": self.response}
        steps = f"trainer.steps={self.steps}"
        return [
            *model,
            steps,
            *(f"rollout.{name}={size}" for name, size in batch.items()),
            *self.more,
        ]


SETTINGS = (
    Setting("31M", "31M", 8192, 32, 96, 4, 4),
    Setting("31M, long", "31M", 8192, 192, 256, 2, 3),
    Setting("62M", "62M", 32768, 48, 64, 2, 8),
    Setting("62M, KL penalty", "62M", 32768, 48, 64, 2, 4, more=("objective.kl.coefficient=0.01",)),
    Setting("62M, bfloat16 products", "62M", 32768, 48, 64, 2, 6, more=("trainer.dtype=bfloat16",)),
    Setting("91M, 152k words", "91M", 151936, 64, 48, 2, 4, steps=1),
    Setting("135M", "135M", 49152, 64, 32, 2, 6, steps=1),
    Setting(
        "135M, bfloat16 weights",
        "135M",
        49152,
        64,
        24,
        2,
        3,
        steps=1,
        more=("model.dtype=bfloat16",),
    ),
)


class Peaks:
    """Most that was resident in each stage, in bytes; what runs inside another counts for itself."""

    def __init__(self) -> None:
        self.by_stage: dict[str, int] = {}
        self.resident: dict[str, int] = {}  # as the first of each stage began
        self._open = ["rest"]

    def note(self) -> None:
        """The peak since the last note belongs to the innermost stage."""
        stage = self._open[-1]
        self.by_stage[stage] = max(self.by_stage.get(stage, 0), memory_field("VmHWM"))
        reset_peak()

    def watch(self, owner: type, name: str, stage: str) -> None:
        """Calls of this method are the stage, the first one by itself."""
        method: Callable[..., Any] = getattr(owner, name)
        calls = count(1)

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.note()
            self.resident.setdefault(stage, memory_field("VmRSS"))
            self._open.append(f"first {stage}" if next(calls) == 1 else stage)
            try:
                return method(*args, **kwargs)
            finally:
                self.note()
                self._open.pop()

        setattr(owner, name, watched)


def memory_field(name: str) -> int:
    """A field of this process's status, in bytes."""
    return round(field_mb(Path("/proc/self/status").read_text(), name) * MEGABYTE)


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


def measure(setting: Setting) -> dict[str, Any]:
    """Train in this process: peaks by stage, and the plan of the same recipe."""
    from gspo.policy.hf import HFPolicy
    from gspo.recipes.load import load_recipe
    from gspo.recipes.train import Session, train
    from gspo.trainer.stream import RolloutStream

    peaks = Peaks()
    stages = (
        (Session, "_start_model", "build"),
        (Session, "_save", "save"),
        (RolloutStream, "take", "rollout"),
        (HFPolicy, "score", "score"),
        (HFPolicy, "update", "update"),
    )
    for owner, name, stage in stages:
        peaks.watch(owner, name, stage)
    with tempfile.TemporaryDirectory() as folder:
        inputs = make_inputs(Path(folder), setting.words, setting.prompt)
        recipe = load_recipe("demo", [*COMMON, *inputs, *setting.overrides()])
        train(recipe)
        peaks.note()
        return compared(setting, recipe, peaks)


def compared(setting: Setting, recipe: Any, peaks: Peaks) -> dict[str, Any]:
    """What was planned beside what was seen."""
    from gspo.plan.memory import plan_memory

    planned = plan_memory(recipe)
    peak = max(peaks.by_stage.values())
    return {
        "name": setting.name,
        "setting": asdict(setting),
        "num_parameters": planned.setup.shape.num_parameters,
        "measured": {"peak": peak, "resident": peaks.resident, "stages": peaks.by_stage},
        "planned": {"total": planned.total, "parts": planned.parts, "stages": dict(planned.stages)},
        "off": planned.total / peak - 1,
    }


def compare(setting: Setting) -> dict[str, Any]:
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", setting.name],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    found = re.search(rf"^{MARK}(.*)$", done.stdout, re.M)
    if found is None:
        sys.exit(f"{setting.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(found[1])


def table(rows: list[dict[str, Any]]) -> str:
    """For people and for the page: megabytes of 10^6 bytes."""
    lines = [
        "| setting | words | prompt + response | rows | first rollout, planned | measured | peak, planned | measured | off |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        setting, planned, seen = row["setting"], row["planned"], row["measured"]
        # Before the first update there are no moments, and no log of blocks that came and went.
        rollout = (
            max(planned["stages"][s] for s in ("reading", "sampling"))
            - planned["parts"]["optimizer"]
        )
        sizes = (rollout, seen["stages"]["first rollout"], planned["total"], seen["peak"])
        cells = [f"{size / MEGABYTE:,.0f}" for size in sizes]
        batch = f"{setting['prompt']} + {setting['response']}"
        rows_text = f"{setting['prompts']} x {setting['group']}"
        lines.append(
            f"| {row['name']} | {setting['words']:,} | {batch} | {rows_text} | {' | '.join(cells)} | {row['off']:+.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Every setting asked for; the others' last results are kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", choices=[setting.name for setting in SETTINGS])
    arguments.add_argument("--measure", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        (setting,) = (setting for setting in SETTINGS if setting.name == given.measure)
        print(MARK + json.dumps(measure(setting)))
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"rows": []}
    found = {row["name"]: row for row in known["rows"]}
    for setting in SETTINGS:
        if given.only in (None, setting.name):
            found[setting.name] = compare(setting)
            print(table([found[setting.name]]).splitlines()[-1], flush=True)
    rows = [found[setting.name] for setting in SETTINGS if setting.name in found]
    RESULTS.write_text(json.dumps({"torch": torch_version(), "rows": rows}, indent=1) + "\n")
    print("\n" + table(rows))
    far = [row["name"] for row in rows if abs(row["off"]) > ALLOWED]
    if far:
        sys.exit(f"off by more than {ALLOWED:.0%}: {', '.join(far)}")


def torch_version() -> str:
    """Of the library whose memory this is."""
    return version("torch")


if __name__ == "__main__":
    main()
