"""`gspo prompts`, and training on what it kept; dynamic sampling, refresh and a growing limit in a
whole run, straight and resumed; one's own file with one's own function."""

import json

import pytest

from gspo.recorders.reader import open_run
from tests.docs.glossary import documented
from tests.e2e.conftest import without
from tests.e2e.test_train import numbers, weights

#: Some prompts always earn the reward, some never, some by chance.
MIXED = """
def reward(prompt, completion, gold):
    if completion == gold:
        return 1.0
    kind = int(prompt[0]) % 3
    return (1.0, 0.0, float(len(set(completion)) % 2))[kind]
"""

EXTRAS = [
    "verifier.function=mixed.py:reward",
    "rollout.dynamic_sampling={max_factor: 3}",
    "rollout.length_schedule={start: 8, steps: 3}",
    "data.refresh={every: 2}",
    "trainer.steps=4",
    "trainer.keep_checkpoints=9",
    "evaluate.prompts=2",
]


@pytest.fixture
def mixed(tmp_path):
    (tmp_path / "mixed.py").write_text(MIXED)


def test_prompts_measures_filters_and_only_filters_again(gspo, small, mixed, tmp_path):
    settings = [*small, "verifier.function=mixed.py:reward"]
    result = gspo("prompts", "demo", *settings, "--samples", "4", "--picture", "p.html", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["num_prompts"] == 16
    assert sum(entry["count"] for entry in report["histogram"]) == 16
    rates, kept = (
        [
            json.loads(line)
            for line in (tmp_path / f"addition.{name}.jsonl").read_text().splitlines()
        ]
        for name in ("rates", "middle")
    )
    assert len(rates) == 16
    assert {r["id"] for r in kept} == {r["id"] for r in rates if 0 < r["pass_rate"] < 1}
    assert report["kept"] == len(kept)
    assert all(int(row["prompt"][0]) % 3 == 2 for row in kept)
    assert (tmp_path / "p.html").stat().st_size > 1000
    before = (tmp_path / "addition.rates.jsonl").read_bytes()
    again = gspo("prompts", "demo", *settings, "--samples", "4", "--above", "0.9")
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "addition.rates.jsonl").read_bytes() == before
    assert "0 kept, with a pass rate above 0.9 and below 1" in again.stdout
    assert "16 prompts of addition, 4 responses each" in again.stdout


def test_training_on_the_prompts_that_were_kept(gspo, small, mixed):
    settings = [*small, "verifier.function=mixed.py:reward"]
    settings = without(settings, "rollout.prompts", "trainer.minibatches=", "data.num_prompts")
    settings += ["rollout.prompts=1", "trainer.minibatches=1", "data.num_prompts=40"]
    kept = json.loads(gspo("prompts", "demo", *settings, "--json").stdout)["kept"]
    assert 0 < kept < 40
    only = "data.only=addition.middle.jsonl"
    result = gspo("train", "demo", "name=a", *settings, only, "--json")
    assert result.exit_code == 0, result.stderr
    run = open_run("runs/a")
    assert run.info["num_prompts"] == kept
    assert run.info["data"][0]["dropped"] == [
        {
            "what": "not in addition.middle.jsonl",
            "count": 40 - kept,
            "first": run.info["data"][0]["dropped"][0]["first"],
        }
    ]
    assert "addition: 40 read" in result.stderr


def test_a_range_that_is_none(gspo, small):
    result = gspo("prompts", "demo", *small, "--above", "0.5", "--below", "0.5")
    assert result.exit_code == 2
    assert "--above is 0.5 and --below 0.5" in result.stderr


def test_what_a_run_with_all_of_it_records(gspo, small, mixed):
    settings = [*without(small, "trainer.steps", "evaluate.prompts"), *EXTRAS]
    assert gspo("train", "demo", "name=a", *settings).exit_code == 0
    rows = [row for row in open_run("runs/a").metrics() if row["step"]]
    names = {name for row in rows for name in row} - {"step", "time"}
    assert names >= {"dynamic/sampled_groups", "queries/active", "rollout/max_tokens"}
    assert sorted(name for name in names if not documented(name)) == []
    assert [row["rollout/max_tokens"] for row in rows] == [8, 14, 20, 20]
    assert all(4 <= row["dynamic/sampled_groups"] <= 12 for row in rows)


def sampled_and_trained(run):
    """The steps' numbers; evaluations stand where a run began and ended."""
    rows = [row for row in numbers(run) if row["step"]]
    return [{n: v for n, v in row.items() if not n.startswith("eval/")} for row in rows]


@pytest.mark.parametrize("stopped_after", [1, 2, 3])
def test_resume_after(gspo, small, mixed, stopped_after):
    settings = [*without(small, "trainer.steps", "evaluate.prompts"), *EXTRAS]
    short = [*without(settings, "trainer.steps"), f"trainer.steps={stopped_after}"]
    assert gspo("train", "demo", "name=a", *settings).exit_code == 0
    assert gspo("train", "demo", "name=b", *short).exit_code == 0
    result = gspo("train", "runs/b", "trainer.steps=4", "--resume")
    assert result.exit_code == 0, result.stderr
    straight, resumed = open_run("runs/a"), open_run("runs/b")
    assert sampled_and_trained(resumed) == sampled_and_trained(straight)
    for name, value in weights(straight).items():
        assert value.equal(weights(resumed)[name]), name


def test_ones_own_file_with_ones_own_function(gspo, small, tmp_path):
    """docs/data.md: other column names, bad rows, a column that the function asks for."""
    assert gspo("train", "demo", "name=start", *small).exit_code == 0
    rows = [
        {"question": f"{k}+{k}=", "solution": str(2 * k), "bonus": k % 2} for k in range(10, 20)
    ]
    rows += [{"question": " ", "solution": "1"}, {"question": "1+1=", "solution": None}]
    rows += [{"question": "1" * 60, "solution": "1", "bonus": 0}]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "judge.py").write_text(
        "def reward(completion, answer, bonus):\n"
        "    return float(answer in completion) + 0.1 * bonus * len(set(completion))\n"
    )
    checkpoint = max(open_run("runs/start").checkpoints().values())
    settings = [
        f"model.path={checkpoint / 'model'}",
        "data.path=own.jsonl",
        "data.columns={prompt: question, answer: solution}",
        "data.bad_rows=drop",
        "verifier.function=judge.py:reward",
        "rollout.prompts=4",
        "rollout.group=4",
        "rollout.max_tokens=20",
        "trainer.steps=1",
        "trainer.minibatches=2",
    ]
    result = gspo("train", "own-data", "name=own", *settings, "--json")
    assert result.exit_code == 0, result.stderr
    data = open_run("runs/own").info["data"][0]
    assert (data["rows"], data["kept"]) == (13, 10)
    assert {entry["what"]: entry["count"] for entry in data["dropped"]} == {
        "the prompt is empty": 1,
        "no column 'solution'": 1,
        "longer than 44 tokens": 1,
    }
    assert "own.jsonl: 13 read, 10 kept, 3 dropped" in result.stderr
