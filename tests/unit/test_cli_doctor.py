"""`gspo doctor`."""

import importlib.metadata
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gspo.cli import doctor
from gspo.cli.main import build_app

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


def run(*options):
    return CliRunner().invoke(build_app(), ["doctor", *options])


def test_a_machine_that_runs_the_tests_is_fine():
    result = run("--json")
    assert result.exit_code == 0
    checks = json.loads(result.stdout)["checks"]
    assert all(set(check) == {"name", "ok", "detail"} for check in checks)
    names = {check["name"] for check in checks}
    assert {"python", "torch", "transformers", "cores", "memory", "device", "bfloat16"} <= names
    assert "write access" in names
    assert {"threads", "float32", "memory speed", "allocator", "a run uses"} <= names
    assert "float32 weights, the local engine" in checks[-1]["detail"]
    assert all(line[:2] in ("  ", "ok", "no") for line in run().stdout.splitlines())


def test_the_tested_set_is_that_of_constraints():
    pinned = dict(
        line.lower().split("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line
    )
    assert {name: pinned[name] for name in doctor.TESTED} == doctor.TESTED


def test_every_dependency_is_looked_at():
    needed = {
        re.split(r"[^\w.-]", text)[0].lower()
        for text in importlib.metadata.requires("gspo") or ()
        if "extra ==" not in text
    }
    assert {check.name.lower() for check in doctor._packages()} == needed
    assert needed <= doctor.TESTED.keys()


@pytest.mark.parametrize(
    ("version", "ok", "words"),
    [
        ("15.0.0", True, "15.0.0"),
        ("15.1.0", True, "15.1.0 (tested with 15.0.0)"),
        ("13.0.0", False, "13.0.0; wanted >=14: pip install 'rich>=14'"),
        (None, False, "not installed; wanted >=14: pip install 'rich>=14'"),
    ],
)
def test_versions(monkeypatch, version, ok, words):
    def installed(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    check = doctor._package("rich", ">=14")
    assert (check.ok, check.detail) == (ok, words)


def test_what_is_missing_decides_the_exit_code(monkeypatch):
    missing = doctor.Check("rich", ok=False, detail="not installed", required=True)
    monkeypatch.setattr(doctor, "_packages", lambda: [missing])
    result = run()
    assert result.exit_code == 5
    assert re.search(r"^MISSING  rich +not installed$", result.stdout, re.MULTILINE)
    slow = doctor.Check("bfloat16", ok=False, detail="emulated")
    monkeypatch.setattr(doctor, "_packages", lambda: [slow])
    assert run().exit_code == 0


def test_a_folder_that_cannot_be_written_to():
    check = doctor._write_access(Path("/nowhere"))
    assert (check.ok, check.required) == (False, True)
    assert "start gspo in a folder you may write to" in check.detail


def test_a_container_may_have_less_memory(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("1073741824\n")
    monkeypatch.setattr(doctor, "MEMORY_LIMITS", (limit, tmp_path / "absent"))
    assert doctor._memory_bytes() == 2**30
    limit.write_text("max\n")
    assert doctor._memory_bytes() > 2**30
