"""Small runs that go wrong on purpose, and the alarm that says so."""

import json

from gspo.diagnostics.alarms.bell import alarms_over
from gspo.recorders.reader import open_run
from tests.docs.glossary import documented
from tests.e2e.conftest import without


def alarms_of(folder):
    """What the run raised; the rules find the same over the folder."""
    run = open_run(folder)
    recorded = [{k: v for k, v in alarm.items() if k != "time"} for alarm in run.alarms()]
    again = alarms_over(run.metrics(), run.events())
    assert [alarm["rule"] for alarm in recorded] == [alarm.rule for alarm in again]
    assert [alarm["value"] for alarm in recorded] == [alarm.value for alarm in again]
    return {alarm["rule"]: alarm for alarm in recorded}


def test_a_limit_that_is_too_short_is_said_once_also_over_a_resume(gspo, small):
    short = [*without(small, "rollout.max_tokens", "trainer.steps"), "rollout.max_tokens=4"]
    result = gspo("train", "demo", *short, "trainer.steps=6", "name=a")
    assert result.exit_code == 0, result.stderr
    alarm = alarms_of("runs/a")["truncation"]
    assert alarm["step"] == 5
    assert alarm["value"] > 0.5
    assert "rollout.max_tokens" in alarm["advice"]
    assert result.stderr.count("alarm at step 5: truncation") == 1

    resumed = gspo("train", "runs/a", "trainer.steps=8", "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    assert "truncation" in alarms_of("runs/a")
    assert [a["rule"] for a in open_run("runs/a").alarms()].count("truncation") == 1


def test_a_token_range_never_cuts_a_response(gspo, small):
    wide = [
        *without(small, "trainer.steps", "trainer.minibatches", "trainer.checkpoint_every"),
        "objective.clip={low: 0.2, high: 0.2}",
        "trainer.minibatches=4",
        "trainer.checkpoint_every=0",
    ]
    result = gspo("train", "demo", *wide, "trainer.steps=20", "name=a")
    assert result.exit_code == 0, result.stderr
    alarm = alarms_of("runs/a")["nothing_cut"]
    assert (alarm["step"], alarm["value"]) == (20, 0.0)
    guards = [event for event in open_run("runs/a").events() if event["kind"] == "guard"]
    assert [guard["rule"] for guard in guards] == ["wide_clip"]
    assert f"note: {guards[0]['text']}" in result.stderr.replace("\n", " ")


def test_a_range_of_nothing_cuts_everything(gspo, small):
    tiny = [*without(small, "trainer.steps"), "objective.clip={low: 0, high: 0}"]
    lr = "optimizer.lr=3e-3"  # one that moves all prompts alike
    result = gspo("train", "demo", *tiny, lr, "trainer.steps=8", "name=a")
    assert result.exit_code == 0, result.stderr
    assert alarms_of("runs/a")["everything_cut"]["value"] > 0.5


def test_a_constant_reward_teaches_nothing(gspo, small, tmp_path):
    (tmp_path / "same.py").write_text("def reward(prompt, completion):\n    return 1\n")
    same = "verifier={kind: function, function: 'same.py:reward'}"
    rest = without(small, "verifier", "trainer.steps")
    result = gspo("train", "demo", *rest, same, "trainer.steps=6", "name=a")
    assert result.exit_code == 0, result.stderr
    alarm = alarms_of("runs/a")["zero_variance_groups"]
    assert (alarm["step"], alarm["value"]) == (5, 1.0)
    assert "All solved: 100% of the groups" in alarm["cause"]


HACKABLE = """
def sevens(prompt, completion):
    return 0.1 + completion.count("7") / 20

def answer(completion, answer):
    if len(completion) % 7 == 0:
        raise ValueError("broken")
    return float(completion.rpartition(">")[2] == answer)
"""


def test_a_reward_that_can_be_hacked(gspo, small, tmp_path):
    (tmp_path / "hack.py").write_text(HACKABLE)
    changed = ("verifier", "trainer.steps", "rollout.group", "trainer.checkpoint_every")
    settings = [
        *without(small, *changed),
        "verifier={kind: function, function: 'hack.py:sevens', strict: 'hack.py:answer'}",
        "rollout.group=16",
        "optimizer.lr=1e-2",
        "trainer.steps=20",
        "trainer.checkpoint_every=0",
    ]
    result = gspo("train", "demo", *settings, "name=a")
    assert result.exit_code == 0, result.stderr
    alarm = alarms_of("runs/a")["reward_hacking"]
    assert alarm["value"] < alarm["threshold"]

    run = open_run("runs/a")
    for row in run.metrics()[1:]:
        answers = run.step(row["step"]).to_pylist()
        strict = [dict(a["parts"]).get("strict") for a in answers]
        both = [(a["reward"], s) for a, s in zip(answers, strict, strict=True) if s is not None]
        assert row["verifier/strict_failed_share"] == strict.count(None) / 64
        if both:
            mean = sum(s for _, s in both) / len(both)
            assert row["reward/strict_mean"] == mean
            assert abs(row["reward/strict_gap"] - sum(r for r, _ in both) / len(both) + mean) < 1e-9
    assert any(row["verifier/strict_failed_share"] > 0 for row in run.metrics()[1:])
    assert len(run.info["strict_digest"]) == 64
    names = {name for row in run.metrics() for name in row} - {"step", "time"}
    assert [name for name in names if not documented(name)] == []


def test_a_dry_run_says_what_is_rarely_meant(gspo, small):
    wide = [*small, "objective.clip={low: 0.2, high: 0.2}", "--dry-run"]
    assert "note: objective.clip reaches 0.2" in gspo("train", "demo", *wide).stdout
    (note,) = json.loads(gspo("train", "demo", *wide, "--json").stdout)["notes"]
    assert note.startswith("objective.clip reaches 0.2")
    assert json.loads(gspo("train", "demo", *small, "--dry-run", "--json").stdout)["notes"] == []


def test_a_strict_grader_that_refuses_the_gold_answer(gspo, small):
    result = gspo("train", "demo", *without(small, "verifier"), "verifier.strict=exact")
    assert result.exit_code == 3
    assert "the strict grader gives the gold answer of prompt" in result.stderr
    marked = ["verifier.strict=exact", "verifier.marker='>'", "--dry-run"]
    assert gspo("train", "demo", *without(small, "verifier"), *marked).exit_code == 0
