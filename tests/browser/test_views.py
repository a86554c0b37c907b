"""Every view of a recorded run: its numbers and its charts say what the run folder says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.browser.expected import NUMBERS, Expected

STEP, ROW = 8, 30  # another step than the last, and a response that the clip cut
#: Key in the URL, words of its button.
VIEWS = {
    "working": "Is it working?",
    "trust": "The trust region",
    "drives": "What drives it",
    "rollouts": "Rollouts",
    "groups": "Groups and data",
    "gap": "Engine gap",
    "speed": "Speed and memory",
    "recipe": "Recipe",
}
#: How many numbers a view has at least: none is missing quietly.
FEWEST = {"working": 13, "trust": 10, "drives": 40, "rollouts": 125, "gap": 5, "speed": 6}
DEFINED = """(nodes) => nodes.filter((node) => node.checkVisibility()).filter((node) => {
  node.focus();
  const tip = document.getElementById("tip");
  return tip.hidden || tip.textContent.length < 10 || tip.textContent.includes("no entry");
}).map((node) => node.dataset.metric || node.textContent)"""
UNDEFINED = """() => [...document.querySelectorAll("section:not([hidden]) td .number")].filter((node) => {
  const cell = node.closest("td");
  const heading = cell.closest("table").querySelectorAll("thead th")[cell.cellIndex];
  return !heading.matches("[data-define]") && !heading.querySelector("[data-define]");
}).map((node) => node.dataset.metric)"""


@pytest.fixture(scope="module")
def expected(runs):
    return Expected(runs / "a", ROW)


@pytest.fixture(scope="module", params=VIEWS)
def pressed(request, viewer):
    """A view that was opened by its button, and its key."""
    viewer.go("a", view="gap", step=STEP, row=ROW)
    if request.param == "gap":
        viewer.go("a", view="recipe", step=STEP, row=ROW)
    viewer.page.get_by_role("button", name=VIEWS[request.param]).click()
    viewer.page.wait_for_selector(f"body[data-view={request.param}]")
    viewer.settle()
    return viewer, request.param


@pytest.fixture
def at(viewer):
    """Goes to a view, at a step and a response that are not the first choice."""

    def go(view: str):
        viewer.go("a", view=view, step=STEP, row=ROW)
        return viewer

    yield go
    viewer.check()


def test_every_number_is_the_folders(pressed, expected):
    viewer, view = pressed
    page = viewer.page
    wrong = []
    for number in page.evaluate(NUMBERS):
        name = number["metric"]
        if name.startswith("what_if/") or name == "pair":
            continue  # worked out by the page: tests of their own
        wanted = expected.of(number, STEP)
        shown = number["value"]
        if isinstance(wanted, str):
            fine = shown == wanted
        else:
            fine = shown == "" if wanted is None else _close(float(shown or "nan"), wanted)
        if not fine:
            wrong.append((number, wanted))
    assert wrong == []
    assert page.locator("section:not([hidden]) [data-metric]").count() >= FEWEST.get(view, 0)


def _close(shown: float, wanted: float) -> bool:
    return math.isclose(shown, wanted, rel_tol=1e-8)


def test_every_number_and_chart_has_its_definition_on_focus(pressed):
    page = pressed[0].page
    page.keyboard.press("Tab")  # from here on focus is the keyboard's
    reached = page.locator("section:not([hidden]) [data-define]:not([tabindex='-1'])")
    numbers = reached.locator("xpath=self::*[@tabindex='0' or self::button]")
    assert numbers.evaluate_all(DEFINED) == []
    assert page.evaluate(UNDEFINED) == []


def lines(chart):
    return {trace["name"]: (trace["x"], trace["y"]) for trace in chart if trace["name"]}


LINES = {
    ("working", "reward"): {
        "training reward": "reward/mean",
        "strict reward": "reward/strict_mean",
    },
    ("working", "strict_gap"): {"gap": "reward/strict_gap"},
    ("working", "cut_share"): {"cut": "clip/cut_share"},
    ("working", "length"): {"mean": "length/mean"},
    ("working", "entropy"): {"entropy": "policy/entropy"},
    ("trust", "cut_by_side"): {
        "both sides": "clip/cut_share",
        "low: ratio below, A &lt; 0": "clip/cut_low",
        "high: ratio above, A &gt; 0": "clip/cut_high",
    },
    ("trust", "cut_by_sign"): {
        "A &gt; 0": "clip/cut_share_positive",
        "A &lt; 0": "clip/cut_share_negative",
    },
    ("trust", "cut_by_minibatch"): {
        f"minibatch {k}": f"clip/cut_share_mb{k}" for k in (1, 2, 3, 4)
    },
    ("trust", "outside"): {"outside": "clip/outside_share", "cut": "clip/cut_share"},
    ("trust", "clip_range"): {
        "low": "clip/low",
        "high": "clip/high",
        "spread of log s": "log_s/std",
    },
    ("drives", "top_share"): {f"largest {k}": f"attribution/top{k}_share" for k in (1, 3, 10)},
    ("drives", "cancelled"): {"cancelled": "attribution/cancelled_share"},
    ("groups", "groups"): {
        "all failed": "groups/all_failed",
        "mixed": "groups/mixed",
        "all solved": "groups/all_solved",
    },
    ("groups", "idle_tokens"): {"idle tokens": "groups/idle_tokens_share"},
    ("groups", "reward_parts"): {"answer": "reward/part/answer", "format": "reward/part/format"},
    ("groups", "truncated"): {
        "cut at the limit": "length/truncated_share",
        "empty": "length/empty_share",
        "no verdict": "verifier/failed_share",
    },
    ("gap", "gap_response"): {"spread of the gap": "gap/log_s_std", "range low": "clip/low"},
    ("gap", "gap_mean"): {"mean gap": "gap/log_s_mean"},
    ("gap", "gate"): {"bias": "gate/bias", "noise": "gate/noise"},
    ("speed", "tokens_per_s"): {"tokens per second": "speed/tokens_per_s"},
    ("speed", "skipped"): {"not run (A = 0)": "update/skipped_responses"},
    ("speed", "memory"): {"peak": "memory/peak_rss_gib"},
}


@pytest.mark.parametrize("view", [*dict.fromkeys(view for view, _ in LINES)])
def test_lines_are_the_columns(at, expected, view):
    viewer = at(view)
    steps = [step for step in expected.rows if step > 0]
    for (of, chart), names in LINES.items():
        if of != view:
            continue
        drawn = lines(viewer.chart(chart))
        for label, name in names.items():
            values = [expected.rows[step].get(name) for step in steps]
            x, y = drawn[label]
            known = [(step, v) for step, v in zip(steps, values, strict=True) if v is not None]
            assert [(a, b) for a, b in zip(x, y, strict=True) if b is not None] == known, name


def test_held_out_points_and_intervals_are_the_evaluations(at, expected):
    viewer = at("working")
    drawn = lines(viewer.chart("held_out"))
    evaluated = [event for event in expected.run.events() if event["kind"] == "evaluated"]
    assert drawn["pass@1"] == ([0, 12], [event["eval/pass@1"] for event in evaluated])
    assert drawn["pass@4"] == ([0, 12], [event["eval/pass@4"] for event in evaluated])
    assert drawn["greedy"] == ([0, 12], [event["eval/greedy"] for event in evaluated])


def test_the_heat_maps_are_the_recorded_counts_and_shares(at, expected):
    viewer = at("trust")
    (counts, *band) = viewer.chart("log_s_over_time")
    recorded = np.array(
        [expected.rows[step]["log_s/histogram"]["counts"] for step in counts["x"]], float
    )
    with np.errstate(invalid="ignore"):
        shares = recorded / recorded.sum(1, keepdims=True)
    drawn = np.array(counts["z"], float)
    np.testing.assert_allclose(drawn, shares.T, rtol=1e-12)
    assert [len(line["x"]) for line in band] == [12, 12]
    (cut,) = viewer.chart("cut_by_length")
    for bucket, row in zip(cut["y"], cut["z"], strict=True):
        assert row == [expected.rows[s].get(f"clip/cut_share/len_{bucket}") for s in cut["x"]]


def test_the_histogram_of_a_step_counts_its_responses(at, expected):
    viewer = at("trust")
    table = [r for r in expected.table(STEP) if r["advantage"] and r["log_s"] is not None]
    for button, rows in {
        "2 and later": [row for row in table if row["minibatch"] >= 2],
        "3": [row for row in table if row["minibatch"] == 3],
    }.items():
        viewer.page.locator(".choice").get_by_role("button", name=button, exact=True).click()
        viewer.settle()
        drawn = {trace["name"]: np.array(trace["y"]) for trace in viewer.chart("log_s_histogram")}
        cut = [row for row in rows if row["cut_low"] + row["cut_high"]]
        assert sum(drawn.values()).sum() == len(rows)
        assert drawn["cut"].sum() == len(cut) > 0
        if button == "2 and later":  # what the trainer counted into the recorded histogram
            assert sum(drawn.values()).tolist() == expected.rows[STEP]["log_s/histogram"]["counts"]


def test_shares_of_the_time_add_up(at, expected):
    viewer = at("speed")
    parts = lines(viewer.chart("time_shares"))
    for k, step in enumerate(parts["rollout"][0]):
        row = expected.rows[step]
        for part, (_, y) in parts.items():
            assert math.isclose(y[k], row[f"time/{part}_s"] / row["time/step_s"])
        assert math.isclose(sum(y[k] for _, y in parts.values()), 1)


def test_groups_and_lengths_of_a_step(at, expected):
    viewer = at("groups")
    groups: dict[int, list[float]] = {}
    for row in expected.table(STEP):
        if row["reward"] is not None:
            groups.setdefault(row["group"], []).append(row["reward"])
    rates = [sum(reward > 0.5 for reward in found) / len(found) for found in groups.values()]
    bars = viewer.chart("difficulty")
    counted = [sum(heights) for heights in zip(*(trace["y"] for trace in bars), strict=True)]
    wanted = np.bincount([round(rate * 8) for rate in rates], minlength=9)
    assert counted == wanted.tolist()
    lengths = {trace["name"]: sum(trace["y"]) for trace in viewer.chart("lengths")}
    rewards = [row["reward"] for row in expected.table(STEP)]
    assert lengths["reward > 0.5"] == sum(r is not None and r > 0.5 for r in rewards)
    assert lengths["reward up to 0.5"] == sum(r is not None and r <= 0.5 for r in rewards)


def test_pairs_and_bars_of_a_response(at, expected):
    viewer = at("drives")
    row = expected.table(STEP)[ROW]
    new, old = (np.array(row[name], np.float32) for name in ("logp", "old_logp"))
    moved = (new - old).astype(float)
    (bars,) = viewer.chart("tokens_along")
    assert bars["y"] == pytest.approx(moved.tolist(), abs=1e-6)
    pairs = viewer.page.locator(".pairs .number").evaluate_all(
        "(all) => all.map((one) => Number(one.dataset.value))"
    )
    assert pairs[0] == min(moved.max(), -moved.min())
    assert pairs == sorted(pairs, reverse=True)


def test_top_tokens_add_up_to_the_step(at, expected):
    viewer = at("drives")
    rows = [
        row
        for row in expected.table(STEP)
        if row["advantage"] and row["minibatch"] >= 2 and row["logp"] is not None
    ]
    size: dict[int, float] = {}
    for row in rows:
        new, old = (np.array(row[name], np.float32) for name in ("logp", "old_logp"))
        for token, moved in zip(row["tokens"], (new - old).tolist(), strict=True):
            size[token] = size.get(token, 0.0) + abs(moved)
    total = sum(size.values())
    wanted = sorted((value / total for value in size.values()), reverse=True)
    (bars,) = viewer.chart("top_tokens")
    assert bars["x"][::-1] == pytest.approx(wanted[: len(bars["x"])], rel=1e-6)
    assert sum(wanted) == pytest.approx(1)


def test_the_recipe_and_its_difference_to_another_run(at, expected, ids):
    viewer = at("recipe")
    assert viewer.page.locator("pre.code").text_content() == expected.run.recipe_text
    viewer.page.get_by_label("Run to compare with").select_option(ids["b"])
    viewer.settle()
    rows = viewer.page.locator("section[data-view=recipe] tbody tr")
    found = {
        row.locator("th").text_content(): row.locator("td").all_text_contents()
        for row in rows.all()
    }
    assert found == {
        "name": ["a", "b"],
        "seed": ["0", "1"],
        "optimizer.lr": ["0.00003", "0.0001"],
        "trainer.steps": ["12", "8"],
    }
