"""Two runs over one another, the address that keeps a view, and the keyboard alone."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from tests.browser.expected import NUMBERS, Expected


@pytest.fixture
def here(viewer):
    yield viewer
    viewer.check()


def state(viewer):
    """What the address says."""
    found = parse_qs(viewer.page.evaluate("() => location.hash.slice(1)"))
    return {key: values[0] for key, values in found.items()}


def test_two_runs_lie_over_one_another(here, runs, ids):
    here.go("a", view="working")
    here.page.get_by_label("lay b over the others").check()
    here.settle()
    assert state(here)["runs"] == f"{ids['a']},{ids['b']}"
    drawn = {trace["name"]: trace["y"] for trace in here.chart("reward") if trace["y"] != [None]}
    for name in ("a", "b"):
        run = Expected(runs / name)
        wanted = [row["reward/mean"] for step, row in run.rows.items() if step]
        assert drawn[f"{name}: training reward"] == wanted
    rows = here.page.locator("section:not([hidden]) tbody tr")
    for name, row in zip(("a", "b"), rows.all(), strict=True):
        run = Expected(runs / name)
        shown = row.locator("[data-metric='eval/pass@1']").get_attribute("data-value")
        assert float(shown) == run.value("eval/pass@1", None)
    assert here.page.locator("#legend span").all_text_contents() == ["a", "b"]


@pytest.mark.parametrize("view", ["trust", "groups", "gap", "speed", "drives"])
def test_every_chart_over_steps_has_both_runs(here, view):
    here.go("a", "b", view=view)
    lines = here.page.evaluate(
        """() => [...document.querySelectorAll("section:not([hidden]) .chart")].filter((gd) => gd.data
          && gd.layout.xaxis.title && gd.layout.xaxis.title.text === "step" && gd.data[0].type === "scatter")
          .map((gd) => [gd.dataset.chart, ["a: ", "b: "].every((start) => gd.data.some((one) => one.name && one.name.startsWith(start)))])"""
    )
    assert len(lines) >= 2
    assert [name for name, both in lines if not both] == []


def test_the_address_brings_the_view_back(here, look, serving, ids):
    here.go(
        "a", "b", view="rollouts", step=5, sort="length", desc=1, adv="negative", group=2, row=17
    )
    numbers, at = here.page.evaluate(NUMBERS), state(here)
    other = look(serving.origin, ids)
    other.page.goto(here.page.url)
    other.page.wait_for_selector("body[data-ready]")
    other.settle()
    assert other.page.evaluate(NUMBERS) == numbers
    assert state(other) == at
    other.page.close()


def test_an_address_that_names_no_run_shows_the_newest(here):
    here.go("b", view="working")
    here.page.evaluate("() => { location.hash = 'view=drives'; }")
    here.page.locator("body[data-view=drives]").wait_for()
    here.settle()
    assert state(here).keys() == {"runs", "view"}
    assert here.page.locator("#explain").is_hidden()


def test_back_and_on_in_the_history(here):
    here.go("a", view="working")
    here.page.get_by_role("button", name="Groups and data").click()
    here.settle()
    here.page.go_back()
    here.page.wait_for_selector("body[data-view=working]")
    here.page.go_forward()
    here.page.wait_for_selector("body[data-view=groups]")
    here.settle()


def press(viewer, *keys):
    for key in keys:
        viewer.page.keyboard.press(key)
    viewer.settle()


def test_the_keyboard_goes_everywhere(here):
    here.go("a", view="working")
    here.page.locator("main").focus()
    press(here, "2")
    assert state(here)["view"] == "trust"
    press(here, "ArrowLeft", "ArrowLeft")
    assert state(here)["step"] == "10"
    press(here, "ArrowRight")
    assert state(here)["step"] == "11"
    press(here, "n")
    assert "step" not in state(here)
    press(here, "Shift+ArrowRight", "Shift+ArrowRight")
    assert state(here)["view"] == "rollouts"
    press(here, "1", "/")
    assert here.page.evaluate("() => document.activeElement.type") == "search"
    assert state(here)["view"] == "rollouts"
    press(here, "2")  # typed, not obeyed
    assert state(here)["view"] == "rollouts"
    here.page.locator("main").focus()
    press(here, "?")
    assert here.page.locator("#help").is_visible()
    press(here, "Escape")
    assert here.page.locator("#help").is_hidden()
    theme = here.page.evaluate("() => document.documentElement.dataset.theme")
    press(here, "t", "t")
    assert here.page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    press(here, "t")
    assert here.page.evaluate("() => document.documentElement.dataset.theme") == theme


def test_tab_reaches_all_that_can_be_pressed_and_shows_where_it_is(here):
    here.go("a", view="trust")
    here.page.locator(".skip").focus()
    wanted = here.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a[href], summary, [tabindex='0']")]
          .filter((node) => node.checkVisibility() && !node.disabled && node.tabIndex >= 0).length"""
    )
    reached = 1
    while reached <= wanted:
        here.page.keyboard.press("Tab")
        at = here.page.evaluate(
            """() => { const node = document.activeElement; const style = getComputedStyle(node);
              return [node === document.body, node.className !== "skip" && style.outlineStyle === "none", node.outerHTML.slice(0, 120)]; }"""
        )
        if at[0]:
            break
        assert not at[1], at
        reached += 1
    assert reached == wanted


def test_arrows_walk_over_tokens(here):
    here.go("a", view="drives", step=8)
    here.page.locator(".token").first.focus()
    press(here, "ArrowRight", "ArrowRight")
    token = here.page.evaluate("() => document.activeElement.dataset.token")
    said = here.page.locator(".readout").text_content()
    assert token == "2"
    assert said.startswith("token 2 ")
    assert "log-ratio" in said
