"""Memory that ends in an update: exit code 5, and one line that names the setting to lower."""

import os
import subprocess
import sys

import pytest

from tests.e2e.conftest import DENSE, SMALL, without

#: An MLP so wide that one activation of 16 responses takes half of what is left.
WIDE = [
    "model.intermediate=262144",
    "rollout.group=8",
    "rollout.max_tokens=40",
    "engine.max_batch=4",
    "evaluate.prompts=1",
    "trainer.max_tokens_per_microbatch=4096",
]

#: Leaves the command 1.5 GiB of addresses above what its imports take.
SCRIPT = """
import resource, sys
import gspo.recipes.train
from gspo.cli.main import main
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 1536 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.argv = ["gspo", "train", "demo", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited and counted as on Linux")
def test_an_update_that_does_not_fit(tmp_path):
    (tmp_path / "dense.py").write_text(DENSE)
    changed = [setting.partition("=")[0] + "=" for setting in WIDE]
    settings = [*without(SMALL, "coldstart.", *changed), *WIDE, "coldstart=null"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *settings],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("gspo: ")]
    assert "trainer.max_tokens_per_microbatch 4096" in said
    assert "half of it is 2048" in said
