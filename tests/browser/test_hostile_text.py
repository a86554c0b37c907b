"""Nothing that a run holds is executed, obeyed or followed, and nothing of it widens the page."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.dashboard.folder import run_id
from gspo.dashboard.report import write_report
from gspo.recorders.sanitize import visible, well_formed
from tests.browser.corpus import CORPUS
from tests.browser.hostile_runs import GROUP, PIECES, hostile_names, hostile_run

NARROW, WIDE = 360, 1600
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: Elements that the page itself never makes.
MADE = "script:not([src]), iframe, object, embed, img, form, base, meta[http-equiv], video, math, template"
HOVER = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].filter((gd) => gd.data)
  .flatMap((gd) => gd.data.map((trace, curveNumber) => {
    Plotly.Fx.hover(gd, [{curveNumber, pointNumber: trace.type === "heatmap" ? [0, 0] : 0}]);
    return gd.querySelectorAll(".hoverlayer a, .legend a, .xtick a, .ytick a").length;
  })).filter((links) => links > 0)"""
VIEWS = {
    "working": {},
    "trust": {},
    "drives": {"row": 8},
    "rollouts": {"sort": "length"},
    "groups": {},
    "recipe": {},
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of all hostile runs, and their ids."""
    folder = tmp_path_factory.mktemp("hostile")
    path = hostile_run(folder)
    names = [path, *hostile_names(folder, path)]
    return folder, {path.name: run_id(path.resolve()) for path in names}


@pytest.fixture(scope="module")
def attacked(hostile, look):
    from tests.browser.serving import Serving

    folder, ids = hostile
    with Serving(folder) as serving:
        viewer = look(serving.origin, ids)
        viewer.open("hostile")
        yield viewer


def flat(text, max_chars):
    """On one line, as the page has it."""
    whole = visible(well_formed(text)).replace("\n", "\u21b5").replace("\t", "\u21e5")
    return whole if len(whole) <= max_chars else f"{whole[:max_chars]}\u2026"


def harmless(viewer):
    """What must hold wherever the page is."""
    viewer.check()
    assert viewer.page.locator(MADE).count() == 0
    assert viewer.page.evaluate(OVERFLOW) == 0


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_stands(attacked, view, width):
    attacked.resize(width)
    attacked.go("hostile", view=view, step=2, **VIEWS[view])
    assert attacked.page.evaluate(HOVER) == []
    harmless(attacked)


@pytest.mark.parametrize("group", [0, 1])
def test_responses_and_reasons_are_shown_as_text(attacked, group):
    attacked.go("hostile", view="rollouts", step=2, group=group)
    cards = attacked.page.locator("article.response")
    shown = cards.evaluate_all(
        "(cards) => cards.map((card) => [card.dataset.row, card.querySelector('.text').textContent])"
    )
    assert len(shown) == GROUP
    for row, text in shown:
        wanted = visible(well_formed(CORPUS[int(row) % len(CORPUS)]))[:400]
        assert text[: len(wanted)] == wanted
    harmless(attacked)


def test_a_megabyte_is_shown_on_demand(attacked):
    row = CORPUS.index("A" * 1_000_000)
    attacked.go("hostile", view="rollouts", step=2, group=row // GROUP)
    card = attacked.page.locator(f"article.response[data-row='{row}']")
    card.get_by_role("button", name="show all 1,000,000 characters").click()
    attacked.settle()
    assert card.locator(".text").evaluate("(node) => node.textContent.length") == 1_000_000
    harmless(attacked)


def test_tokens_are_shown_as_text(attacked):
    attacked.go("hostile", view="drives", step=2, row=8)
    shown = attacked.page.locator(".token").all_text_contents()
    assert len(shown) > 5
    for at, text in enumerate(shown):
        piece = PIECES[(8 + at) % len(PIECES)]
        assert text == visible(piece).replace("\n", "\u21b5\n").replace("\t", "\u21e5"), piece


def test_names_stand_in_the_list_and_in_legends(attacked, hostile):
    _, ids = hostile
    attacked.resize(WIDE)
    names = list(ids)
    listed = attacked.page.locator(".run-name").all_text_contents()
    assert sorted(listed) == sorted(flat(name, 80) for name in names)
    for width, chosen in ((WIDE, names[1:9]), (NARROW, names[-8:])):
        attacked.resize(width)
        for view in ("working", "speed"):
            attacked.go(*chosen, view=view)
            assert attacked.page.evaluate(HOVER) == []
            harmless(attacked)


def test_causes_are_shown_as_text(attacked):
    attacked.go("hostile", view="working")
    shown = attacked.page.locator(".alarm").all_text_contents()
    rules = dict.fromkeys(text[:100] for text in CORPUS)
    assert len(shown) == len(rules)
    for text, rule in zip(shown, rules, strict=True):
        assert flat(rule, 80) in text


def test_a_report_of_it_is_harmless_too(hostile, look, tmp_path):
    folder, ids = hostile
    file = write_report(folder / "hostile", tmp_path / "report.html")
    viewer = look(file.as_uri(), ids, width=NARROW)
    viewer.open("hostile")
    for view, chosen in VIEWS.items():
        viewer.go("hostile", view=view, **chosen)
        assert viewer.page.evaluate(HOVER) == []
        viewer.check()
        assert viewer.page.evaluate(OVERFLOW) == 0
    assert viewer.asked == [file.as_uri()]
    viewer.page.close()


def test_a_terminal_obeys_nothing(hostile):
    folder, ids = hostile
    app = build_app()
    for name in ids:
        said = CliRunner().invoke(app, ["watch", str(folder / name), "--once"])
        assert said.exit_code == 0, said.output
        bad = {char for char in said.output if _obeyed(char)}
        assert bad == set(), name


def _obeyed(char: str) -> bool:
    return char not in "\n\u200c\u200d" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")


def test_the_page_and_the_terminal_show_the_same(attacked):
    whole = map(chr, range(sys.maxunicode + 1))  # of the private ones the corpus has some
    assigned = [char for char in whole if unicodedata.category(char) not in ("Cn", "Co", "Cs")]
    texts = [*(text for text in CORPUS if len(text) < 10_000), "\ud800 \udbff \udfff"]
    show = "(texts) => texts.map(G.visible)"
    assert attacked.page.evaluate(show, texts) == [visible(text) for text in texts]
    each = "(text) => Array.from(text, G.visible).join('\\0')"  # nothing visible has a NUL
    seen_by_page = attacked.page.evaluate(each, "".join(assigned)).split("\0")
    shown = zip(assigned, seen_by_page, strict=True)
    assert [char for char, seen in shown if seen != visible(char)] == []
