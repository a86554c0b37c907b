"""What a clip range does: the demo task at three learning rates and three chain lengths, under the
measured range, the paper's and 0.2. Prints a table and writes bench/results/trust_region.json.

    python bench/trust_region.py [FOLDER] [--steps 24]

Every run is a run folder under FOLDER and is not made again while it is there.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import gspo
from gspo.recipes.load import load_recipe
from gspo.recorders.reader import Run, open_run

LEARNING_RATES = ("3e-5", "1e-4", "3e-4")
DIGITS = (3, 4, 6)
CLIPS = {"auto": "auto", "paper": "paper", "0.2": "{low: 0.2, high: 0.2}"}
WINDOW = 20  # steps after the range is fixed
RESULT = Path(__file__).parent / "results" / "trust_region.json"


def train(folder: Path, digits: int, lr: str, clip: str, steps: int) -> Run:
    """The run of this cell, made or found."""
    name = f"d{digits}-lr{lr}-{clip}"
    if (folder / name / "run.json").is_file() and open_run(folder / name).status == "finished":
        return open_run(folder / name)
    recipe = load_recipe(
        "demo",
        [
            f"name={name}",
            f"record.folder={folder}",
            f"data.options={{digits: {digits}}}",
            f"optimizer.lr={lr}",
            f"objective.clip={CLIPS[clip]}",
            f"trainer.steps={steps}",
            "trainer.checkpoint_every=0",
            "rollout.max_tokens=64",
            "evaluate.prompts=128",
            "evaluate.samples=4",
        ],
    )
    return gspo.train(recipe)


def row(run: Run, digits: int, lr: str, clip: str) -> dict:
    """What a run did, from its folder."""
    metrics = {m["step"]: m for m in run.metrics()}
    events = run.events()
    fixed = next((e["step"] for e in events if e["kind"] == "clip_fixed"), None)
    start = 4 if fixed is None else fixed  # a fixed range has no such step: the same window
    window = [metrics[s] for s in range(start + 1, start + 1 + WINDOW) if s in metrics]
    shares = [m["clip/cut_share"] for m in window if m["clip/cut_share"] is not None]
    evaluations = [e for e in events if e["kind"] == "evaluated"]
    last = window[-1]
    return {
        "digits": digits,
        "lr": lr,
        "clip": clip,
        "low": last["clip/low"],
        "high": last["clip/high"],
        "cut_share": mean(shares) if shares else None,
        "steps_measured": len(shares),
        "fixed_at": fixed,
        "refits": sum(e["kind"] == "refit" for e in events),
        "alarms": sorted({a["rule"] for a in run.alarms()}),
        "reward_last_5": mean(m["reward/mean"] for m in window[-5:]),
        "pass@1_before": evaluations[0]["eval/pass@1"],
        "pass@1_after": evaluations[-1]["eval/pass@1"],
    }


def main() -> None:
    """All cells, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="runs/trust-region", type=Path)
    parser.add_argument("--steps", default=24, type=int)
    given = parser.parse_args()
    rows = []
    for digits in DIGITS:
        for lr in LEARNING_RATES:
            for clip in CLIPS:
                run = train(given.folder, digits, lr, clip, given.steps)
                rows.append(row(run, digits, lr, clip))
                print(json.dumps(rows[-1]), flush=True)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print("\n| digits | lr | clip | range at the end | cut share | reward, last 5 | ", end="")
    print("pass@1 before, after | refits | alarms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(
            f"| {r['digits']} | {r['lr']} | {r['clip']} | {r['low']:.2g} / {r['high']:.2g} | "
            f"{r['cut_share']:.3f} | {r['reward_last_5']:.2f} | "
            f"{r['pass@1_before']:.2f}, {r['pass@1_after']:.2f} | "
            f"{'not fixed' if r['clip'] == 'auto' and r['fixed_at'] is None else r['refits']} | "
            f"{', '.join(r['alarms'])} |"
        )


if __name__ == "__main__":
    main()
