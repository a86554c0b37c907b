"""How the command ends, and what it does not load."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.errors import DataError, NumericsError, RecipeError, ResourceError, VerifierError

GSPO = [sys.executable, "-m", "gspo.cli.main"]
TORCH_FREE = """
import sys
from gspo.cli.main import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
assert "torch" not in sys.modules, "torch was imported"
"""


@pytest.mark.parametrize("command", [["--help"], ["runs"], ["runs", "--json"], ["lab", "--help"]])
def test_commands_that_never_load_torch(command, tmp_path):
    (tmp_path / "runs").mkdir()
    subprocess.run([sys.executable, "-c", TORCH_FREE, *command], check=True, cwd=tmp_path)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RecipeError("m"), 2),
        (DataError("m"), 3),
        (VerifierError("m"), 3),
        (NumericsError("m"), 4),
        (ResourceError("m"), 5),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(raised, code):
    app = build_app()

    @app.command("boom")
    def boom():
        raise raised

    result = CliRunner().invoke(app, ["boom"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr == ("" if code == 130 else "gspo: m\n")


def test_a_fault_of_ours_keeps_its_traceback():
    app = build_app()

    @app.command("boom")
    def boom():
        raise ZeroDivisionError("ours")

    assert isinstance(CliRunner().invoke(app, ["boom"]).exception, ZeroDivisionError)


@pytest.mark.parametrize("command", [["nonsense"], ["runs", "--nonsense"], ["verify", "exact"], []])
def test_usage_errors(command):
    result = CliRunner().invoke(build_app(), command)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_the_process_ends_with_the_code_and_one_line(tmp_path):
    done = subprocess.run(
        [*GSPO, "runs", "nowhere"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("gspo: there is no folder nowhere")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["--help", "runs"])
def test_a_reader_that_leaves_is_no_reason_to_shout(command, tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*GSPO, command],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # the last flush is what fails
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_terminal_without_a_letter_shows_its_escape(tmp_path):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "run.json").write_text('{"name": "caf\\u00e9"}')
    done = subprocess.run(
        [*GSPO, "runs"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert "caf\\xe9" in done.stdout
