"""`gspo import` and `gspo export`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.recipes.load import load_recipe
from tests.docs.pages import ROOT, blocks, commands

FILES = Path(__file__).parents[1] / "importers"


@pytest.fixture
def gspo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(build_app(), [*map(str, words)])

    return run


def test_the_recipe_goes_to_standard_output_and_the_report_beside_it(gspo):
    result = gspo("import", "trl", FILES / "trl_article.py")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("# From trl_article.py (TRL), by gspo import trl.\n")
    assert result.stderr.startswith("taken (")
    Path("r.yaml").write_text(result.stdout)
    assert load_recipe("r.yaml").objective.name == "gspo"


def test_out_and_json(gspo):
    result = gspo("import", "verl", FILES / "verl_sums.sh", "--out", "r.yaml", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert set(report) == {"recipe", "taken", "changed", "not_carried"}
    assert report["recipe"]["objective"]["clip"] == {"low": 3e-4, "high": 4e-4}
    assert all({"key", "from", "to", "why"} <= set(line) for line in report["changed"])
    assert all(set(line) == {"key", "value", "why"} for line in report["not_carried"])
    assert load_recipe("r.yaml").rollout.prompts == 512
    told = gspo("import", "verl", FILES / "verl_sums.sh", "--out", "r.yaml")
    assert told.stdout.startswith("taken (")
    assert told.stdout.endswith("written r.yaml\n")


def test_there_and_back(gspo):
    for trainer, name in (("trl", "a.yaml"), ("verl", "a.sh"), ("openrlhf", "a.sh")):
        there = gspo("export", trainer, "demo", "trainer.steps=20", "--out", name, "--json")
        assert there.exit_code == 0, there.stderr
        report = json.loads(there.stdout)
        assert set(report) == {"settings", "taken", "changed", "not_carried"}
        assert "objective.clip" in {line["key"] for line in report["changed"]}
        here = gspo("import", trainer, name, "--json")
        assert here.exit_code == 0, here.stderr
        assert json.loads(here.stdout)["recipe"]["trainer"]["steps"] == 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", "tlr", "a.py"), "did you mean 'trl'?"),
        (("import", "trl", "none.py"), "cannot read none.py"),
        (("import", "trl", "a.py", "--out", "no/r.yaml"), "there is no folder no"),
        (("import", "trl", "a.py", "--out", "a.py"), "the file that is read"),
        (("export", "verl", "dmeo"), "did you mean 'demo'?"),
        (("export", "openrlhf", "demo", "objective=grpo"), "no counterpart"),
    ],
)
def test_what_is_wrong_ends_with_2(gspo, words, message):
    Path("a.py").write_text("GRPOConfig(beta=0.0)")
    result = gspo(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert Path("a.py").read_text() == "GRPOConfig(beta=0.0)"


def test_an_unknown_key_ends_with_2_and_lenient_reports_it(gspo):
    Path("a.py").write_text("GRPOConfig(beta=0.0, betta=1)")
    strict = gspo("import", "trl", "a.py", "--out", "r.yaml")
    assert strict.exit_code == 2
    assert "a.py line 1: TRL has no setting betta" in strict.stderr
    assert "'beta'" in strict.stderr
    assert not Path("r.yaml").exists()
    lenient = gspo("import", "trl", "a.py", "--lenient", "--json")
    assert [line["key"] for line in json.loads(lenient.stdout)["not_carried"]] == ["betta"]


def test_a_dry_run_says_what_the_recipe_lacks(gspo):
    gspo("import", "trl", FILES / "trl_article.py", "--out", "r.yaml")
    result = gspo("train", "r.yaml", "--dry-run")
    assert result.exit_code in (2, 3)
    assert "MISSING/" in result.stderr


def test_importing_loads_no_torch():
    code = (
        "import sys; from pathlib import Path; from gspo.recipes.importers.convert import import_settings; "
        f"import_settings('trl', Path({str(FILES / 'trl_article.py')!r})); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_commands_of_the_page_run_in_order(gspo):
    page = (ROOT / "docs" / "other-trainers.md").read_text()
    Path("train.py").write_text(blocks(page, "python")[0].text)
    for block, name in zip(blocks(page, "sh"), ("run_verl.sh", "run_openrlhf.sh"), strict=True):
        Path(name).write_text(block.text)
    printed = []
    for first, *words in commands(page):
        assert first == "gspo"
        result = gspo(*words)
        assert result.exit_code == 0, (words, result.stderr)
        printed.append(result.stdout)
    for name in ("from-trl.yaml", "from-verl.yaml", "from-openrlhf.yaml"):
        recipe = load_recipe(name)
        assert recipe.objective.name == "gspo"
        assert (recipe.objective.clip.low, recipe.objective.clip.high) == (3e-4, 4e-4)
        assert recipe.trainer.minibatches == 4
    shown = blocks(page, "text")[0].text.splitlines()
    assert [line for line in shown if line not in printed[0].splitlines()] == []
