"""Make own_data.jsonl and own_data_held_out.jsonl: sums and their answers, one JSON object a line.

    python examples/make_own_data.py            writes them beside this file
    python examples/make_own_data.py FOLDER     writes them there

Prompts use only characters that the demo's model has a token for: 0123456789+=;>
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

NUM_ROWS = 64
SEED = 0


def row(first: int, second: int) -> dict[str, str]:
    """One prompt and its answer. Any further column would reach the reward function by its name."""
    return {"prompt": f"{first}+{second}=", "answer": str(first + second)}


def main() -> None:
    """Write the file to train on and the one that is only evaluated."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    rng = random.Random(SEED)  # noqa: S311 - nothing to guard
    numbers = rng.sample(range(1000, 10_000), 4 * NUM_ROWS)  # all different, so all rows are
    rows = [row(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    for name, part in (("own_data", rows[:NUM_ROWS]), ("own_data_held_out", rows[NUM_ROWS:])):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in part), encoding="utf-8")
        print(f"{path}: {len(part)} rows, the first is {json.dumps(part[0])}")


if __name__ == "__main__":
    main()
