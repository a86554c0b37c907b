"""What the dashboard says of a run is what the run folder holds; sums and pairs worked by hand."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gspo.dashboard import answers
from gspo.dashboard.answers import NotFoundError, ResponseQuery, RunFolderView, open_view
from gspo.dashboard.answers_metrics import matches, thinned
from gspo.dashboard.cancelling import cancelling_pairs
from gspo.dashboard.plain import json_bytes, plain
from gspo.diagnostics.attribution import explain_response
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Mean
from tests.browser.recorded import Recording, make_run
from tests.recorder_rows import row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"), "a", steps=8, responses=32)


@pytest.fixture
def run(path: Path) -> RunFolderView:
    return open_view(path)


def test_the_columns_are_those_of_the_reader(run: RunFolderView, path: Path) -> None:
    names = [name for name in run.metrics().names if not name.endswith("histogram")]
    names = [name for name in names if not name.endswith("histogram_all")]
    answer = answers.metrics(run, ["*"])
    assert sorted(answer["columns"]) == sorted(names)
    assert {"step": answer["step"], **answer["columns"]} == open_run(path).columns(*names)
    assert answer["step"] == [*range(9)]
    assert answer["time"][1] - answer["time"][0] == pytest.approx(9.0)


def test_only_the_asked_for_names_and_steps_come(run: RunFolderView) -> None:
    answer = answers.metrics(run, ["reward/mean", "clip/cut_share/len_*", "no/such"], after=6)
    assert answer["step"] == [7, 8]
    assert len(answer["time"]) == len(answer["columns"]["reward/mean"]) == 2
    others = set(answer["columns"]) - {"reward/mean"}
    assert others
    assert all(name.startswith("clip/cut_share/len_") for name in others)


def test_histograms_are_the_recorded_ones_with_the_range_of_their_step(
    run: RunFolderView, path: Path
) -> None:
    answer = answers.histograms(run, "log_s/histogram")
    rows = [r for r in open_run(path).metrics() if r.get("log_s/histogram")]
    assert answer["step"] == [r["step"] for r in rows] == [*range(1, 9)]
    assert answer["counts"] == [r["log_s/histogram"]["counts"] for r in rows]
    assert answer["edges"] == rows[0]["log_s/histogram"]["edges"]
    assert answer["low"] == [r["clip/low"] for r in rows]
    assert answers.histograms(run, "log_s/histogram", limit=3)["step"] == [1, 5, 8]
    assert answers.histograms(run, "log_s/histogram", after=6)["step"] == [7, 8]
    with pytest.raises(NotFoundError, match="did you mean 'log_s/histogram'"):
        answers.histograms(run, "log_s/histograms")


def test_the_head_of_a_run_worked_by_hand(run: RunFolderView, path: Path) -> None:
    answer = answers.overview(run)
    rows = open_run(path).metrics()
    assert (answer["name"], answer["status"], answer["problem"]) == ("a", "finished", None)
    assert (answer["step"], answer["total_steps"], answer["time_left_s"]) == (8, 8, None)
    assert answer["objective"] == {
        "name": "gspo", "unit": "sequence", "clip": "auto", "form": "auto",
    }  # fmt: skip
    # The last event, "refit" after step 6, holds from step 7; the last step recorded it too.
    assert answer["band"] == {
        "form": "range", "low": rows[8]["clip/low"], "high": rows[8]["clip/high"],
    }  # fmt: skip
    assert (answer["minibatches"], answer["group_size"], answer["cut_share_wanted"]) == (4, 8, 0.15)
    head = answer["headline"]
    assert head["reward_before"] == rows[1]["reward/mean"]
    assert head["reward"] == rows[8]["reward/mean"]
    assert head["pass_at_1_before"] == pytest.approx(
        {"value": 0.35, "low": 0.31, "high": 0.39, "step": 0, "num_prompts": 8}
    )
    assert head["pass_at_1"] == pytest.approx(
        {"value": 0.85, "low": 0.81, "high": 0.89, "step": 8, "num_prompts": 8}
    )
    assert head["pass_at_k"] == pytest.approx({"2": 1 - 0.15**2, "4": 1 - 0.15**4})
    assert head["greedy"] == pytest.approx(0.87)
    assert head["strict_gap"] == rows[8]["reward/strict_gap"]
    assert [alarm["rule"] for alarm in answer["alarms"]] == ["clip/never"]
    assert [event["kind"] for event in answer["events"]] == [
        "started", "evaluated", "clip_fixed", "refit", "evaluated", "finished",
    ]  # fmt: skip
    assert answer["buckets"] == ["4-7", "8-15", "16-31", "32-63", "64-127", "128-255"]
    assert (answer["steps"], answer["evals"], answer["damaged"]) == ([*range(1, 9)], [0, 8], [])
    assert answer["info"]["seed"] == 0
    assert answer["elapsed_s"] == pytest.approx(
        8 * 9 + 2 * 1 + 0.1
    )  # steps, evaluations, the alarm


def test_an_evaluation_alone_has_no_before(tmp_path: Path) -> None:
    with Recording(tmp_path, "a", responses=16) as recording:
        recording.evaluate()
        recording.add_step()
        head = answers.overview(open_view(recording.path))["headline"]
    assert head["pass_at_1"]["step"] == 0
    assert head["pass_at_1_before"] is None


def test_time_left_is_the_median_step_times_the_steps_to_come(tmp_path: Path) -> None:
    with Recording(tmp_path, "a", responses=16, total_steps=10) as recording:
        for _ in range(4):
            recording.add_step()
        answer = answers.overview(open_view(recording.path))
        assert answer["status"] == "running"
        assert answer["time_left_s"] == pytest.approx(6 * 9.0)


@pytest.mark.parametrize(
    ("objective", "form", "band"),
    [
        ("gspo", "auto", None),
        ("{name: gspo, clip: paper}", "range", ("range", 3e-4, 4e-4)),
        ("{name: gspo, clip: {low: 0.1, high: 0.2}}", "range", ("range", 0.1, 0.2)),
        ("{name: gspo, clip: {length_fair: {low: 0.3, high: 0.4}}}", "length_fair",
         ("length_fair", 0.3, 0.4)),
        ("grpo", "range", ("range", 0.2, 0.2)),
        ("{name: gmpo, clip: {low: 0.4, high: 0.5}}", "log", ("log", 0.4, 0.5)),
        ("{name: sapo, tau_pos: 1.0}", "none", None),
        ("sapo", "none", None),
        ("{name: gspo, clip: 7}", "none", None),
        ("{name: gspo, clip: {low: x, high: 1}}", "range", None),
    ],
)  # fmt: skip
def test_the_form_of_the_clip(
    tmp_path: Path, objective: str, form: str, band: tuple[str, float, float] | None
) -> None:
    RunFolder.create(tmp_path / "a", info={}, recipe=f"objective: {objective}\n").close()
    answer = answers.overview(open_view(tmp_path / "a"))
    assert answer["objective"]["form"] == form
    wanted = None if band is None else dict(zip(("form", "low", "high"), band, strict=True))
    assert answer["band"] == wanted


def test_an_event_after_the_last_step_is_the_range_in_force(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="objective: gspo\n")
    folder.step(1, {"clip/low": Mean(0.1, 1), "clip/high": Mean(0.2, 1)}, [])
    folder.event("clip_fixed", step=1, low=0.01, high=0.02)
    assert answers.overview(open_view(folder.path))["band"]["high"] == 0.02
    folder.step(2, {"clip/low": Mean(0.005, 1), "clip/high": Mean(0.006, 1)}, [])
    assert answers.overview(open_view(folder.path))["band"]["high"] == 0.006
    folder.close()


def test_paths_of_the_machine_stay_on_it(tmp_path: Path) -> None:
    info = {"model": "/srv/models/tiny", "deep": [{"at": "C:\\data\\x"}], "kept": "cpu"}
    RunFolder.create(tmp_path / "a", info=info, recipe="").close()
    shown = answers.overview(open_view(tmp_path / "a"))["info"]
    assert (shown["model"], shown["deep"], shown["kept"]) == ("…/tiny", [{"at": "…/x"}], "cpu")


# ------------------------------------------------------------------------------------- responses


def test_units_are_the_rows_of_the_table(run: RunFolderView, path: Path) -> None:
    answer = answers.units(run, 3)
    table = open_run(path).step(3)
    assert answer["row"] == [*range(32)]
    assert set(answer) == {
        "row", "group", "sample", "prompt_id", "source", "length", "reward", "advantage", "log_s",
        "minibatch", "cut_low", "cut_high", "finish", "skipped", "failure",
    }  # fmt: skip
    for name in answer.keys() - {"row"}:
        assert answer[name] == table.column(name).to_pylist()


ROWS = [
    row(sample=0, text="Straße", reward=1.0, advantage=0.5, log_s=0.2, cut_low=0, cut_high=1),
    row(sample=1, text="a.b", length=3, reward=0.0, advantage=-0.5, log_s=-0.1, cut_low=1, cut_high=0),
    row(sample=2, text="A.B", reward=None, parts={}, failure="No Answer", advantage=0.0, log_s=None,
        logp=None, old_logp=None, cut_high=0, finish="length", skipped="zero_advantage"),
    row(sample=3, group=1, text="x", prompt="AXB", reward=0.5, advantage=0.25, log_s=math.nan,
        cut_low=2, cut_high=2, minibatch=None),
]  # fmt: skip


@pytest.fixture
def four(tmp_path: Path) -> RunFolderView:
    folder = RunFolder.create(tmp_path / "four", info={}, recipe="objective: gspo\n")
    folder.step(1, {}, ROWS)
    folder.close()
    return open_view(folder.path)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({}, [0, 1, 2, 3]),
        ({"search": "STRASSE"}, [0]),
        ({"search": "a.b"}, [1, 2]),
        ({"search": "axb"}, [3]),
        ({"search": "no answer"}, [2]),
        ({"search": "P1"}, [0, 1, 2, 3]),
        ({"group": 1}, [3]),
        ({"finish": "length"}, [2]),
        ({"cut": "low"}, [1, 3]),
        ({"cut": "high"}, [0, 3]),
        ({"cut": "any"}, [0, 1, 3]),
        ({"cut": "none"}, [2]),
        ({"advantage": "positive"}, [0, 3]),
        ({"advantage": "negative"}, [1]),
        ({"advantage": "zero"}, [2]),
        ({"verdict": "failed"}, [2]),
        ({"verdict": "scored"}, [0, 1, 3]),
        ({"reward_min": 0.5}, [0, 3]),
        ({"reward_max": 0.5}, [1, 3]),
        ({"reward_min": 0.1, "reward_max": 0.9}, [3]),
        ({"length_min": 3}, [1]),
        ({"length_max": 2}, [0, 2, 3]),
        ({"length_min": 2, "length_max": 2.5}, [0, 2, 3]),
        ({"minibatch": 1}, [0, 1, 2]),
        ({"sort": "reward"}, [1, 3, 0, 2]),
        ({"sort": "reward", "descending": True}, [0, 3, 1, 2]),
        ({"sort": "log_s"}, [1, 0, 2, 3]),
        ({"sort": "group", "descending": True}, [3, 0, 1, 2]),
        ({"sort": "reward", "offset": 1, "limit": 2}, [3, 0]),
        ({"offset": 9}, []),
    ],
)
def test_each_filter_and_order(four: RunFolderView, query: dict[str, Any], rows: list[int]) -> None:
    answer = answers.responses(four, 1, ResponseQuery(**query))
    assert [found["row"] for found in answer["rows"]] == rows
    assert answer["total"] == 4
    assert answer["offset"] == query.get("offset", 0)
    if "offset" not in query:
        assert answer["matched"] == len(rows)


def test_a_row_has_the_beginning_and_the_detail_has_it_all(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="")
    text, prompt = "t" * 70_000, "p" * 500
    folder.step(1, {}, [replace(ROWS[0], text=text, prompt=prompt, failure="f" * 900)])
    folder.close()
    run = open_view(folder.path)
    (short,) = answers.responses(run, 1, ResponseQuery())["rows"]
    assert (len(short["text"]), len(short["prompt"]), len(short["failure"])) == (400, 400, 400)
    assert (short["num_chars"], short["parts"]) == (70_000, {"format": 0.5, "answer": 1.0})
    detail = answers.response(run, 1, 0)
    assert (len(detail["text"]), detail["num_chars"]) == (65_536, 70_000)
    assert (len(detail["prompt"]), detail["prompt_num_chars"]) == (500, 500)
    assert len(detail["failure"]) == 900
    assert answers.response(run, 1, 0, full=True)["text"] == text
    assert detail["tokens"]["id"] == [5, 2]
    assert detail["tokens"]["logp"] == [-0.375, -0.25]


def test_what_is_not_there_is_said(four: RunFolderView) -> None:
    for ask in (
        lambda: answers.units(four, 2),
        lambda: answers.response(four, 1, 4),
        lambda: answers.response(four, 1, -1),
        lambda: answers.top_tokens(four, 7),
    ):
        with pytest.raises(NotFoundError):
            ask()


# ---------------------------------------------------------------------------------------- tokens


def test_pairs_worked_by_hand() -> None:
    # d = 0.5, -0.25, 0.25, -0.3, 0.1: the first pair is that whose smaller side is largest.
    logp, old = [0.5, -0.25, 0.25, -0.3, 0.1], [0.0] * 5
    pairs = cancelling_pairs(logp, old, most=20)
    assert [(i, j) for i, j, _ in pairs] == [(0, 3), (2, 1)]
    assert [amount for *_, amount in pairs] == pytest.approx([0.3, 0.25])
    assert cancelling_pairs(logp, old, most=1) == pairs[:1]
    for none in ([], None, [1.0]):
        assert cancelling_pairs(none, old, most=20) == []
    assert cancelling_pairs([1.0, None, math.nan], [0.0, 0.0, 0.0], most=20) == []


def test_the_first_pair_is_that_of_the_diagnostics(path: Path) -> None:
    for entry in open_run(path).step(4).to_pylist():
        if entry["logp"] is None:
            continue
        explained = explain_response(entry, lambda ids: "")
        pairs = cancelling_pairs(entry["logp"], entry["old_logp"], most=20)
        if explained.pair is None:
            assert pairs == []
            continue
        positive, negative = explained.pair
        i, j, amount = pairs[0]
        assert (i, j) == (positive.position, negative.position)
        assert amount == min(positive.log_ratio, -negative.log_ratio)


def test_top_tokens_worked_by_hand(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="")
    used = {"minibatch": 2, "old_logp": [0.0, 0.0], "length": 2}
    folder.step(
        1,
        {},
        [
            row(tokens=[7, 8], logp=[-0.5, 0.25], advantage=1.0, **used),
            row(tokens=[7, 7], logp=[-0.25, 0.0], advantage=-1.0, **used),
            row(tokens=[9, 9], logp=[-5.0, -5.0], advantage=0.0, **used),
            row(tokens=[9, 9], logp=[-5.0, -5.0], advantage=1.0, **used | {"minibatch": 1}),
            row(tokens=[9, 9], logp=None, advantage=1.0, **used),
        ],
    )
    folder.close()
    answer = answers.top_tokens(open_view(folder.path), 1)
    assert answer["total_abs"] == 1.0
    first, second = answer["rows"]
    assert first == {
        "id": 7, "text": None, "count": 3, "mean": -0.25, "sum_abs": 0.75, "share": 0.75,
        "responses": 2,
    }  # fmt: skip
    assert (second["id"], second["share"], second["responses"]) == (8, 0.25, 1)
    assert len(answers.top_tokens(open_view(folder.path), 1, limit=1)["rows"]) == 1


def test_top_tokens_add_up_to_the_movement_of_the_step(run: RunFolderView, path: Path) -> None:
    answer = answers.top_tokens(run, 5, limit=1000)
    total = 0.0
    for entry in open_run(path).step(5).to_pylist():
        if entry["logp"] is not None and entry["advantage"] != 0 and entry["minibatch"] > 1:
            moved = torch.tensor(entry["logp"]) - torch.tensor(entry["old_logp"])
            total += float(moved.double().abs().sum())
    assert answer["total_abs"] == pytest.approx(total, rel=1e-12)
    assert sum(r["share"] for r in answer["rows"]) == pytest.approx(1.0)
    assert all(isinstance(r["text"], str) for r in answer["rows"])


# --------------------------------------------------------------------------- recipe, CSV, JSON


def test_recipes_are_compared_setting_by_setting(tmp_path: Path) -> None:
    for name, text in (
        ("a", "optimizer: {lr: 1e-4, betas: [0.9, 0.95]}\nkl: null\nseed: 1\n"),
        ("b", "optimizer: {lr: 3e-5, betas: [0.9, 0.99]}\nseed: 1\nname: {x: 1}\n"),
    ):
        RunFolder.create(tmp_path / name, info={}, recipe=text).close()
    a, b = open_view(tmp_path / "a"), open_view(tmp_path / "b")
    assert answers.recipe(a)["text"].startswith("optimizer: {lr: 1e-4")
    assert answers.recipe(a, b)["differences"] == [
        {"key": "name.x", "here": None, "there": 1},
        {"key": "optimizer.betas", "here": [0.9, 0.95], "there": [0.9, 0.99]},
        {"key": "optimizer.lr", "here": 1e-4, "there": 3e-5},
    ]
    assert answers.recipe(a, a)["differences"] == []


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_a_spreadsheet_runs_no_cell(tmp_path: Path, text: str) -> None:
    folder = RunFolder.create(tmp_path / "a", info={}, recipe="")
    words = dict.fromkeys(("prompt_id", "source", "prompt", "text", "failure", "skipped"), text)
    folder.step(1, {}, [row(**words, advantage=-0.5)])
    folder.close()
    (cells,) = csv.DictReader(
        io.StringIO(answers.responses_csv(open_view(folder.path), 1), newline="")
    )
    assert {name: cells[name] for name in words} == dict.fromkeys(words, f"'{text}")
    assert (cells["advantage"], cells["log_s"]) == ("-0.5", "0.0625")


def test_the_csv_holds_every_text_whole(run: RunFolderView, path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(answers.responses_csv(run, 2), newline="")))
    table = open_run(path).step(2)
    texts = table.column("text").to_pylist()
    assert [r["text"] for r in rows] == [f"'{t}" if t[0] in "=+" else t for t in texts]
    assert [r["row"] for r in rows] == [str(k) for k in range(32)]


def test_json_is_strict_and_well_formed() -> None:
    assert json_bytes({"a": "x\ud800", "b": "\u2028<"}) == '{"a":"x\ufffd","b":"\u2028<"}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        json_bytes({"a": math.nan})
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    cleaned = plain({"deep": deep, "nan": math.inf, "big": 10**30, "yes": True, "n": 3})
    assert len(json.dumps(cleaned)) < 300
    assert (cleaned["nan"], cleaned["big"], cleaned["yes"], cleaned["n"]) == (None, None, True, 3)


def test_names_match_families_in_one_pass() -> None:
    assert matches("*", "a/b")
    assert matches("clip/*", "clip/cut_share/len_8-15")
    assert matches("a*b*c", "a1b2c")
    assert not matches("a*b*c", "acb")
    assert not matches("ab*ba", "aba")
    assert not matches("reward/mean", "reward/mean_x")
    assert not matches("*a" * 60 + "b", "a" * 300)


def test_thinning_keeps_both_ends_and_never_doubles() -> None:
    for num in range(1, 60):
        for limit in range(2, 60):
            rows = thinned(num, limit)
            assert len(rows) == min(num, limit) == len(set(rows))
            assert (rows[0], rows[-1]) == (0, num - 1)
