"""Every view of runs that lack something, or have another form of clip, draws or says why not."""

from __future__ import annotations

import pytest

from tests.browser.expected import Expected
from tests.browser.kinds import CLIPS, DRAWN
from tests.browser.test_views import VIEWS

OF_THE_CLIP = ("working", "trust", "gap", "recipe")  # the other views do not look at it
#: Words of code where a number or a name should be.
BROKEN = """() => [...document.querySelectorAll("section:not([hidden]) *")].filter((node) =>
  !node.children.length && /undefined|NaN|\\[object|Infinity/.test(node.textContent)).map((node) => node.textContent)"""
#: Charts that are neither drawn nor replaced by words.
BLANK = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].filter((chart) =>
  chart.hidden ? !chart.parentElement.querySelector(".words").textContent : !chart.dataset.drawn)
  .map((chart) => chart.dataset.chart)"""


def forgive(viewer):
    """The browser itself writes down what was answered with 404."""
    viewer.wrong = [text for text in viewer.wrong if "404 (Not Found)" not in text]


@pytest.mark.parametrize("name", DRAWN)
def test_every_view_draws(viewer, name):
    for view in OF_THE_CLIP if name in CLIPS else VIEWS:
        viewer.go(name, view=view)
        assert viewer.page.evaluate(BROKEN) == [], view
        assert viewer.page.evaluate(BLANK) == [], view
    if name == "no-tables":
        forgive(viewer)
    viewer.check()


def test_a_token_objective_has_no_band_on_log_s(viewer):
    viewer.go("tokens", view="trust")
    assert "acts on single tokens" in viewer.page.locator("section:not([hidden])").text_content()


def test_one_minibatch_has_nothing_to_cut(viewer):
    viewer.go("single", view="trust")
    said = viewer.page.locator("section:not([hidden])").text_content()
    assert "every ratio is 1 and nothing can be cut" in said


def test_without_tables_the_recorded_counts_are_drawn(viewer, runs):
    viewer.go("no-tables", view="trust", step=8)
    assert "No responses of step 8" in viewer.page.locator("section:not([hidden])").text_content()
    counts = Expected(runs / "no-tables").rows[8]["log_s/histogram"]["counts"]
    assert [trace["y"] for trace in viewer.chart("log_s_histogram")] == [counts]
    forgive(viewer)


def test_a_length_fair_band_is_drawn_for_two_lengths(viewer):
    viewer.go("length-fair", view="trust", step=8)
    shapes = viewer.page.evaluate(
        "() => document.querySelector('[data-chart=log_s_histogram]').layout.shapes.map((one) => one.type)"
    )
    assert sorted(shapes) == ["line", "line", "rect", "rect"]


def test_a_chart_that_cannot_be_drawn_says_so_and_stops_no_other(viewer):
    viewer.go("length-fair", view="recipe")
    viewer.page.evaluate(
        """() => { window.real = Plotly.react; Plotly.react = (gd, ...rest) => {
          if (gd.dataset.chart === "idle_tokens") throw new Error("no room");
          return real(gd, ...rest);
        }; }"""
    )
    viewer.go("length-fair", view="groups")
    panel = viewer.page.locator(".panel:has([data-chart=idle_tokens])")
    assert "This chart cannot be drawn: no room." in panel.text_content()
    assert viewer.chart("groups")
    assert viewer.chart("lengths")
    said = [text for text in viewer.wrong if "no room" in text]
    assert said
    viewer.wrong = [text for text in viewer.wrong if text not in said]
    viewer.page.evaluate("() => { Plotly.react = window.real; }")
    viewer.check()
