"""Statistics of repetitions, rows in the results file, and what the page says of them."""

from __future__ import annotations

import json

import pytest

from bench.versus import results
from bench.versus.report import filled, parts_of
from bench.versus.rows import rows_of
from bench.versus.summary import compare, turns
from bench.versus.text import table, title
from bench.versus.workloads import WORKLOADS

CALIBRATION = {"float32_gflops": 100.0, "bfloat16_gflops": 200.0, "copy_gb_per_s": 20.0}
FACTS = {"peer_setting": "tuned", "quiet": True, "code": "c", "commit": "abc"}


def test_less_is_better_for_seconds():
    done = compare([2.0, 4.0, 3.0], [6.0, 6.0, 12.0], more_is_better=False)
    assert (done.ours, done.peer, done.ratio) == (3.0, 6.0, 2.0)
    assert done.ours_range == (2.0, 4.0)
    assert done.ratio_range == (1.5, 4.0)  # 6/2, 6/4, 12/3: pairs, not medians


def test_more_is_better_for_speed():
    assert compare([30.0], [10.0], more_is_better=True).ratio == 3.0


def test_measurements_come_in_pairs():
    with pytest.raises(ValueError, match="wanted pairs"):
        compare([1.0], [1.0, 2.0], more_is_better=True)


def test_each_side_goes_first_as_often():
    assert [pair[0] for pair in turns(4)] == ["ours", "peer", "ours", "peer"]


def answer(generation: float, old: float, optimize: float, tokens: int = 100) -> dict:
    seconds = {"generation": generation, "old": old, "optimize": optimize}
    seconds["step"] = sum(seconds.values())
    return {"seconds": seconds, "tokens": tokens, "cut_share": 0.25, "gate": "open"}


def step_rows() -> list[dict]:
    ours, peer = [answer(1.0, 0.0, 3.0)], [answer(2.0, 2.0, 6.0)]
    return rows_of(WORKLOADS["step-p128-scored"], ours, peer, CALIBRATION, FACTS)


def test_a_step_has_a_row_for_each_of_its_parts():
    by_metric = {row["metric"]: row for row in step_rows()}
    assert by_metric["seconds"]["ratio"] == 2.5
    assert by_metric["generation_s"]["ratio"] == 2.0
    assert by_metric["update_s"]["ratio"] == pytest.approx(8 / 3)  # old log-probs count
    share = by_metric["old_share"]
    assert (share["ours"], share["peer"], share["ratio"]) == (0.0, 0.2, None)
    assert (share["floor"], share["target"]) == (0.15, 0.10)
    assert all(row["cut_share"] == 0.25 and row["z"] == 0.0 for row in by_metric.values())


def test_speed_is_of_the_roofline_what_the_least_time_is_of_the_time():
    done = answer(2.0, 0.0, 0.0, tokens=8192)
    row, share = rows_of(WORKLOADS["gen-5m-64"], [done], [done], CALIBRATION, FACTS)
    assert row["ours"] == 4096
    assert row["roofline"]["ours"] == pytest.approx(row["roofline"]["seconds"] / 2.0)
    assert (share["metric"], share["ours"]) == ("roofline_share", row["roofline"]["ours"])


def test_the_extra_factor_needs_both_rows():
    fixed = {"workload": "gen-5m-128", "metric": "tokens_per_s", "ratio": 2.0}
    early = {"workload": "gen-5m-128-eos", "metric": "tokens_per_s", "ratio": 5.0}
    extra = {"workload": "gen-5m-128-eos", "metric": "extra_factor", "ratio": None}
    assert results.with_extra_factor([fixed, early, extra])[-1]["ratio"] == 2.5
    assert results.with_extra_factor([early, extra])[-1]["ratio"] is None


def test_rows_are_kept_for_the_same_code_and_the_same_workload():
    workload = WORKLOADS["gen-5m-128"]
    settings = results.as_stored(workload)
    content = {"rows": [{"workload": workload.name, "code": "c", "settings": settings}]}
    assert results.is_measured(content, workload.name, "c", settings)
    assert not results.is_measured(content, workload.name, "d", settings)
    assert not results.is_measured(content, workload.name, "c", settings | {"groups": 1})


def test_new_rows_take_the_place_of_old_ones_in_the_order_of_the_table():
    old = {"rows": [{"workload": "b", "n": 1}, {"workload": "a", "n": 1}, {"workload": "gone"}]}
    done = results.merged(old, [{"workload": "b", "n": 2}, {"workload": "b", "n": 3}], ["a", "b"])
    assert done == [
        {"workload": "a", "n": 1},
        {"workload": "b", "n": 2},
        {"workload": "b", "n": 3},
    ]


def test_the_file_comes_back_as_it_was(tmp_path):
    path = tmp_path / "results" / "latest.json"
    assert results.load(path)["rows"] == []
    rows = json.loads(json.dumps(step_rows()))
    results.save(path, {"rows": rows, "versions": {}, "machine": {}})
    assert results.load(path)["rows"] == rows
    assert [p.name for p in path.parent.iterdir()] == ["latest.json"]


def test_code_is_what_measures_not_what_reports(tmp_path):
    for name in ("src/gspo/a.py", "bench/versus/ours.py", "bench/versus/report.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    first = results.code_digest(tmp_path)
    (tmp_path / "bench/versus/report.py").write_text("2")
    assert results.code_digest(tmp_path) == first
    (tmp_path / "src/gspo/a.py").write_text("2")
    assert results.code_digest(tmp_path) != first


def test_a_table_shows_z_cut_share_roofline_and_calibration():
    text = table(step_rows()[:1])
    cells = [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")]
    assert cells[0] == "step, 5M, 128 x 128/128, fp32, z=0, old scored"
    assert cells[2:5] == ["4", "10", "tuned"]
    assert cells[7:9] == ["0", "25 %"]
    assert cells[-1] == "100, 20"


def test_a_disturbed_row_says_so():
    row = step_rows()[0] | {"quiet": False}
    assert "(disturbed)" in table([row])
    assert "(disturbed)" not in title(row)


def test_the_page_is_filled_between_its_markers_only(tmp_path):
    page = "before <!-- bench:a -->old<!-- /bench:a --> after"
    assert filled(page, {"a": r"\1 new"}) == (
        "before <!-- bench:a -->\n\\1 new\n<!-- /bench:a --> after"
    )
    with pytest.raises(ValueError, match="exactly once"):
        filled(page, {"b": "new"})


def test_pictures_and_tables_come_from_the_rows(tmp_path):
    length = rows_of(
        WORKLOADS["length-64"], [answer(1, 0, 1)], [answer(2, 1, 2)], CALIBRATION, FACTS
    )
    rows = json.loads(json.dumps([*step_rows(), *length]))
    about = {"processor": "P", "cores": 2, "memory_gb": 24.0, "units": ["avx2"]}
    versions = {"ours": {"torch": "2"}, "peer": {"trl": "1"}}
    content = {"rows": rows, "machine": about, "versions": versions}
    parts = parts_of(content, tmp_path)
    assert "P, 2 cores, 24 GB, avx2; two threads." in parts["machine"]
    assert "0 of 8 rows disturbed" in parts["machine"]
    assert (tmp_path / "performance-curves.png").stat().st_size > 10_000
    assert "old log-probs in step" in parts["figures"]
    assert "generation of step" in parts["others"]
