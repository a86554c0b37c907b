"""The table of workloads, and the inputs both sides are given."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench.versus.batches import recorded_batch
from bench.versus.channel import Worker, WorkerError
from bench.versus.driver import names, relative_difference
from bench.versus.inputs import (
    geometric_rate,
    group_rewards,
    num_end_ids,
    recorded_lengths,
    write_inputs,
    write_model,
)
from bench.versus.peer_settings import SETTINGS
from bench.versus.rows import METRICS
from bench.versus.shapes import SMALL
from bench.versus.workloads import MAIN, WORKLOADS

ROOT = Path(__file__).parents[2]
each_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda w: w.name)
TINY = replace(
    SMALL, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate=16, vocab=64
)


@each_workload
def test_a_workload_can_be_measured(workload):
    """Minibatches are whole, settings are known, and each figure is a metric of its kind."""
    assert workload.batch % workload.minibatches == 0
    assert workload.groups % workload.minibatches == 0 or workload.kind == "generate"
    assert set(workload.peer_settings) <= SETTINGS.keys()
    known = {metric for metric, *_ in METRICS[workload.kind]} | {"roofline_share", "extra_factor"}
    assert {figure.metric for figure in workload.figures} <= known
    assert workload.prompt + workload.response <= 4096
    shown = workload.name.endswith("-eos") or workload.length_share == 1
    assert shown or workload.kind == "update"


def test_every_update_and_step_with_z_has_a_row_without():
    for workload in WORKLOADS.values():
        if workload.zero_share:
            plain = WORKLOADS[workload.name.replace("-z50", "")]
            assert plain.zero_share == 0
            assert (plain.prompt, plain.response) == (workload.prompt, workload.response)


def test_the_main_row_is_one():
    assert MAIN in WORKLOADS


def test_rows_are_chosen_by_name_in_the_tables_order():
    assert names(["b", "a"], ["a", "b", "c"]) == ["a", "b"]
    assert names([], ["a", "b"]) == ["a", "b"]
    with pytest.raises(ValueError, match="no row 'x'; there are: a, b"):
        names(["x"], ["a", "b"])


@pytest.mark.parametrize(("share", "equal"), [(0.0, 0), (0.5, 2), (0.75, 3), (1.0, 4)])
def test_z_is_the_share_of_groups_whose_rewards_are_equal(share, equal):
    workload = replace(WORKLOADS["step-p128"], groups=4, samples=4, zero_share=share)
    rewards = group_rewards(workload)
    groups = [rewards[first : first + 4] for first in range(0, 16, 4)]
    assert sum(len(set(group)) == 1 for group in groups) == equal
    assert all(group in ([0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]) for group in groups)


def test_recorded_lengths_have_the_wanted_mean_over_the_longest():
    lengths = recorded_lengths(WORKLOADS["update-p128-z50"])
    assert max(lengths) == 128
    assert sum(lengths) / len(lengths) / 128 == pytest.approx(0.6, abs=0.005)
    assert set(recorded_lengths(WORKLOADS["update-p128"])) == {128}


def test_ends_per_limit_by_hand():
    # (1 - e^-x) / x = 0.4: at x = 2.2316, e^-x = 0.10736 and 0.89264 / 2.2316 = 0.4000.
    assert geometric_rate(0.4) == pytest.approx(2.2316, abs=1e-4)
    # 2.2316 / 256 of 1,024 ids = 8.9
    assert num_end_ids(WORKLOADS["gen-5m-128-eos"]) == 9
    assert num_end_ids(WORKLOADS["gen-5m-128"]) == 1


def test_inputs_are_whole_and_the_tokenizer_gives_the_ids_back(tmp_path):
    from transformers import AutoTokenizer

    workload = replace(WORKLOADS["update-p128-z50"], shape=TINY, prompt=4, response=10)
    write_model(TINY, tmp_path / "model")
    write_inputs(workload, tmp_path / "inputs.json")
    given = json.loads((tmp_path / "inputs.json").read_text())
    assert sorted(row for rows in given["minibatches"] for row in rows) == list(range(128))
    assert all(len({row // 8 for row in rows}) == 4 for rows in given["minibatches"])
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    ids = given["prompts"][0]
    assert tokenizer(" ".join(f"t{number}" for number in ids))["input_ids"] == ids
    batch = recorded_batch(given, workload.samples)
    assert batch.segments.lengths.tolist() == [len(ids) for ids in given["responses"]]
    torch.testing.assert_close(batch.advantage, torch.tensor(given["advantages"]))


def test_gradients_are_compared_over_all_tensors(tmp_path):
    from safetensors.torch import save_file

    # |b| = 5, |a - b| = sqrt(0.09 + 0.16) = 0.5
    one = {"w": torch.tensor([3.3]), "v": torch.tensor([4.4])}
    other = {"w": torch.tensor([3.0]), "v": torch.tensor([4.0])}
    save_file(one, tmp_path / "a")
    save_file(other, tmp_path / "b")
    assert relative_difference(tmp_path / "a", tmp_path / "b") == pytest.approx(0.1, rel=1e-5)
    save_file({"w": torch.tensor([3.0])}, tmp_path / "c")
    with pytest.raises(ValueError, match="other parameters"):
        relative_difference(tmp_path / "a", tmp_path / "c")


ECHO = """
from bench.versus.channel import Channel
channel = Channel()
print("noise of a library")
channel.send({"ready": True})
for command in channel.commands():
    if command.get("die"):
        raise SystemExit("it broke")
    channel.send({"heard": command})
"""


def test_a_worker_answers_and_its_noise_does_not_disturb(tmp_path):
    with Worker([sys.executable, "-c", ECHO], tmp_path / "log") as worker:
        assert worker.ready == {"ready": True}
        assert worker.ask({"n": 1}) == {"heard": {"n": 1}}
        with pytest.raises(WorkerError, match="it broke"):
            worker.ask({"die": True})
    assert "noise" in (tmp_path / "log").read_text()


def test_what_the_peers_environment_reads_needs_nothing_of_ours():
    """The peer's worker imports these; gspo is not installed beside it."""
    modules = (
        "channel, conditions, memory, peer_settings, results, shapes, training_state, workloads"
    )
    code = (
        f"import sys; from bench.versus import {modules}\n"
        "assert not [m for m in sys.modules if m == 'gspo' or m.startswith('gspo.')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_without_a_gpu_the_gpu_bench_says_so_and_with_a_tiny_size_it_runs():
    script = str(ROOT / "bench" / "gpu.py")
    if not torch.cuda.is_available():
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        assert "no GPU" in done.stdout
    command = [sys.executable, script, "--device", "cpu", "--tiny", "--dtype", "float32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["gradient_difference"] < 1e-5
    assert report["generate"]["ours_s"] > 0
    assert report["update"]["peer_s"] > 0
