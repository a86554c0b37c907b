"""`gspo doctor`: what this machine has, what is missing, and what a run would use."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

from gspo.cli.machine import Check, cpu_checks, num_cores
from gspo.cli.output import JsonFlag, print_json, print_table

#: The set the tests run with, as in constraints.txt; names in lower case.
TESTED = {
    "torch": "2.13.0",
    "transformers": "5.24.0",
    "tokenizers": "0.23.3",
    "datasets": "5.2.0",
    "pyarrow": "26.0.1",
    "safetensors": "0.8.0",
    "numpy": "2.4.6",
    "pydantic": "2.14.4",
    "pyyaml": "6.0.4",
    "typer": "0.29.2",
    "rich": "15.0.0",
    "jaxtyping": "0.3.11",
    "plotly": "7.1.0",
    "math-verify": "0.9.0",
    "latex2sympy2-extended": "1.11.0",
    "sympy": "1.14.0",
    "mpmath": "1.3.0",
    "starlette": "1.10.0",
    "uvicorn": "0.54.0",
    "httpx": "0.28.1",
    "playwright": "1.65.2",
}
RESOURCE_ERROR = 5
GIB = 2**30
MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(json: JsonFlag = False) -> None:
    """Say what this machine has and what is used.

    Versions, cores, memory, device, threads, speeds of either precision, allocator, write access.
    """
    checks = [_python(), *_packages(), *_machine(), _write_access(Path.cwd())]
    if all(check.ok for check in checks if check.required):
        checks += _torch()
    if json:
        print_json({"checks": [{"name": c.name, "ok": c.ok, "detail": c.detail} for c in checks]})
    else:
        print_table(
            ("", "check", "found"),
            [(_mark(check), check.name, check.detail) for check in checks],
        )
    if not all(check.ok for check in checks if check.required):
        raise typer.Exit(RESOURCE_ERROR)


def _mark(check: Check) -> str:
    return "ok" if check.ok else "MISSING" if check.required else "no"


def _python() -> Check:
    return Check("python", sys.version_info >= (3, 11), platform.python_version(), required=True)


def _packages() -> Iterator[Check]:
    from packaging.requirements import Requirement

    for text in importlib.metadata.requires("gspo") or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        yield _package(requirement.name, str(requirement.specifier))


def _package(name: str, wanted: str) -> Check:
    from packaging.specifiers import SpecifierSet

    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        detail = f"not installed; wanted {wanted}: pip install '{name}{wanted}'"
        return Check(name, ok=False, detail=detail, required=True)
    if not SpecifierSet(wanted).contains(version, prereleases=True):
        detail = f"{version}; wanted {wanted}: pip install '{name}{wanted}'"
        return Check(name, ok=False, detail=detail, required=True)
    tested = TESTED.get(name.lower())
    same = tested is None or version.partition("+")[0] == tested
    return Check(name, ok=True, detail=version if same else f"{version} (tested with {tested})")


def _machine() -> Iterator[Check]:
    yield Check("cores", ok=True, detail=f"{num_cores()} of a {platform.machine()} processor")
    yield Check("memory", ok=True, detail=f"{_memory_bytes() / GIB:.1f} GiB")


def _memory_bytes() -> int:
    """What this process may use: the machine's, or its container's if that is less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in MEMORY_LIMITS:
        text = path.read_text().strip() if path.is_file() else ""
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes)


def _write_access(folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / GIB
    except OSError as error:
        detail = f"{folder}: {error.strerror}; start gspo in a folder you may write to"
        return Check("write access", ok=False, detail=detail, required=True)
    return Check("write access", ok=True, detail=f"{folder}, {free:.1f} GiB free", required=True)


def _torch() -> Iterator[Check]:
    from gspo.recipes.schema import EngineSection, NewModel

    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a shared library of it does not load
        detail = f"is installed but does not import: {error}"
        yield Check("torch imports", ok=False, detail=detail, required=True)
        return
    yield from _gpu() if torch.cuda.is_available() else [Check("device", ok=True, detail="cpu")]
    yield from cpu_checks()
    yield Check(
        "a run uses",
        ok=True,
        detail=f"{NewModel().dtype} weights, the {EngineSection().kind} engine, {torch.get_num_threads()} threads",
    )


def _gpu() -> Iterator[Check]:
    import torch

    size = torch.cuda.get_device_properties().total_memory / GIB
    yield Check("device", ok=True, detail=f"cuda: {torch.cuda.get_device_name()}, {size:.0f} GiB")
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    yield Check("bfloat16 on the GPU", native, "native" if native else "emulated")
