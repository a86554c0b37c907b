"""Time and memory of `gspo calibrate` on a long run: makes a folder, calibrates it, deletes it.

    python bench/calibration_speed.py [--steps 1000] [--responses 256]

Prints one JSON object; aim: under 10 s and 1 GiB for 1,000 steps of 256 responses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gspo.recorders.schema import RESPONSE_COLUMNS, arrow_schema

GROUP = 8
TOKENS = 32  # a response; calibrate never reads them, but they lie in the file
MINIBATCHES = 4


def write_run(folder: Path, steps: int, responses: int) -> None:
    """A run folder with `steps` whole step files of simulated responses."""
    folder.mkdir()
    (folder / "run.json").write_text('{"format": 1, "name": "simulated"}')
    (folder / "metrics.jsonl").write_text("")
    (folder / "events.jsonl").write_text("")
    (folder / "steps").mkdir()
    generator = np.random.default_rng(0)
    for step in range(1, steps + 1):
        table = pa.table(
            _columns(responses, generator), schema=arrow_schema(RESPONSE_COLUMNS, step)
        )
        pq.write_table(
            table,
            folder / "steps" / f"{step:06d}.parquet",
            compression="zstd",
            write_page_checksum=True,
        )


def _columns(responses: int, generator: np.random.Generator) -> dict[str, pa.Array | list[object]]:
    group = np.arange(responses) // GROUP
    length = generator.integers(16, 1024, responses)
    offsets = pa.array(np.arange(responses + 1) * TOKENS, pa.int32())
    logp = pa.ListArray.from_arrays(
        offsets, pa.array(generator.normal(-1, 0.5, responses * TOKENS), pa.float32())
    )
    text = ["a worked sum and its answer"] * responses
    nothing: list[object] = [None] * responses
    values: dict[str, pa.Array | list[object]] = {
        "group": pa.array(group, pa.int32()),
        "length": pa.array(length, pa.int32()),
        "minibatch": pa.array(group % MINIBATCHES + 1, pa.int32()),
        "advantage": pa.array(generator.normal(size=responses)),
        "log_s": pa.array(0.02 * length**-0.5 * generator.normal(size=responses)),
        "tokens": pa.ListArray.from_arrays(
            offsets, pa.array(generator.integers(0, 99, responses * TOKENS), pa.int32())
        ),
        "parts": pa.array([[]] * responses, pa.map_(pa.string(), pa.float64())),
    }
    for name, (kind, nullable) in RESPONSE_COLUMNS.items():
        if name in values:
            continue
        if nullable and kind in {"string", "float64"}:
            values[name] = nothing
        elif kind == "string":
            values[name] = text
        elif kind == "list<float32>":
            values[name] = logp
        else:
            values[name] = pa.array(np.zeros(responses), pa.int32())
    return {name: values[name] for name in RESPONSE_COLUMNS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--responses", type=int, default=256)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        write_run(folder, given.steps, given.responses)
        started_s = time.monotonic()
        command = [sys.executable, "-m", "gspo.cli.main", "calibrate", str(folder), "--json"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        took_s = time.monotonic() - started_s
    result = {
        "steps": given.steps,
        "responses": given.responses,
        "seconds": round(took_s, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_gib": round(usage.ru_maxrss / 2**20, 3),
        "exit_code": os.waitstatus_to_exitcode(status),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
