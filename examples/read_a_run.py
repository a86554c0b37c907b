"""Open a run folder and print how much the clip cut, by response length. Never loads torch.

    python examples/read_a_run.py runs/demo

A fixed range on log s cuts short responses more where token noise is independent, as log s then
spreads by 1/sqrt(length). One overall number hides that; a table by length does not.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import gspo
from gspo.recorders.reader import Run
from gspo.settings import OBJECTIVES

COLUMNS = ["advantage", "length", "minibatch", "cut_low", "cut_high"]
BAR_CHARACTERS = 40


def cut_shares(run: Run) -> dict[int, list[float]]:
    """Power of two of the length -> cut share of each off-policy response with an advantage."""
    unit = OBJECTIVES[run.recipe["objective"]["name"]].unit
    shares: dict[int, list[float]] = defaultdict(list)
    for _, table in run.responses(COLUMNS):
        for row in table.to_pylist():
            # The first minibatch has ratio 1 and cannot be cut; minibatch is None for a response
            # that was not trained on.
            if row["advantage"] != 0 and (row["minibatch"] or 0) > 1:
                num_units = 1 if unit == "sequence" else row["length"]
                cut = (row["cut_low"] + row["cut_high"]) / num_units
                shares[row["length"].bit_length() - 1].append(cut)
    return shares


def main() -> None:
    """Print the table."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/read_a_run.py RUN_FOLDER")
    run = gspo.open_run(sys.argv[1])
    steps = run.steps()
    print(f"{run.name}: {run.status}, responses of {len(steps)} steps")
    print("tokens       responses    cut")
    for power, values in sorted(cut_shares(run).items()):
        share = sum(values) / len(values)
        bucket = f"{2**power}-{2 ** (power + 1) - 1}" if power else "1"
        bar = "#" * round(BAR_CHARACTERS * share)
        print(f"{bucket:<12} {len(values):>9} {share:>6.1%} {bar}".rstrip())
    for damage in run.damaged:
        print(f"left out: {damage.path}: {damage.reason}")


if __name__ == "__main__":
    main()
