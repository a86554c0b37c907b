"""No exploit is accepted and no honest program refused: on every layer, as root and as a user."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gspo.verifiers.code_extract import extract_code
from gspo.verifiers.sandbox import layers
from tests.hostile.core import FUNCTIONS, HONEST_SCRIPTS, HOSTILE, failures
from tests.hostile.scripts import RESPONSES

ROOT = Path(__file__).parents[2]
SCRATCH_SECONDS = 170


OPTIONAL = [name for name in layers.available() if name == "gvisor"]


@pytest.fixture(params=["kernel", "bubblewrap", *OPTIONAL])
def layer(request):
    if request.param not in layers.available():
        pytest.skip(f"{request.param} is not installed")
    return request.param


def test_tables_are_whole():
    kinds = {one.kind for one in HOSTILE}
    assert kinds | {25} == set(range(1, 28))
    assert len(FUNCTIONS) + len(HONEST_SCRIPTS) >= 190
    assert len(HOSTILE) >= 170


def test_as_whoever_runs_the_tests(layer):
    assert failures(layer) == []


def test_as_an_ordinary_user(layer):
    if os.geteuid() != 0:
        pytest.skip("not root: the test above was as an ordinary user already")
    user = pwd.getpwnam("nobody")
    python = readable_interpreter(user)
    done = subprocess.run(
        [python, "-m", "tests.hostile.core", layer],
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": os.environ["PATH"]},
        cwd="/",
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=SCRATCH_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"uid": user.pw_uid, "failures": []}


def readable_interpreter(user):
    """A Python that this user may run, and that may read the sources."""
    tried = {}
    for python in (os.path.realpath(sys.executable), shutil.which("python3", path="/usr/bin:/bin")):
        if python is None:
            continue
        try:
            done = subprocess.run(
                [python, "-c", "import gspo.verifiers.sandbox.box, tests.hostile.core"],
                env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
                cwd="/",
                user=user.pw_uid,
                group=user.pw_gid,
                extra_groups=[],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            tried[python] = str(error)
            continue
        if done.returncode == 0:
            return python
        tried[python] = done.stderr[-200:]
    pytest.skip(f"no interpreter that {user.pw_name} may run and that finds the sources: {tried}")
    return None


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_without_a_program_has_none(name):
    assert extract_code(RESPONSES[name], ended=True) is None
