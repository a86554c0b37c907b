"""No view is wider than the window, in either theme; with GSPO_SCREENSHOTS=folder, their pictures."""

from __future__ import annotations

import os

import pytest

from tests.browser.test_views import VIEWS
from tests.browser.viewer import TALLEST

PICTURES = bool(os.environ.get("GSPO_SCREENSHOTS"))
THEMES = ("light", "dark")
#: Pictures are of every theme; the layout does not depend on it.
SIZES = [
    (width, theme)
    for width, themes in ((360, THEMES), (800, THEMES[:1]), (1600, THEMES))
    for theme in (themes if PICTURES else themes[-1:])
]
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((node) =>
  node.getBoundingClientRect().right > innerWidth + 1 && node.checkVisibility()
  && !node.closest(".scroll, .table-box, .views, svg, pre, .tokens, .skip, .stepper input")).map((node) => node.outerHTML.slice(0, 200))"""
#: Letters that a line of Plotly's lost at an edge of its chart.
CLIPPED = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].flatMap((chart) => {
  const box = chart.getBoundingClientRect();
  return [...chart.querySelectorAll("text")].filter((text) => text.checkVisibility() && text.textContent.trim()).filter((text) => {
    const own = text.getBoundingClientRect();
    return own.width && (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1);
  }).map((text) => `${chart.dataset.chart}: ${text.textContent}`);
})"""
#: Tick labels and legend entries of one chart that lie over one another.
OVERLAPPING = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].flatMap((chart) =>
  [".xtick text", ".ytick text", ".legendtext"].flatMap((kind) => {
    const boxes = [...chart.querySelectorAll(kind)].map((text) => [text.textContent, text.getBoundingClientRect()]);
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
    return boxes.flatMap(([text, box], at) => boxes.slice(at + 1).filter(([, other]) => over(box, other)).map(([other]) => `${chart.dataset.chart}: ${text} / ${other}`));
  }))"""


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size[0]}-{size[1]}")
def sized(request, look, serving, ids):
    width, theme = request.param
    viewer = look(serving.origin, ids, width=width, height=TALLEST, color_scheme=theme)
    viewer.open("a")
    yield viewer, f"{width}-{theme}"
    viewer.page.close()


@pytest.mark.parametrize("view", VIEWS)
def test_everything_fits(sized, shoot, view):
    viewer, name = sized
    opened = {"group": 1} if view == "rollouts" else {}
    viewer.go("a", view=view, step=8, **opened)
    shoot(viewer, f"{view}-{name}")
    assert viewer.page.evaluate("() => document.documentElement.dataset.theme") == name[-5:].strip(
        "-"
    )
    assert viewer.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert viewer.page.evaluate(TOO_WIDE) == []
    assert viewer.page.evaluate(CLIPPED) == []
    assert viewer.page.evaluate(OVERLAPPING) == []
    viewer.check()


def test_two_runs_fit(sized, shoot):
    viewer, name = sized
    for view in ("working", "trust") if PICTURES or name.startswith("360") else ():
        viewer.go("a", "b", view=view)
        shoot(viewer, f"{view}-two-{name}")
        assert viewer.page.evaluate(CLIPPED) == []
        assert viewer.page.evaluate(OVERLAPPING) == []
