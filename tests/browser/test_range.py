"""The slider says what another range would cut: worked out again from the Parquet."""

from __future__ import annotations

import math

import pytest

from tests.browser.expected import Expected

STEP = 8


@pytest.fixture(scope="module")
def rows(runs):
    table = Expected(runs / "a").table(STEP)
    return [r for r in table if r["advantage"] and r["minibatch"] >= 2 and r["log_s"] is not None]


@pytest.fixture(scope="module")
def trust(viewer):
    viewer.go("a", view="trust", step=STEP)
    return viewer


def cut(rows, low, high):
    """Numbers of responses cut below and above, with the range as distances from ratio 1."""
    below = [r for r in rows if r["advantage"] < 0 and r["log_s"] < math.log1p(-low)]
    above = [r for r in rows if r["advantage"] > 0 and r["log_s"] > math.log1p(high)]
    return len(below), len(above)


def shown(trust, name):
    number = trust.page.locator(f"[data-metric='{name}']")
    figure = number.locator("xpath=ancestor::div[contains(@class, 'figure ') or @class='figure']")
    return float(number.get_attribute("data-value")), figure.text_content()


def drawn(trust):
    return {trace["name"]: trace["y"] for trace in trust.chart("what_if")}


@pytest.mark.parametrize(("low", "high"), [(-3.3, -3.1), (-2.8, -4.0), (-5.0, -2.0)])
def test_the_sliders_share_is_that_of_the_table(trust, rows, low, high):
    trust.page.get_by_role("slider", name="low").fill(str(low))
    trust.page.get_by_role("slider", name="high").fill(str(high))
    trust.settle()
    low, high = float(f"{10**low:.4g}"), float(f"{10**high:.4g}")
    below, above = cut(rows, low, high)
    share, words = shown(trust, "what_if/fixed")
    assert share == (below + above) / len(rows)
    assert f"{below} low + {above} high of {len(rows)}" in words
    assert trust.page.url.endswith(f"range={low:g},{high:g}") or "range=" in trust.page.url
    trust.check()


def test_a_length_fair_range_cuts_as_many_of_other_lengths(trust, rows):
    low, high = 5e-4, 6e-4
    trust.page.get_by_label("low (below ratio 1), as a number").fill(str(low))
    trust.page.get_by_label("low (below ratio 1), as a number").press("Enter")
    trust.page.get_by_label("high (above ratio 1), as a number").fill(str(high))
    trust.page.get_by_label("high (above ratio 1), as a number").press("Enter")
    trust.settle()
    number = sum(cut(rows, low, high))

    def excess(row):  # sides of the fixed band, in nats, over the root of the length
        moved = row["log_s"] * math.sqrt(row["length"])
        side = math.log1p(high) if row["advantage"] > 0 else math.log1p(-low)
        return max(0.0, moved / side)

    ranked = sorted(rows, key=excess, reverse=True)
    assert excess(ranked[number - 1]) > excess(ranked[number])
    buckets: dict[int, list[bool]] = {}
    for at, row in enumerate(ranked):
        buckets.setdefault(row["length"].bit_length(), []).append(at < number)
    wanted = [sum(found) / len(found) for _, found in sorted(buckets.items())]
    assert drawn(trust)["length-fair"] == pytest.approx(wanted)
    assert shown(trust, "what_if/length_fair")[0] == number / len(rows)


def test_what_the_run_cut_is_beside_it_and_can_be_had_back(trust, rows, runs):
    trust.page.get_by_role("button", name="Back to the range in force").click()
    trust.settle()
    recorded = Expected(runs / "a").value("clip/cut_share", STEP)
    assert shown(trust, "what_if/fixed")[0] == pytest.approx(recorded)
    assert drawn(trust)["fixed"] == drawn(trust)["the run"]
    assert "range=" not in trust.page.url
