"""GSPO_NO_SKIP=1 turns every kind of skip into a failure that names its reason."""

import os
import shutil
import subprocess
import sys

import pytest

TESTS = """
import pytest

@pytest.mark.skip(reason="no room")
def test_marked(): ...

def test_called():
    pytest.skip("no time")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


@pytest.fixture
def folder(root, tmp_path):
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_skips.py").write_text(TESTS)
    (tmp_path / "test_file.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    return tmp_path


def run(folder, no_skip: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull]
    command += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    environment = {**os.environ, "GSPO_NO_SKIP": no_skip}
    done = subprocess.run(
        [*command, "--rootdir", str(folder), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_skip_is_an_error_where_it_is_asked_for(folder):
    out = run(folder, no_skip="1")
    for reason in ("no room", "no time", "no_such_module"):
        assert reason in out
    assert "1 failed, 1 xfailed, 2 errors" in out


def test_elsewhere_a_skip_is_a_skip(folder):
    assert "3 skipped, 1 xfailed" in run(folder, no_skip="0")
