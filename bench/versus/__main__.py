"""Measure rows and write bench/results/latest.json.

    python -m bench.versus [ROW ...] [--again] [--quick]

Rows that this code has measured already are kept. Everything is written after each row, so that
an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.versus import results
from bench.versus.channel import ROOT, WorkerError
from bench.versus.driver import Bench, GradientsDifferError, Match, names
from bench.versus.peer_settings import SETTINGS
from bench.versus.workloads import MAIN, WORKLOADS, Workload

QUICK_REPETITIONS = 3


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to measure; all when none is named")
    parser.add_argument("--again", action="store_true", help="measure rows that are there, too")
    parser.add_argument("--quick", action="store_true", help="the main row, tuned peer only")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    parser.add_argument("--repetitions", type=int, help="instead of each row's own number")
    parser.add_argument("--warmups", type=int, default=1)
    parser.add_argument("--setting", action="append", default=[], choices=sorted(SETTINGS))
    parser.add_argument("--results", type=Path, default=results.LATEST)
    peer = ROOT / ".venv-bench" / "bin" / "python"
    parser.add_argument("--peer-python", type=Path, default=peer, help="of the peer's environment")
    return parser.parse_args()


def main() -> None:
    """Rows one after the other."""
    given = arguments()
    if given.list:
        print("\n".join(WORKLOADS))
        return
    if not given.peer_python.exists():
        sys.exit(f"no {given.peer_python}: `make .venv-bench` installs the peer")
    wanted = names([MAIN] if given.quick else given.rows, list(WORKLOADS))
    if given.quick:
        given.repetitions = given.repetitions or QUICK_REPETITIONS
        given.setting = given.setting or ["tuned"]
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(
            folder=Path(folder),
            peer_python=given.peer_python,
            repetitions=given.repetitions,
            warmups=given.warmups,
            settings=tuple(given.setting),
        )
        with bench.calibrator:
            for number, name in enumerate(wanted, start=1):
                print(f"[{number}/{len(wanted)}] {name}", flush=True)
                try:
                    measure(bench, WORKLOADS[name], given)
                except (WorkerError, GradientsDifferError) as error:
                    print(f"  failed: {error}", flush=True)
                    failed.append(name)
    if failed:
        sys.exit(f"{len(failed)} of {len(wanted)} rows failed: {', '.join(failed)}")


def measure(bench: Bench, workload: Workload, given: argparse.Namespace) -> None:
    """One workload, unless it is there; then into the file, and printed. A quick run prints only:
    its repetitions are too few for the table."""
    started, code = time.monotonic(), results.code_digest(ROOT)
    content = results.load(given.results)
    settings = results.as_stored(workload)
    if not (given.again or given.quick) and results.is_measured(
        content, workload.name, code, settings
    ):
        print("  kept", flush=True)
        return
    match = Match(bench, workload, lambda text: print(text, flush=True))
    rows = [row | {"code": code, "commit": results.commit(ROOT)} for row in match.rows()]
    merged = results.with_extra_factor(results.merged(content, rows, list(WORKLOADS)))
    for row in merged:
        if row["workload"] == workload.name:
            print("  " + one_line(row), flush=True)
    print(f"  {time.monotonic() - started:.0f} s", flush=True)
    if not given.quick:
        versions, machine = results.versions(match.peer_versions), results.machine()
        results.save(given.results, {"rows": merged, "versions": versions, "machine": machine})


def one_line(row: dict[str, Any]) -> str:
    """Metric, both numbers, ratio and its spread, what is wanted."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}"

    text = f"{row['metric']}: ours {number(row['ours'])}, peer {number(row['peer'])}"
    if row["ratio"] is not None:
        text += f", {row['ratio']:.2f}x"
        spread = row["spread"] and row["spread"]["ratio"]
        text += f" ({spread[0]:.2f} to {spread[1]:.2f})" if spread else ""
    if row["floor"] is not None:
        text += f"; floor {row['floor']:g}, target {row['target']:g}"
    if row["roofline"]:
        text += (
            f"; of the roofline {row['roofline']['ours']:.0%}, peer {row['roofline']['peer']:.0%}"
        )
    return text


if __name__ == "__main__":
    main()
