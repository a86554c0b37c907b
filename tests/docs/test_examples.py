"""Every example runs as a reader would run it, and prints what it promises."""

from __future__ import annotations

import json
import os
import re
import shlex
import string
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.data.addition import Addition
from gspo.data.tokenizer import character_tokenizer
from gspo.policy.model import save_model, tiny_model
from gspo.recipes.closing import closing_of
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from tests.docs.pages import ROOT
from tests.recorder_rows import row

EXAMPLES = ROOT / "examples"
DATA = ("own_data.jsonl", "own_data_held_out.jsonl")


def output(*arguments: str | Path) -> str:
    """What a Python process started in the checkout prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text().splitlines()]


def test_no_example_is_forgotten():
    tests = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in tests] == []


def test_the_padded_loop_learns():
    printed = output(EXAMPLES / "padded_loss.py")
    rewards = [float(value) for value in re.findall(r"reward ([\d.]+)", printed)]
    cuts = [int(value) for value in re.findall(r"(\d+)% of responses cut", printed)]
    assert rewards[0] < 0.2
    assert rewards[-1] > 0.9
    assert cuts[0] > 0


def test_the_ragged_loss_shows_cut_and_kept_and_one_denominator():
    first, second, third, fourth, counted, means = output(EXAMPLES / "ragged_loss.py").splitlines()
    assert "cut " in first
    assert "cut " in second
    assert "kept" in third
    assert "s 1.0040  kept" in fourth  # outside the range, but not on the side A rewards
    assert counted == "denominator counted first: 0% off the gradient of the whole batch"
    assert means == "denominator a mean of means: 100% off the gradient of the whole batch"


def test_the_reward_function_looks_behind_the_mark():
    printed = output(EXAMPLES / "own_reward.py").splitlines()
    assert [line.split()[1] for line in printed] == ["1", "0", "0"]


def test_the_data_are_what_the_script_makes(tmp_path):
    output(EXAMPLES / "make_own_data.py", tmp_path)
    for name in DATA:
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()


def test_the_data_are_sums_in_the_demo_models_alphabet():
    rows = [row for name in DATA for row in rows_of(name)]
    assert len({row["prompt"] for row in rows}) == len(rows) == 128
    for entry in rows:
        first, second = entry["prompt"].removesuffix("=").split("+")
        assert int(first) + int(second) == int(entry["answer"])
        assert set("".join(entry.values())) <= set(Addition.characters)


@pytest.fixture
def code_run(tmp_path) -> list[str]:
    """The recipe for code on the example's tasks, with a small model that knows all their characters."""
    prompts = "".join(entry["prompt"] for entry in rows_of("code_tasks.jsonl"))
    tokenizer = character_tokenizer("".join(sorted({*prompts, *string.printable})))
    shape = {"hidden": 16, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate": 32}
    model = tiny_model(len(tokenizer), seed=0, **shape, max_positions=256)
    save_model(model, tokenizer, tmp_path / "model")
    paths = [f"model.path={tmp_path / 'model'}", f"record.folder={tmp_path}"]
    smaller = ["rollout.prompts=4", "rollout.group=2", "rollout.max_tokens=32", "trainer.steps=1"]
    return [
        *("train", "code", "data.path=examples/code_tasks.jsonl", *paths, *smaller),
        *("trainer.minibatches=2", "--json"),
    ]


def test_the_gold_programs_pass_the_tests_of_the_code_tasks(code_run, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(build_app(), [*code_run, "--dry-run"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["num_prompts"], report["num_probed"]) == (4, 4)


def test_the_recipe_for_code_trains(code_run, monkeypatch, tmp_path):
    """A model without training writes no program: reward 0, fault format, and no failed verdict."""
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(build_app(), code_run)
    assert result.exit_code == 0, result.stderr
    (folder,) = (path.parent for path in tmp_path.glob("*/run.json"))
    assert open_run(folder).columns("reward/mean", "verifier/failed_share") == {
        "step": [1],
        "reward/mean": [0],
        "verifier/failed_share": [0],
    }


def test_a_gold_program_that_is_wrong_stops_the_run(code_run, monkeypatch, tmp_path):
    rows = rows_of("code_tasks.jsonl")
    rows[1]["gold"] = "def balanced(text): return True"
    (tmp_path / "broken.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    monkeypatch.chdir(ROOT)
    broken = f"data.path={tmp_path / 'broken.jsonl'}"
    words = [broken if word.startswith("data.path=") else word for word in code_run]
    result = CliRunner().invoke(build_app(), [*words, "--dry-run"])
    assert result.exit_code == 3
    assert "gold answer of prompt balanced" in result.stderr


@pytest.mark.parametrize(
    ("objective", "cut_of_long", "shown"), [("gspo", 1, "50.0%"), ("grpo", 8, "10.0%")]
)
def test_reading_a_run_gives_the_cut_share_by_length(tmp_path, objective, cut_of_long, shown):
    """Two responses of 40 tokens, one of them cut: whole under gspo, 8 tokens of it under grpo."""
    run = RunFolder.create(tmp_path / "a", info={}, recipe=f"objective: {{name: {objective}}}\n")
    changes = (
        {"length": 40, "cut_high": cut_of_long},
        {"length": 40, "cut_high": 0},
        {"length": 3, "cut_high": 0},
        {"length": 3, "minibatch": 1},
        {"length": 3, "minibatch": None},
        {"length": 3, "advantage": 0.0},
    )
    run.step(1, {}, [row(**{"minibatch": 2, **change}) for change in changes])
    run.finished(1)
    run.close()
    printed = output(EXAMPLES / "read_a_run.py", run.path).splitlines()
    assert printed[0] == "a: finished, responses of 1 steps"
    assert [line.split()[:3] for line in printed[2:]] == [
        ["2-3", "1", "0.0%"],
        ["32-63", "2", shown],
    ]


def test_reading_a_run_never_loads_torch(tmp_path):
    run = RunFolder.create(tmp_path / "a", info={}, recipe="objective: {name: gspo}\n")
    run.close()
    script = EXAMPLES / "read_a_run.py"
    code = f"import runpy, sys; sys.argv = ['', {str(run.path)!r}]; runpy.run_path({str(script)!r}, run_name='__main__'); print('torch' in sys.modules)"
    assert output("-c", code).splitlines()[-1] == "False"


@pytest.fixture
def next_command(tmp_path) -> list[str]:
    """The words that a run ends with, its model being a small one without training."""
    run = RunFolder.create(tmp_path / "a", info={}, recipe="rollout: {max_tokens: 64}\n")
    run.close()
    tokenizer = character_tokenizer(Addition.characters)
    shape = {"hidden": 16, "layers": 1, "heads": 2, "kv_heads": 1, "intermediate": 32}
    model = tiny_model(len(tokenizer), seed=0, **shape, max_positions=256)
    save_model(model, tokenizer, run.path / "checkpoints" / "step-000080" / "model")
    return shlex.split(closing_of(open_run(run.path)).next_command)


def test_the_command_a_run_ends_with_works_as_printed(next_command, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert next_command[0] == "gspo"
    result = CliRunner().invoke(build_app(), [*next_command[1:], "--dry-run", "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["num_prompts"] == 64
    assert report["num_dropped"] == 0


def test_the_command_a_run_ends_with_trains(next_command, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    words = [word for word in next_command[1:] if not word.startswith("trainer.steps")]
    smaller = ["trainer.steps=1", "rollout.prompts=4", "rollout.group=2", "trainer.minibatches=2"]
    more = [*smaller, "evaluate.prompts=2", f"record.folder={tmp_path}", "--json"]
    result = CliRunner().invoke(build_app(), [*words, *more])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["steps"] == 1
    assert report["after"]["num_prompts"] == 2


def test_trls_loss_is_checked_only_where_trl_is():
    printed = output(EXAMPLES / "check_trl_loss.py")
    assert printed.startswith("nothing was checked: No module named 'trl'")
