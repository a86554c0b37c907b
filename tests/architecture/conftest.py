"""The source tree, parsed once for all rules about it."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """One file of the package; `name` is its path below src/gspo."""

    name: str
    text: str
    tree: ast.Module


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    package = ROOT / "src" / "gspo"
    files = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    return [
        Source(path.relative_to(package).as_posix(), text, ast.parse(text))
        for path, text in files.items()
    ]


@pytest.fixture(scope="session")
def project_files() -> list[Path]:
    """Every file that is, or would be, under version control."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listing.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]
