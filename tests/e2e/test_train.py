"""Whole runs, small."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from gspo.objectives import OBJECTIVES
from gspo.recorders.reader import open_run
from tests.docs.glossary import documented
from tests.e2e.conftest import without

TIMED = ("time", "time/", "speed/", "memory/")


def numbers(run) -> list[dict]:
    """The metrics that a repetition must reproduce."""
    return [
        {name: value for name, value in row.items() if not name.startswith(TIMED)}
        for row in run.metrics()
    ]


def weights(run) -> dict[str, torch.Tensor]:
    checkpoints = run.checkpoints()
    model = AutoModelForCausalLM.from_pretrained(checkpoints[max(checkpoints)] / "model")
    return dict(model.named_parameters())


@pytest.fixture
def run(gspo, small):
    result = gspo("train", "demo", "name=a", *small, "--json")
    assert result.exit_code == 0, result.stderr
    return result, open_run("runs/a")


def test_a_run_leaves_what_the_page_says(run):
    result, folder = run
    report = json.loads(result.stdout)
    assert report["run"] == "runs/a"
    assert report["steps"] == 2
    assert set(report["after"]["pass@k"]) == {"2"}
    assert folder.status == "finished"
    assert folder.steps() == [1, 2]
    assert folder.evals() == [0, 2]
    assert folder.damaged == []
    assert sorted(folder.checkpoints()) == [0, 1, 2]
    assert {e["kind"] for e in folder.events()} >= {"started", "evaluated", "finished"}
    undocumented = {n for row in folder.metrics() for n in row if not documented(n)} - {
        "step",
        "time",
    }
    assert undocumented == set()


def test_rows_and_metrics_tell_the_same_story(run):
    _, folder = run
    for step in folder.steps():
        rows = folder.step(step).to_pylist()
        metrics = next(m for m in folder.metrics() if m["step"] == step)
        assert len(rows) == 16
        assert metrics["reward/mean"] == pytest.approx(sum(r["reward"] for r in rows) / 16)
        for row in rows:
            count = row["length"]
            assert count == len(row["tokens"]) == len(row["logp"]) == len(row["old_logp"])
            gap = math.fsum(row["logp"]) - math.fsum(row["old_logp"])
            assert row["log_s"] == pytest.approx(gap / count, abs=1e-6)
            assert row["version"] == step - 1
            if row["minibatch"] == 1:
                assert row["log_s"] == 0
        for group in range(4):
            mine = [r for r in rows if r["group"] == group]
            assert sum(r["advantage"] for r in mine) == pytest.approx(0, abs=1e-5)
            assert len({r["minibatch"] for r in mine}) == 1
        off_policy = [r for r in rows if r["minibatch"] == 2 and r["advantage"] != 0]
        if off_policy:
            cut = sum(r["cut_low"] + r["cut_high"] for r in off_policy) / len(off_policy)
            assert metrics["clip/cut_share"] == pytest.approx(cut)


def test_the_model_is_a_normal_hugging_face_folder(run):
    _, folder = run
    path = folder.checkpoints()[2] / "model"
    assert (path / "model.safetensors").is_file()
    assert not list(path.rglob("*.bin"))
    model = AutoModelForCausalLM.from_pretrained(path)
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    tokenizer = AutoTokenizer.from_pretrained(path)
    assert tokenizer.decode(tokenizer("3+4=")["input_ids"]) == "3+4="
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_training_moved_the_weights_and_the_same_seed_moves_them_alike(run, gspo, small):
    _, folder = run
    start = AutoModelForCausalLM.from_pretrained(folder.checkpoints()[0] / "model")
    first = weights(folder)
    assert any(not torch.equal(first[n], p) for n, p in start.named_parameters())
    assert gspo("train", "demo", "name=b", *small).exit_code == 0
    again = open_run("runs/b")
    assert all(torch.equal(first[n], p) for n, p in weights(again).items())
    assert numbers(folder) == numbers(again)


def test_resume_goes_on_where_the_run_stopped(gspo, small):
    longer = [*without(small, "trainer.steps"), "trainer.steps=3"]
    assert gspo("train", "demo", "name=whole", *longer).exit_code == 0
    assert gspo("train", "demo", "name=parts", *small).exit_code == 0
    result = gspo("train", "runs/parts", "trainer.steps=3", "--resume")
    assert result.exit_code == 0, result.stderr
    whole, parts = open_run("runs/whole"), open_run("runs/parts")
    assert all(torch.equal(weights(whole)[n], p) for n, p in weights(parts).items())
    # The part's own evaluation after step 2 is the only thing that the whole run has not.
    assert numbers(whole)[-1] == numbers(parts)[-1]
    assert parts.steps() == [1, 2, 3]


def test_resume_refuses_another_learning_rate_and_names_it(gspo, small):
    assert gspo("train", "demo", "name=a", *small).exit_code == 0
    result = gspo("train", "runs/a", "optimizer.lr=1e-3", "--resume")
    assert result.exit_code == 2
    assert "optimizer.lr was 3e-05, is 0.001" in result.stderr


def test_resume_of_a_finished_run_says_so_and_trains_nothing(gspo, small):
    assert gspo("train", "demo", "name=a", *small).exit_code == 0
    result = gspo("train", "runs/a", "--resume")
    assert result.exit_code == 2
    assert "finished" in result.stderr
    assert "trainer.steps" in result.stderr


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_trains(gspo, small, name):
    result = gspo("train", "demo", f"objective={name}", *small, "coldstart=null", "name=a")
    assert result.exit_code == 0, result.stderr
    assert open_run("runs/a").metrics()[-1]["grad/norm"] is not None


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_every_kl_penalty_trains(gspo, small, estimator):
    kl = f"objective={{name: gspo, kl: {{coefficient: 0.1, estimator: {estimator}}}}}"
    result = gspo("train", "demo", kl, *small, "coldstart=null", "name=a")
    assert result.exit_code == 0, result.stderr
    first = open_run("runs/a").metrics()[1]
    assert ("loss/kl" in first) == (estimator != "k1")


def test_responses_can_be_mixed_over_minibatches(gspo, small):
    result = gspo("train", "demo", "trainer.minibatch_by=response", *small, "name=a")
    assert result.exit_code == 0, result.stderr
    rows = open_run("runs/a").step(1).to_pylist()
    assert any(len({r["minibatch"] for r in rows if r["group"] == g}) > 1 for g in range(4))


def test_own_data_and_own_function(gspo, small, tmp_path):
    (tmp_path / "own.jsonl").write_text(
        "".join(json.dumps({"prompt": f"{k}+1=", "wanted": str(k + 1)}) + "\n" for k in range(8))
    )
    (tmp_path / "reward.py").write_text(
        "def reward(prompt, completion, wanted):\n    return float(wanted in completion)\n"
    )
    assert gspo("train", "demo", "name=start", *small).exit_code == 0
    result = gspo(
        "train",
        "own-data",
        "model.path=runs/start/checkpoints/step-000002/model",
        "data.path=own.jsonl",
        "data.columns.answer=null",
        "verifier.function=reward.py:reward",
        "name=own",
        *(s for s in small if s.startswith(("rollout", "trainer"))),
    )
    assert result.exit_code == 0, result.stderr
    info = open_run("runs/own").info
    assert len(info["verifier_digest"]) == 64
    assert open_run("runs/own").evals() == []


def test_dry_run_checks_and_trains_nothing(gspo, small):
    result = gspo("train", "demo", *small, "--dry-run", "--json")
    report = json.loads(result.stdout)
    assert (report["num_prompts"], report["num_held_out"], report["num_probed"]) == (16, 4, 16)
    parameters = report["memory"]["weights"] // 4
    assert report["memory"]["total"] == sum(v for k, v in report["memory"].items() if k != "total")
    assert 2000 < parameters < 10000
    assert not Path("runs").exists()


def test_eval_and_sample_read_a_run(gspo, small):
    assert gspo("train", "demo", "name=a", *small).exit_code == 0
    after = json.loads(gspo("eval", "runs/a", "--json").stdout)
    recorded = [e for e in open_run("runs/a").events() if e["kind"] == "evaluated"][-1]
    assert after["pass@1"] == recorded["eval/pass@1"]
    assert after["interval"] == recorded["interval"]
    assert after["task"] == "addition"
    samples = json.loads(gspo("sample", "runs/a", "--prompts", "2", "--json").stdout)["samples"]
    assert len(samples) == 2
    assert samples[0]["before"]["text"] is not None
    model = "runs/a/checkpoints/step-000002/model"
    refused = gspo("eval", model)
    assert refused.exit_code == 2
    assert "add --recipe" in refused.stderr


def test_coldstart_is_cached_by_its_content(gspo, small):
    first = json.loads(gspo("coldstart", "demo", *small, "seed=11", "--json").stdout)
    again = json.loads(gspo("coldstart", "demo", *small, "seed=11", "--json").stdout)
    other = json.loads(gspo("coldstart", "demo", *small, "seed=12", "--json").stdout)
    assert (first["cached"], again["cached"], other["cached"]) == (False, True, False)
    assert first["model"] == again["model"] != other["model"]


def test_a_verifier_that_raises_stops_the_run_and_keeps_what_was_recorded(gspo, small, tmp_path):
    (tmp_path / "bad.py").write_text(
        "def reward(prompt, completion, answer):\n    raise ValueError('no answer')\n"
    )
    bad = "verifier={kind: function, function: 'bad.py:reward'}"
    result = gspo("train", "demo", *without(small, "verifier"), bad, "name=a")
    assert result.exit_code == 3
    assert "ValueError: no answer" in result.stderr


def test_weights_that_blow_up_end_with_exit_4_and_leave_a_finite_model(gspo, small):
    big = [*without(small, "trainer.steps"), "optimizer.lr=1e30", "trainer.steps=9"]
    result = gspo("train", "demo", *big, "name=a")
    assert result.exit_code == 4, result.stderr
    run = open_run("runs/a")
    assert run.status == "interrupted"
    last = run.events()[-1]
    assert (last["kind"], last["step"]) == ("stopped", max(run.steps(), default=0))
    assert all(p.isfinite().all() for p in weights(run).values())


def test_ctrl_c_ends_cleanly_and_resume_finishes(tmp_path, cache, small):
    settings = without(small, "trainer.steps", "verifier")
    environment = {**os.environ, "GSPO_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "gspo.cli.main", "train"]
    process = subprocess.Popen(
        [*command, "demo", *settings, "trainer.steps=100000", "name=a"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "runs" / "a" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text().count("\n") > 3):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume" in errors
    run = open_run(tmp_path / "runs" / "a")
    assert run.status == "interrupted"
    assert run.damaged == []
    last = run.steps()[-1]
    assert max(run.checkpoints()) == last
    done = subprocess.run(
        [*command, "runs/a", "--resume", f"trainer.steps={last + 1}"],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert open_run(tmp_path / "runs" / "a").steps() == list(range(1, last + 2))
