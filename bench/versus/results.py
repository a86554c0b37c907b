"""bench/results/latest.json: rows of measured numbers, kept while the code they measured stands."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.versus.channel import ROOT

LATEST = ROOT / "bench" / "results" / "latest.json"
#: A change in these makes a measured row stale; tables and plots do not.
MEASURED_CODE = ("src/gspo", "bench/versus")
NOT_MEASURED = (
    "report.py",
    "plots.py",
    "text.py",
    "results.py",
    "__main__.py",
    "workloads.py",
    "gpu_sides.py",
)
PACKAGES = ("torch", "transformers", "numpy", "safetensors")

Row = dict[str, Any]


def code_digest(root: Path) -> str:
    """Of every Python file that takes part in a measurement."""
    digest = hashlib.sha256()
    for folder in MEASURED_CODE:
        for path in sorted((root / folder).rglob("*.py")):
            if folder == "bench/versus" and path.name in NOT_MEASURED:
                continue
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def load(path: Path) -> dict[str, Any]:
    """The file's content; empty where there is none."""
    if not path.is_file():
        return {"rows": [], "versions": {}, "machine": {}}
    return json.loads(path.read_text())


def as_stored(settings: Any) -> Any:
    """A workload as it comes back from the file."""
    return json.loads(json.dumps(asdict(settings)))


def is_measured(content: Mapping[str, Any], workload: str, code: str, settings: Any) -> bool:
    """There is a whole row of this workload, as it stands, by this code."""
    return any(
        row["workload"] == workload and row["code"] == code and row["settings"] == settings
        for row in content["rows"]
    )


def merged(content: Mapping[str, Any], rows: Sequence[Row], order: Sequence[str]) -> list[Row]:
    """New rows in the place of the old ones of their workloads, in the order of the table; rows of
    workloads that are no more are left out."""
    renewed = {row["workload"] for row in rows}
    kept = [row for row in content["rows"] if row["workload"] not in renewed]
    place = {name: number for number, name in enumerate(order)}
    return sorted(
        (row for row in [*kept, *rows] if row["workload"] in place),
        key=lambda row: place[row["workload"]],
    )


def with_extra_factor(rows: Sequence[Row]) -> list[Row]:
    """The ratio of responses that end by themselves, over the ratio at fixed length: what ours
    gains in addition when lengths differ. Rows ending in -eos, beside the row without."""
    ratios = {(row["workload"], row["metric"]): row["ratio"] for row in rows}

    def extra(workload: str) -> float | None:
        fixed = ratios.get((workload.removesuffix("-eos"), "tokens_per_s"))
        own = ratios.get((workload, "tokens_per_s"))
        return own / fixed if own and fixed else None

    return [
        row | {"ratio": extra(row["workload"])} if row["metric"] == "extra_factor" else row
        for row in rows
    ]


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Written whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    draft.replace(path)


def commit(root: Path) -> str:
    """The commit, with a plus when the tree differs from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        "+" if git("status", "--porcelain", "src") else ""
    )


def versions(peer: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Of what took part, on both sides."""
    return {
        "ours": {"python": platform.python_version()} | installed(PACKAGES),
        "peer": dict(peer),
    }


def installed(names: Sequence[str]) -> dict[str, str]:
    """Versions of installed packages, those that are not left out."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor, cores, memory, and the processor's units that matter here."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    flags = set(facts.get("flags", "").split())
    units = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": facts.get("model name", "unknown"),
        "cores": os.cpu_count(),
        "memory_gb": round(pages * size / 1e9, 1),
        "units": [unit for unit in units if unit in flags],
        "kernel": platform.release(),
    }
