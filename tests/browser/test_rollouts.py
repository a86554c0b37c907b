"""The table of responses against a plain filter of the Parquet; one response, one group."""

from __future__ import annotations

import pytest

from tests.browser.expected import Expected

STEP, PAGE = 8, 25


@pytest.fixture(scope="module")
def table(runs):
    return [{**row, "row": at} for at, row in enumerate(Expected(runs / "a").table(STEP))]


@pytest.fixture
def listed(viewer):
    viewer.go("a", view="rollouts", step=STEP)
    yield viewer
    viewer.check()


def shown(viewer):
    """Rows on the page, in order, and the words of the pager."""
    viewer.settle()
    rows = viewer.page.locator(".responses tbody tr")
    numbers = rows.evaluate_all("(rows) => rows.map((row) => Number(row.dataset.row))")
    return numbers, viewer.page.locator(".pager span").text_content()


def passing(table, test):
    found = [row["row"] for row in table if test(row)]
    assert 0 < len(found) < len(table)  # the filter takes some and leaves some
    words = f"1 to {min(PAGE, len(found))} of {len(found)} (of {len(table)} in the step)"
    return found[:PAGE], words


@pytest.mark.parametrize(
    ("label", "option", "test"),
    [
        ("advantage", "A > 0", lambda row: row["advantage"] > 0),
        ("advantage", "A < 0", lambda row: row["advantage"] < 0),
        ("cut side", "low", lambda row: row["cut_low"] > 0),
        ("cut side", "cut", lambda row: row["cut_low"] + row["cut_high"] > 0),
        ("cut side", "not cut", lambda row: row["cut_low"] + row["cut_high"] == 0),
        ("finish", "length", lambda row: row["finish"] == "length"),
    ],
)
def test_a_choice_filters(listed, table, label, option, test):
    choice = listed.page.locator(f"label.filter:has(> span:text-is('{label}')) select")
    choice.select_option(label=option)
    assert shown(listed) == passing(table, test)


def test_ranges_and_search_add_up(listed, table):
    listed.page.get_by_label("reward, from").fill("0.2")
    listed.page.get_by_label("reward, to").fill("0.9")
    listed.page.get_by_label("reward, to").press("Enter")
    assert shown(listed) == passing(
        table, lambda r: r["reward"] is not None and 0.2 <= r["reward"] <= 0.9
    )
    listed.page.get_by_role("button", name="Clear").click()
    listed.page.get_by_label("length, from").fill("50")
    listed.page.get_by_label("length, from").press("Enter")
    assert shown(listed) == passing(table, lambda r: r["length"] >= 50)
    listed.page.get_by_label("Search the responses").fill("BECAUSE the")
    listed.until("() => location.hash.includes('q=')")
    wanted = passing(table, lambda r: r["length"] >= 50 and "because the" in r["text"].lower())
    assert shown(listed) == wanted


@pytest.mark.parametrize("column", ["reward", "A", "tokens", "log s"])
def test_headings_sort_both_ways(listed, table, column):
    key = {"A": "advantage", "tokens": "length", "log s": "log_s"}.get(column, column)
    heading = listed.page.locator("thead").get_by_role("button", name=column, exact=True)
    filled = [row for row in table if row[key] is not None]
    for sign in (1, -1):
        heading.click()
        wanted = sorted(filled, key=lambda row, s=sign: (s * row[key], row["row"]))
        assert shown(listed)[0] == [row["row"] for row in wanted[:PAGE]]
        heading = listed.page.locator("th[aria-sort$=ending] button")


def test_pages_follow_one_another(listed, table):
    listed.page.get_by_role("button", name="on \u2192").click()
    assert shown(listed) == ([*range(25, 50)], f"26 to 50 of {len(table)}")


def test_a_row_opens_its_group(listed, table):
    row = 21
    listed.page.locator(f"tr[data-row='{row}']").click()
    listed.settle()
    group = [one for one in table if one["group"] == table[row]["group"]]
    cards = listed.page.locator("article.response")
    assert cards.evaluate_all("(all) => all.map((one) => Number(one.dataset.row))") == [
        one["row"] for one in group
    ]
    assert cards.locator(".text").all_text_contents() == [one["text"] for one in group]
    chosen = listed.page.locator("article.chosen")
    assert chosen.get_attribute("data-row") == str(row)
    assert chosen.locator("dt").all_text_contents() == ["answer", "format"]
    chosen.get_by_role("button", name="its tokens").click()
    listed.settle()
    assert listed.page.evaluate("() => document.body.dataset.view") == "drives"
    tokens = listed.page.locator(".token").count()
    assert tokens == table[row]["length"]


def test_a_verdict_that_failed_shows_its_reason(viewer, runs):
    run = Expected(runs / "a")
    step, row = next(
        (step, at)
        for step in run.run.steps()
        for at, row in enumerate(run.table(step))
        if row["failure"]
    )
    viewer.go("a", view="rollouts", step=step, verdict="failed")
    listed = viewer.page.locator(f"tr[data-row='{row}'] td").last
    assert listed.text_content() == run.table(step)[row]["failure"]


def test_the_csv_is_the_step(listed, table):
    with listed.page.expect_download() as download:
        listed.page.get_by_role("link", name="all of the step as CSV").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("row,group,sample,prompt_id")
    assert f"{table[-1]['row']},{table[-1]['group']}" in "\n".join(lines)
