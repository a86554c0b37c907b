"""The report opens from disk, asks for nothing, and has the numbers and charts of the dashboard."""

from __future__ import annotations

import pytest

from gspo.dashboard.report import write_report
from tests.browser.expected import NUMBERS
from tests.browser.test_views import VIEWS
from tests.browser.viewer import TALLEST

QUERIES = [
    {},
    {"advantage": "positive", "sort": "reward", "descending": "1"},
    {"cut": "any", "sort": "log_s"},
    {"search": "because the", "reward_max": "0.9"},
    {"finish": "stop", "minibatch": "3", "length_min": "20"},
]
CHARTS = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].filter((gd) => gd.data)
  .map((gd) => [gd.dataset.chart, gd.data.map((one) => [one.name, one.type, one.x, one.y])])"""


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory):
    return write_report(runs / "a", tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def report(file, look, ids):
    viewer = look(file.as_uri(), ids, height=TALLEST)
    viewer.open()
    return viewer


@pytest.mark.parametrize("view", VIEWS)
def test_it_says_what_the_dashboard_says(report, viewer, view):
    for one in (viewer, report):
        one.go("a", view=view)
    numbers, found = viewer.page.evaluate(NUMBERS), report.page.evaluate(NUMBERS)
    assert found == numbers
    drawn = dict(viewer.page.evaluate(CHARTS))
    assert {name: drawn[name] for name, _ in report.page.evaluate(CHARTS)} == drawn
    report.check()


def test_it_asks_for_nothing(report, file):
    assert set(report.asked) == {file.as_uri()}


@pytest.mark.parametrize("query", QUERIES)
def test_it_filters_and_sorts_as_the_server_does(report, viewer, ids, query):
    ask = """async ([id, query]) => (await G.source.responses(id, 12, query)).rows.map((row) => row.row)"""
    asked = [ids["a"], {**query, "limit": 64}]
    assert report.page.evaluate(ask, asked) == viewer.page.evaluate(ask, asked)


def test_a_step_that_it_does_not_hold_is_explained(report):
    report.go("a", view="rollouts", step=2)
    assert "not in this report" in report.page.locator("section:not([hidden])").text_content()
    report.go("a", view="trust", step=2)
    assert report.chart("log_s_histogram")
    report.check()


def test_the_list_of_responses_names_those_it_holds(runs, look, ids, tmp_path, monkeypatch):
    monkeypatch.setattr("gspo.dashboard.report.MAX_RESPONSES", 8)
    small = write_report(runs / "a", tmp_path / "small.html")
    viewer = look(small.as_uri(), ids)
    viewer.open("a", view="drives")
    listed = viewer.page.locator(".picker option")
    assert listed.count() == 8
    for row in listed.evaluate_all("(all) => all.map((one) => Number(one.value))"):
        viewer.go("a", view="drives", row=row)
        assert (
            "not in this report" not in viewer.page.locator("section:not([hidden])").text_content()
        )
    viewer.check()
    viewer.page.close()
