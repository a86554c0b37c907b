"""`gspo runs`."""

import json

from typer.testing import CliRunner

from gspo.cli.main import build_app


def run(*options):
    return CliRunner().invoke(build_app(), ["runs", *options])


def make_run(folder, name, started, reward):
    path = folder / name
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"name": name, "started": started, "format": 1}))
    (path / "recipe.yaml").write_text("objective: {name: gspo}\n")
    (path / "metrics.jsonl").write_text(json.dumps({"step": 3, "reward/mean": reward}) + "\n")


def test_the_newest_first(tmp_path):
    make_run(tmp_path, "old", "2025-01-01T00:00:00", 0.25)
    make_run(tmp_path, "new", "2025-02-01T00:00:00", 0.5)
    lines = run(str(tmp_path)).stdout.splitlines()
    assert lines[0].split() == [
        "run",
        "status",
        "steps",
        "objective",
        "reward",
        "pass@1",
        "started",
    ]
    assert [line.split()[0] for line in lines[1:]] == ["new", "old"]
    assert lines[1].split()[1:] == ["interrupted", "3", "gspo", "0.5", "-", "2025-02-01T00:00:00"]


def test_json(tmp_path):
    make_run(tmp_path, "a", "2025-01-01T00:00:00", 0.25)
    assert json.loads(run(str(tmp_path), "--json").stdout) == {
        "runs": [
            {
                "name": "a",
                "path": str(tmp_path / "a"),
                "started": "2025-01-01T00:00:00",
                "status": "interrupted",
                "steps": 3,
                "objective": "gspo",
                "reward": 0.25,
                "pass@1": None,
            }
        ]
    }


def test_no_runs_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run().stdout == "no runs in runs; `gspo train demo` makes one\n"
    assert json.loads(run("--json").stdout) == {"runs": []}


def test_a_folder_that_is_not_there():
    result = run("/nowhere")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no folder /nowhere" in result.stderr
